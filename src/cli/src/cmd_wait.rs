//! `fairlead wait ID…`: waits until jobs have ended, and shows their results.

use std::time::Duration;

use fairlead_api::{JobAnswer, client::Client};
use serde_json::{Map, Value, json};

use crate::{
    amounts::length_ms,
    answers, clock,
    context::Context,
    exit::{self, Failure},
};

/// Which jobs, and for how long.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The exit code is 0 if all jobs succeeded, 1 if one did not, and 7 if the time was up before.")]
pub(crate) struct WaitArgs {
    /// Ids of the jobs
    #[arg(required_unless_present = "group", value_name = "ID")]
    ids: Vec<String>,
    /// Also wait for this group of your account; close it first, or it ends with its own time
    #[arg(long, value_name = "NAME")]
    group: Vec<String>,
    /// Give up after this time; the jobs go on [default: never]
    #[arg(long, value_name = "TIME", value_parser = length_ms)]
    timeout: Option<u64>,
}

pub(crate) async fn run(args: &WaitArgs, context: &Context) -> anyhow::Result<u8> {
    let client = context.client()?;
    let mut ids = args.ids.clone();
    let of = if args.group.is_empty() {
        None
    } else {
        context.account_of(None, &client).await?
    };
    for group in &args.group {
        let answer = client.group(group, of.as_deref()).await;
        let answer = answer.map_err(Failure::from)?;
        ids.push(answer.job_id);
    }
    let began = clock::monotonic();
    let limit = args.timeout.map(Duration::from_millis);
    let waiting = wait_for(&client, &ids);
    let in_time = match limit {
        None => {
            waiting.await?;
            true
        }
        Some(limit) => match tokio::time::timeout(limit, waiting).await {
            Ok(waited) => {
                waited?;
                true
            }
            Err(_) => false,
        },
    };
    let mut all = Vec::with_capacity(ids.len());
    for id in &ids {
        all.push(client.answer(id).await.map_err(Failure::from)?);
    }
    let terminal = context.output.is_terminal();
    context.print(&all, |all: &Vec<JobAnswer>| {
        let texts: Vec<String> = all.iter().map(|one| answers::text(one, terminal)).collect();
        texts.join("\n")
    })?;
    if in_time {
        return Ok(answers::exit_code(&all));
    }
    let late = all.iter().filter(|answer| !answer.over).count();
    let waited_s = clock::monotonic().duration_since(began).as_secs();
    Err(Failure::new(
        exit::TOO_LATE,
        format!(
            "{late} of {} jobs have not ended after {waited_s} s",
            ids.len()
        ),
        "they go on; see why: fairlead explain ID",
    )
    .into())
}

/// Asks until all of these jobs have ended.
async fn wait_for(client: &Client, ids: &[String]) -> Result<(), Failure> {
    let mut open: Vec<&String> = ids.iter().collect();
    while !open.is_empty() {
        let on: Map<String, Value> = open.iter().map(|id| ((*id).clone(), Value::Null)).collect();
        let answer = client.wait(&json!({ "wait_on": on })).await?;
        let ended = |id: &str| answer["waited_jobs"].get(id).is_some();
        open.retain(|id| !ended(id));
    }
    Ok(())
}
