//! `fairlead cancel` and `fairlead terminate`: one report per job.

use fairlead_api::{CancelItem, client::Client};
use fairlead_job::Stage;

use crate::{
    amounts::length_ms,
    clock, cmd_jobs,
    context::Context,
    exit::{self, Failure},
    selecting::{Caution, Selector},
    table::harmless,
};

/// Which jobs to stop.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Filters stop the running jobs among those that match. They ask first; --yes does not.")]
pub(crate) struct StopArgs {
    #[command(flatten)]
    selector: Selector,
    #[command(flatten)]
    caution: Caution,
    /// Time between SIGTERM and SIGKILL, at most 1h [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = length_ms)]
    grace: Option<u64>,
}

/// Which waiting jobs to cancel.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Filters cancel the waiting jobs among those that match. They ask first; --yes does not.")]
pub(crate) struct CancelArgs {
    #[command(flatten)]
    selector: Selector,
    #[command(flatten)]
    caution: Caution,
}

/// Message of a report that a job was stopped.
const DONE: &str = "success";
/// Maximum number of ids in one request.
const IDS_MAX: usize = 1000;

/// An action, and the stages of the jobs that it applies to. `None`: all stages.
pub(crate) struct Act<'a> {
    pub(crate) word: &'a str,
    pub(crate) stages: Vec<String>,
}

/// Returns the selected ids after the user's agreement. `None`: nothing to do.
pub(crate) async fn agreed(
    selector: &Selector,
    caution: Caution,
    act: &Act<'_>,
    client: &Client,
    context: &Context,
) -> anyhow::Result<Option<Vec<String>>> {
    selector.check()?;
    if selector.is_plain() && !caution.dry_run {
        return Ok(Some(selector.ids()));
    }
    let found = selector.find(context, client, |mut query| {
        if query.stage.is_empty() {
            query.stage.clone_from(&act.stages);
        }
        query
    });
    let found = found.await?;
    cmd_jobs::remark_on(&found, context);
    if caution.dry_run {
        let (paper, now_ms) = (context.output.paper(), clock::now_ms());
        context.print(&found.jobs, |jobs| cmd_jobs::table(jobs, now_ms, paper))?;
    }
    if !caution.allows(&found.jobs, act.word, context)? && caution.dry_run {
        return Ok(None);
    }
    Ok(Some(found.jobs.into_iter().map(|job| job.job_id).collect()))
}

/// Cancels waiting jobs.
pub(crate) async fn cancel(args: &CancelArgs, context: &Context) -> anyhow::Result<u8> {
    let client = context.client()?;
    let what = Act {
        word: "cancel",
        stages: vec![Stage::Submit.to_string()],
    };
    let agreed = agreed(&args.selector, args.caution, &what, &client, context).await?;
    let Some(ids) = agreed else {
        return Ok(exit::OK);
    };
    let mut reports = Vec::new();
    for ids in ids.chunks(IDS_MAX) {
        reports.extend(client.cancel_many(ids).await.map_err(Failure::from)?);
    }
    report(&reports, "cancelled", context)
}

/// Stops running jobs. A refusal for one job does not stop the others.
pub(crate) async fn terminate(args: &StopArgs, context: &Context) -> anyhow::Result<u8> {
    let client = context.client()?;
    let held = Stage::ALL.iter().filter(|stage| stage.is_held());
    let what = Act {
        word: "stop",
        stages: held.map(ToString::to_string).collect(),
    };
    let agreed = agreed(&args.selector, args.caution, &what, &client, context).await?;
    let Some(ids) = agreed else {
        return Ok(exit::OK);
    };
    let mut reports = Vec::new();
    let grace_s = args.grace.map(|grace_ms| grace_ms.div_ceil(1000));
    for id in ids {
        let (result, message) = match client.terminate(&id, grace_s).await {
            Ok(()) => (DONE.to_owned(), String::new()),
            Err(error) => match error.code() {
                Some(code) => (code.as_str().to_owned(), Failure::from(error).to_string()),
                None => return Err(Failure::from(error).into()),
            },
        };
        reports.push(CancelItem {
            job_id: id,
            result,
            message,
        });
    }
    report(&reports, "told to stop", context)
}

/// Prints one line for each job.
pub(crate) fn report(reports: &[CancelItem], done: &str, context: &Context) -> anyhow::Result<u8> {
    let mut refused = 0;
    for item in reports {
        if item.result == DONE {
            if !context.json {
                context.output.line(&format!("job {}: {done}", item.job_id));
            }
        } else {
            refused += 1;
            let why = if item.message.is_empty() {
                &item.result
            } else {
                &item.message
            };
            let lines: Vec<String> = why.lines().map(harmless).collect();
            context
                .output
                .remark(&format!("job {}: {}", item.job_id, lines.join("\n")));
        }
    }
    if context.json {
        context.output.json(&reports)?;
    }
    Ok(if refused == 0 {
        exit::OK
    } else {
        exit::REFUSED
    })
}
