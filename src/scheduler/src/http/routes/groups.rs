//! Handlers of groups.

use std::sync::Arc;

use fairlead_api::ErrorCode;
use fairlead_job::JobId;
use warp::reply::Response;

use crate::{
    core::Core,
    http::{reply::ok, request::Request},
    views::answer::answer_of,
};
use fairlead_base::errors::{Refusal, excerpt};
use fairlead_known::accounts::Who;

pub(super) async fn show(
    core: Arc<Core>,
    request: Request,
    who: Who,
    group: &str,
) -> Result<Response, Refusal> {
    let id = find(&core, &request, &who, group).await?;
    Ok(ok(&answer_of(&core, id).await?))
}

pub(super) async fn close(
    core: Arc<Core>,
    request: Request,
    who: Who,
    group: &str,
) -> Result<Response, Refusal> {
    let id = find(&core, &request, &who, group).await?;
    core.close_group(&who, id).await?;
    Ok(ok(&answer_of(&core, id).await?))
}

/// The parent of a group of the account that is named, or of whoever asks.
async fn find(core: &Core, request: &Request, who: &Who, group: &str) -> Result<JobId, Refusal> {
    let account = request.query.get("account").unwrap_or(&who.name);
    let found = if who.may_act_for(account) {
        core.find_group(account, group).await?
    } else {
        None
    };
    found.ok_or_else(|| {
        let (group, account) = (excerpt(group), excerpt(account));
        let message = format!("account '{account}' has no group '{group}'");
        let hint = "its first job opens it: group: NAME; it is known for a day";
        Refusal::new(ErrorCode::NotFound, message, hint)
    })
}
