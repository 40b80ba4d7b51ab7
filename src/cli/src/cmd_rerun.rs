//! `fairlead rerun ID`: submits a job again, or what failed of it.

use crate::{
    context::Context,
    exit::{self, Failure},
    table::harmless,
};

/// Which job.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The new job has the same body and a new id, which is printed. Of a job with a list of tests,
--failed packs the failed tests anew. Of other jobs with shards, it runs the failed shards.")]
pub(crate) struct RerunArgs {
    /// Id of the job
    id: String,
    /// Run only the shards or the tests that failed
    #[arg(long)]
    failed: bool,
}

pub(crate) async fn run(args: &RerunArgs, context: &Context) -> anyhow::Result<u8> {
    let client = context.client()?;
    let items = client.rerun(&args.id, args.failed).await;
    let items = items.map_err(Failure::from)?;
    context.print(&items, |items| {
        let ids = items.iter().filter(|item| item.code.is_empty());
        ids.map(|item| item.job_id.clone())
            .collect::<Vec<_>>()
            .join("\n")
    })?;
    let Some(refused) = items.into_iter().find(|item| !item.code.is_empty()) else {
        return Ok(exit::OK);
    };
    let message = harmless(&refused.message);
    Err(Failure::new(exit::REFUSED, message, harmless(&refused.hint)).into())
}
