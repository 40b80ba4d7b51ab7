//! `fairlead job ID`: one job, its stages with times, where its results are, and its spec.
//!
//! The scheduler answers a job flat, spec and state in one object; this knows the state's names and
//! shows everything else as the spec, so that nothing is hidden.

use fairlead_api::{HealthWord, client::Client};
use fairlead_job::{Spec, Stage};
use serde_json::Value;

use crate::{
    clock,
    context::Context,
    exit::{self, Failure},
    results::blamed,
    table::{Grid, Paper, harmless, or_dash},
    yaml_text,
};

/// Which job.
#[derive(Debug, clap::Args)]
pub(crate) struct JobArgs {
    /// Id of the job
    id: String,
}

/// State fields at the top, in this order: heading, and possible names of the field.
const STATE: &[(&str, &[&str])] = &[
    ("stage", &["job_stage"]),
    ("health", &["job_health"]),
    ("failure", &["failure"]),
    ("results in", &["job_data_readiness"]),
    ("reason", &["reason"]),
    ("crash", &["crash_signature"]),
    ("exit code", &["exit_code"]),
    ("account", &["my_account"]),
    ("queue", &["queue"]),
    ("label", &["queue_label"]),
    ("priority", &["priority"]),
    ("testbox", &["testbox"]),
    ("group", &["tbox_group"]),
    ("host", &["host", "host_machine"]),
    ("attempt", &["attempt"]),
    ("memory MB", &["memory_mb"]),
    ("most MB used", &["peak_memory_mb"]),
    ("CPUs", &["cpus"]),
    ("CPU time ms", &["cpu_ms"]),
    ("result bytes", &["result_bytes"]),
    ("time limit s", &["timeout_seconds"]),
    ("deadline", &["deadline_utc"]),
    ("begins", &["start_time"]),
    ("over by", &["finish_by_time"]),
    ("submit id", &["submit_id"]),
    ("group id", &["group_id"]),
    ("result folder", &["result_root"]),
];

/// State fields that are not shown: compass-ci's other names and numbers of the same data.
const HIDDEN: &[&str] = &[
    "id",
    "job_id",
    "istage",
    "ihealth",
    "idata_readiness",
    "job_state",
    "params",
    "host_keys",
    "tbox_type",
    "run_seconds",
    "last_success_stage",
    "attempts",
];

pub(crate) async fn run(args: &JobArgs, context: &Context) -> anyhow::Result<u8> {
    let client = context.client()?;
    let job = client.job(&args.id).await.map_err(Failure::from)?;
    let server = server_of(&client);
    context.print(&job, |job| {
        text(&args.id, job, &server, context.output.paper())
    })?;
    Ok(exit::OK)
}

fn server_of(client: &Client) -> String {
    client.last_good_url().trim_end_matches('/').to_owned()
}

/// Returns a value as one line.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => harmless(text),
        Value::Null => "-".to_owned(),
        other => harmless(&other.to_string()),
    }
}

fn text(id: &str, job: &Spec, server: &str, paper: Paper) -> String {
    let mut rest = job.clone();
    let mut lines = vec![format!("{:<14}{}", "job", harmless(id))];
    for (heading, names) in STATE {
        let found = names.iter().find_map(|name| job.get(*name)).map(shown);
        for name in *names {
            rest.shift_remove(*name);
        }
        if let Some(value) = found {
            lines.push(format!("{heading:<14}{}", or_dash(&value)));
        }
    }
    if let Some(Value::String(root)) = job.get("result_root") {
        lines.push(format!("{:<14}{server}{}/", "download", harmless(root)));
    }
    let stages = stages(job, paper);
    if !stages.is_empty() {
        lines.push(String::new());
        lines.push(stages);
    }
    let attempts = attempts(job, paper);
    if !attempts.is_empty() {
        lines.push(String::new());
        lines.push(attempts);
    }
    for name in HIDDEN {
        rest.shift_remove(*name);
    }
    rest.retain(|name, _| stage_of(name).is_none());
    if !rest.is_empty() {
        lines.push(String::new());
        // Job texts come from people: a script must not move this terminal's cursor.
        lines.extend(yaml_text::of(&rest).lines().map(harmless));
    }
    lines.join("\n")
}

/// Returns the table of earlier attempts.
fn attempts(job: &Spec, paper: Paper) -> String {
    let Some(Value::Array(attempts)) = job.get("attempts") else {
        return String::new();
    };
    let mut grid = Grid::new(&[">attempt", "host", "stage", "health", "ended", "reason"]);
    for attempt in attempts {
        let cell = |name: &str| attempt.get(name).map_or_else(|| "-".to_owned(), shown);
        grid.row([
            cell("attempt"),
            cell("host_machine"),
            cell("job_stage"),
            blamed(&HealthWord::read(cell("job_health"))),
            cell("end_time"),
            cell("reason"),
        ]);
    }
    grid.render(paper)
}

/// Returns the stage of a time field: `running_ms`, or compass-ci's `running_time`.
fn stage_of(name: &str) -> Option<&str> {
    let stage = name
        .strip_suffix("_ms")
        .or_else(|| name.strip_suffix("_time"))?;
    let known =
        Stage::ALL.iter().any(|known| known.as_str() == stage) || matches!(stage, "end" | "abort");
    known.then_some(stage)
}

/// Returns the start and duration of each stage. If numbers are missing, compass-ci's texts are used.
fn stages(job: &Spec, paper: Paper) -> String {
    let mut times: Vec<(&str, u64, String)> = Vec::new();
    for (name, value) in job {
        let Some(stage) = stage_of(name) else {
            continue;
        };
        let (ms, when) = match value {
            Value::Number(number) => {
                let ms = number.as_u64().unwrap_or_default();
                (ms, clock::shown(ms))
            }
            Value::String(text) => match text.parse::<jiff::Timestamp>() {
                Ok(at) => {
                    let ms = u64::try_from(at.as_millisecond()).unwrap_or_default();
                    (ms, clock::shown(ms))
                }
                Err(_) => continue,
            },
            _ => continue,
        };
        let better = name.ends_with("_ms");
        match times.iter_mut().find(|(known, ..)| *known == stage) {
            Some(known) if better => *known = (stage, ms, when),
            Some(_) => {}
            None => times.push((stage, ms, when)),
        }
    }
    times.retain(|(_, ms, _)| *ms > 0);
    times.sort_by_key(|(_, ms, _)| *ms);
    if times.is_empty() {
        return String::new();
    }
    let mut grid = Grid::new(&["stage", "since", ">lasted"]);
    let ends = times
        .iter()
        .skip(1)
        .map(|(_, ms, _)| Some(*ms))
        .chain([None]);
    for ((stage, ms, when), end) in times.iter().zip(ends) {
        let lasted = end.map_or_else(String::new, |end| clock::length(end.saturating_sub(*ms)));
        grid.row([(*stage).to_owned(), when.clone(), lasted]);
    }
    grid.render(paper)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_job_shows_state_stages_and_spec_and_nothing_twice() {
        let Value::Object(job) = json!({
            "suite": "s", "nr": 8, "job_stage": "finish", "job_health": "success", "istage": 9,
            "result_root": "/result/s/1", "submit_ms": 1_000, "running_ms": 3_500, "finish_ms": 65_500,
            "running_time": "1970-01-01T00:00:03Z",
            "script": "echo \u{1b}[2J\n",
        }) else {
            panic!()
        };
        let text = text("7", &job, "http://x", Paper::PIPE);
        assert!(
            text.starts_with("job           7\nstage         finish\nhealth        success\n"),
            "{text}"
        );
        assert!(
            text.contains("download      http://x/result/s/1/"),
            "{text}"
        );
        let stages: Vec<&str> = text
            .lines()
            .filter(|l| l.contains(':') && l.contains("19"))
            .collect();
        assert_eq!(stages.len(), 3, "{text}");
        assert!(
            stages[1].starts_with("running") && stages[1].ends_with("1m02s"),
            "{text}"
        );
        assert!(
            text.contains("suite: s") || text.contains("suite: \"s\""),
            "{text}"
        );
        assert!(
            !text.contains("running_time") && !text.contains('\u{1b}'),
            "{text}"
        );
    }
}
