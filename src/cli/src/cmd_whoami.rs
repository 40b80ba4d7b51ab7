//! `fairlead whoami`: which lab, which account, with which token.

use serde_json::json;

use crate::{
    context::Context,
    exit::{self, Failure},
    table::or_dash,
};

/// Nothing to choose.
#[derive(Debug, clap::Args)]
pub(crate) struct WhoamiArgs {}

pub(crate) async fn run(_: &WhoamiArgs, context: &Context) -> anyhow::Result<u8> {
    let settings = context.settings()?;
    let client = context.client()?;
    let account = client.whoami().await.map_err(Failure::from)?;
    // An open lab accepts the account name of a job.
    let is_open = account.my_account.is_empty();
    let name = if is_open {
        settings.account.value.clone().unwrap_or_default()
    } else {
        account.my_account.clone()
    };
    let token = settings.token.value.as_ref();
    let token = token.map_or_else(|| "none".to_owned(), |_| settings.token.origin.to_string());
    let lab = settings.lab.value.clone().unwrap_or_default();
    let shown = json!({
        "account": name, "role": account.role, "open": is_open, "vip": account.vip, "limits": account.limits,
        "lab": settings.lab.value, "server": settings.server.value, "token_from": token,
    });
    context.print(&shown, |_| {
        let role = if is_open {
            "this lab is open: it trusts the name".to_owned()
        } else {
            account.role.clone()
        };
        format!(
            "account  {name} ({role})\nlab      {}\nserver   {}\ntoken    {token}",
            or_dash(&lab),
            settings.server.value.join(", "),
        )
    })?;
    Ok(exit::OK)
}
