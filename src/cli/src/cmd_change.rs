//! `fairlead hold`, `fairlead release` and `fairlead edit`: change jobs that wait.

use fairlead_api::{CancelItem, ChangeRequest};
use fairlead_job::Stage;

use crate::{
    cmd_rerun::settings,
    cmd_stop::{Act, agreed, report},
    context::Context,
    exit::{self, Failure},
    selecting::{Caution, Selector},
    table::harmless,
};

/// Maximum number of ids in one request.
const IDS_MAX: usize = 1000;

/// Which waiting jobs.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A held job keeps its place among the jobs of its account, and no testbox gets it. `fairlead release`
lets it go on. Filters take the waiting jobs among those that match, and ask first.")]
pub(crate) struct HoldArgs {
    #[command(flatten)]
    selector: Selector,
    #[command(flatten)]
    caution: Caution,
}

/// Which waiting jobs, and what is new of them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Fields: queue, priority, need_memory, need_cpus, timeout, tags and deadline. The job file stays as it
was submitted: `fairlead job ID` shows both. Filters take the waiting jobs among those that match, and
ask first.")]
pub(crate) struct EditArgs {
    #[command(flatten)]
    selector: Selector,
    #[command(flatten)]
    caution: Caution,
    /// Give a field a new value, as job files write it; repeatable
    #[arg(short = 's', long = "set", value_name = "KEY=VALUE", required = true)]
    set: Vec<String>,
}

pub(crate) async fn hold(args: &HoldArgs, context: &Context) -> anyhow::Result<u8> {
    let change = ChangeRequest {
        hold: Some(true),
        ..ChangeRequest::default()
    };
    run(
        &args.selector,
        args.caution,
        change,
        ("hold", "held"),
        context,
    )
    .await
}

pub(crate) async fn release(args: &HoldArgs, context: &Context) -> anyhow::Result<u8> {
    let change = ChangeRequest {
        hold: Some(false),
        ..ChangeRequest::default()
    };
    let words = ("release", "released");
    run(&args.selector, args.caution, change, words, context).await
}

pub(crate) async fn edit(args: &EditArgs, context: &Context) -> anyhow::Result<u8> {
    let change = ChangeRequest {
        set: settings(&args.set)?,
        ..ChangeRequest::default()
    };
    run(
        &args.selector,
        args.caution,
        change,
        ("edit", "edited"),
        context,
    )
    .await
}

async fn run(
    selector: &Selector,
    caution: Caution,
    change: ChangeRequest,
    (act, done): (&str, &str),
    context: &Context,
) -> anyhow::Result<u8> {
    let client = context.client()?;
    let what = Act {
        word: act,
        stages: vec![Stage::Submit.to_string()],
    };
    let agreed = agreed(selector, caution, &what, &client, context).await?;
    let Some(ids) = agreed else {
        return Ok(exit::OK);
    };
    let mut reports: Vec<CancelItem> = Vec::new();
    for ids in ids.chunks(IDS_MAX) {
        let request = ChangeRequest {
            job_ids: ids.to_vec(),
            ..change.clone()
        };
        reports.extend(client.change(&request).await.map_err(Failure::from)?);
    }
    for item in &reports {
        if item.result == "success" && !item.message.is_empty() {
            let warning = harmless(&item.message);
            context
                .output
                .remark(&format!("warning: job {}: {warning}", item.job_id));
        }
    }
    report(&reports, done, context)
}

#[cfg(test)]
mod tests {
    use clap::Args as _;
    use fairlead_job::{Use, fields};

    use super::*;

    #[test]
    fn the_help_names_the_fields_that_may_change() {
        let mut command = EditArgs::augment_args(clap::Command::new("edit"));
        let help = command.render_long_help().to_string();
        for field in fields(Use::Edited) {
            assert!(help.contains(field), "{field}: {help}");
        }
    }
}
