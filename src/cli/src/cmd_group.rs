//! `fairlead group show NAME` and `fairlead group close NAME`.

use crate::{
    answers,
    context::Context,
    exit::{self, Failure},
};

/// The actions on groups.
#[derive(Debug, clap::Args)]
pub(crate) struct GroupArgs {
    #[command(subcommand)]
    what: GroupAction,
}

#[derive(Debug, clap::Subcommand)]
enum GroupAction {
    /// Show the jobs that joined a group, and its result
    Show(Named),
    /// Let no job join a group any more: it ends when its jobs have ended
    Close(Named),
}

/// Which group.
#[derive(Debug, clap::Args)]
struct Named {
    /// Name of the group
    name: String,
    /// Account that the group belongs to [default: your own]
    #[arg(long, value_name = "ACCOUNT")]
    of: Option<String>,
}

pub(crate) async fn run(args: &GroupArgs, context: &Context) -> anyhow::Result<u8> {
    let client = context.client()?;
    let (GroupAction::Show(group) | GroupAction::Close(group)) = &args.what;
    let of = context.account_of(group.of.as_ref(), &client).await?;
    let answer = match &args.what {
        GroupAction::Show(_) => client.group(&group.name, of.as_deref()).await,
        GroupAction::Close(_) => client.close_group(&group.name, of.as_deref()).await,
    };
    let answer = answer.map_err(Failure::from)?;
    let paper = context.output.paper();
    context.print(&answer, |answer| answers::text(answer, paper))?;
    Ok(exit::OK)
}
