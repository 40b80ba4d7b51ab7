//! `fairlead version`.

use serde_json::json;

use crate::{context::Context, exit};

/// Of what.
#[derive(Debug, clap::Args)]
pub(crate) struct VersionArgs {
    /// Also show the version of the scheduler
    #[arg(long)]
    remote: bool,
}

pub(crate) async fn run(args: &VersionArgs, context: &Context) -> anyhow::Result<u8> {
    let own = env!("CARGO_PKG_VERSION");
    let remote = if args.remote {
        Some(
            context
                .client()?
                .version()
                .await
                .map_err(exit::Failure::from)?,
        )
    } else {
        None
    };
    let value = json!({"name": "fairlead", "version": own, "scheduler": remote});
    context.print(&value, |_| {
        let scheduler = remote.as_ref().map_or_else(String::new, |remote| {
            format!(
                "\nscheduler {} {}, replica {}, store {}\ncapabilities: {}",
                remote.name,
                remote.version,
                remote.replica,
                remote.store,
                remote.capabilities.join(", ")
            )
        });
        format!("fairlead {own}{scheduler}")
    })?;
    Ok(exit::OK)
}
