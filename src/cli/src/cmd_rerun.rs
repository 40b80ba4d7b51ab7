//! `fairlead rerun`: submits jobs again as one submit, or what failed of them.

use fairlead_api::{RerunRequest, SubmitItem};
use fairlead_job::read_placed;
use serde_json::{Map, Value, json};

use crate::{
    attached::{self, Attached, Left},
    cmd_stop::{Act, agreed},
    context::Context,
    exit::{self, Failure},
    follow::Tracked,
    selecting::{Caution, Selector},
    signals::Signals,
    table::harmless,
};

/// Which jobs, and what is new of them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The new jobs have the same bodies, new ids and one submit_id; each names the old one as rerun_of. They
need each other as the old ones did. -s gives a field a new value. With --failed only jobs that failed
run again, and those that never ran because of them. Of a job with a list of tests, --failed packs the
failed tests anew; of other jobs with shards, it runs the failed shards.")]
pub(crate) struct RerunArgs {
    #[command(flatten)]
    selector: Selector,
    #[command(flatten)]
    caution: Caution,
    /// Give a field a new value in all new jobs; repeatable
    #[arg(short = 's', long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Follow the new jobs to their ends
    #[arg(short, long)]
    monitor: bool,
}

/// Parses the fields with new values. Each is read as in job files.
pub(crate) fn settings(words: &[String]) -> Result<Map<String, Value>, Failure> {
    let mut set = Map::new();
    for word in words {
        let Some((key, value)) = word.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            return Err(Failure::usage(
                format!("-s {word}: this is no KEY=VALUE"),
                "for example -s nr_threads=8",
            ));
        };
        let read = read_placed("-s", &format!("v: {value}")).map_err(|error| {
            Failure::usage(
                format!("-s {word}: the value cannot be read: {}", error.message),
                "quote it as in a job file",
            )
        })?;
        set.insert(key.to_owned(), read.value()["v"].take());
    }
    Ok(set)
}

pub(crate) async fn run(args: &RerunArgs, context: &Context) -> anyhow::Result<u8> {
    let set = settings(&args.set)?;
    let client = context.client()?;
    let what = Act {
        word: "run again",
        stages: Vec::new(),
    };
    let Some(ids) = agreed(&args.selector, args.caution, &what, &client, context).await? else {
        return Ok(exit::OK);
    };
    let submit_id = uuid::Uuid::new_v4().to_string();
    let request = RerunRequest {
        job_ids: ids,
        failed: args.selector.failed,
        set,
        submit_id: Some(submit_id.clone()),
        idempotency_key: Some(submit_id.clone()),
    };
    let items = client.rerun_many(&request).await.map_err(Failure::from)?;
    let accepted: Vec<&SubmitItem> = items.iter().filter(|item| item.code.is_empty()).collect();
    let mut code = if accepted.len() == items.len() {
        exit::OK
    } else {
        exit::REFUSED
    };
    tell(&items, &submit_id, context);
    let mut endings = None;
    if args.monitor && !accepted.is_empty() {
        let attached = Attached {
            jobs: accepted.iter().map(|item| tracked(item)).collect(),
            submit_ids: vec![submit_id.clone()],
            name: format!("--submit-id {submit_id}"),
            limit: None,
        };
        let mut signals = Signals::catch()?;
        let (ended, left) = attached.follow(&client, &mut signals, context).await?;
        if left != Left::Over || code == exit::OK {
            code = attached::code(&ended, left);
        }
        endings = Some(ended);
    }
    if context.json {
        let answer = json!({ "submit_id": submit_id, "jobs": items, "results": endings });
        context.output.json(&answer)?;
    }
    Ok(code)
}

/// Prints the new ids, and the reasons for refused jobs.
fn tell(items: &[SubmitItem], submit_id: &str, context: &Context) {
    let mut accepted = 0;
    for item in items {
        if !item.code.is_empty() {
            let said = Failure::new(
                exit::REFUSED,
                format!(
                    "job {}: {} ({})",
                    item.rerun_of,
                    harmless(&item.message),
                    item.code
                ),
                harmless(&item.hint),
            );
            context.output.remark(&said.to_string());
            continue;
        }
        accepted += 1;
        if !context.json {
            context.output.line(&item.job_id);
        }
    }
    if accepted > 1 && !context.json {
        context
            .output
            .remark(&format!("{accepted} jobs run again, submit_id={submit_id}"));
    }
}

fn tracked(item: &SubmitItem) -> Tracked {
    Tracked::new(&item.job_id, "", Vec::new(), &item.result_root)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_values_are_read_as_in_job_files() {
        let words = ["nr=8", "mode=process", "list=[1, 2]", "note=a=b", "none="];
        let set = settings(&words.map(str::to_owned)).unwrap();
        let meant =
            json!({"nr": 8, "mode": "process", "list": [1, 2], "note": "a=b", "none": null});
        assert_eq!(Value::Object(set), meant);
        assert!(settings(&["nr".to_owned()]).is_err());
        assert!(settings(&["a=[1".to_owned()]).is_err());
    }
}
