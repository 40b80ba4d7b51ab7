//! `fairlead cancel ID…` and `fairlead terminate ID…`: one report per job.

use fairlead_api::{CancelItem, CancelRequest};
use serde_json::{Map, Value};

use crate::{
    amounts::length_ms,
    context::Context,
    exit::{self, Failure},
    table::harmless,
};

/// Which jobs.
#[derive(Debug, clap::Args)]
pub(crate) struct StopArgs {
    /// Ids of the jobs
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// Time between SIGTERM and SIGKILL, at most 1h [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = length_ms)]
    grace: Option<u64>,
}

/// Which waiting jobs.
#[derive(Debug, clap::Args)]
pub(crate) struct CancelArgs {
    /// Ids of the jobs
    #[arg(required_unless_present_any = FILTERS, conflicts_with_all = FILTERS, value_name = "ID")]
    ids: Vec<String>,
    /// All waiting jobs of this submit
    #[arg(long, value_name = "ID")]
    submit_id: Vec<String>,
    /// All waiting jobs of this group
    #[arg(long, value_name = "ID")]
    group_id: Vec<String>,
    /// All waiting jobs of this sequence
    #[arg(long, value_name = "NAME")]
    sequence: Vec<String>,
    /// All waiting jobs in this queue, or with this label
    #[arg(long, value_name = "NAME")]
    queue: Vec<String>,
    /// All waiting jobs of this suite
    #[arg(long, value_name = "NAME")]
    suite: Vec<String>,
    /// All waiting jobs of this account; only admins may name other accounts
    #[arg(long, value_name = "ACCOUNT")]
    of: Vec<String>,
}

/// The options that name many jobs.
const FILTERS: [&str; 6] = ["submit_id", "group_id", "sequence", "queue", "suite", "of"];

impl CancelArgs {
    fn filter(&self) -> Map<String, Value> {
        let said = [
            &self.submit_id,
            &self.group_id,
            &self.sequence,
            &self.queue,
            &self.suite,
            &self.of,
        ];
        let said = FILTERS.into_iter().zip(said);
        let said = said.filter(|(_, names)| !names.is_empty());
        said.map(|(option, names)| {
            let filter = if option == "of" { "account" } else { option };
            (filter.to_owned(), Value::from(names.clone()))
        })
        .collect()
    }
}

/// The word of a report that it was done.
const DONE: &str = "success";
/// How many ids go in one request.
const IDS_MAX: usize = 1000;

/// Cancels jobs that wait.
pub(crate) async fn cancel(args: &CancelArgs, context: &Context) -> anyhow::Result<u8> {
    let client = context.client()?;
    let mut reports = Vec::new();
    let filter = args.filter();
    if !filter.is_empty() {
        let request = CancelRequest {
            filter,
            ..CancelRequest::default()
        };
        reports = client.cancel_all(&request).await.map_err(Failure::from)?;
    }
    for ids in args.ids.chunks(IDS_MAX) {
        reports.extend(client.cancel_many(ids).await.map_err(Failure::from)?);
    }
    report(&reports, "cancelled", context)
}

/// Stops jobs that a testbox has. A job that the scheduler refuses to stop does not keep it from the others.
pub(crate) async fn terminate(args: &StopArgs, context: &Context) -> anyhow::Result<u8> {
    let client = context.client()?;
    let mut reports = Vec::new();
    let grace_s = args.grace.map(|grace_ms| grace_ms.div_ceil(1000));
    for id in &args.ids {
        let (result, message) = match client.terminate(id, grace_s).await {
            Ok(()) => (DONE.to_owned(), String::new()),
            Err(error) => match error.code() {
                Some(code) => (code.as_str().to_owned(), Failure::from(error).to_string()),
                None => return Err(Failure::from(error).into()),
            },
        };
        reports.push(CancelItem {
            job_id: id.clone(),
            result,
            message,
        });
    }
    report(&reports, "told to stop", context)
}

fn report(reports: &[CancelItem], done: &str, context: &Context) -> anyhow::Result<u8> {
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
