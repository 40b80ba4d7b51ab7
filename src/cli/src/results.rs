//! The table at the end of `run` and `submit -m`: one row per job.

use fairlead_job::{Cause, DataReadiness, Health, Stage, units::counted};
use serde::Serialize;

use crate::{
    exit,
    follow::Tracked,
    table::{Grid, cut, harmless, or_dash},
};

/// Characters of the parameters in the table, on a terminal.
const PARAMS_CHARS_MAX: usize = 80;
/// Reasons of failed jobs below the table.
const REASONS_MAX: usize = 20;

/// How one job ended. The field names are part of the CLI's interface for programs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Ending {
    pub(crate) job_id: String,
    pub(crate) file: String,
    /// Parameters that differ between the jobs, in the job's order; of a single job all.
    pub(crate) params: serde_json::Map<String, serde_json::Value>,
    pub(crate) job_stage: String,
    pub(crate) job_health: String,
    /// How long its script ran; absent when it did not.
    pub(crate) seconds: Option<f64>,
    pub(crate) exit_code: Option<i32>,
    /// Why, where it did not succeed.
    pub(crate) reason: String,
    /// The host that had it.
    pub(crate) host: String,
    /// A folder of this machine, or the place at the scheduler.
    pub(crate) result: String,
    pub(crate) success: bool,
    /// Whether it has ended; when following was stopped before, not all have.
    pub(crate) ended: bool,
    /// Whether a part of its results never came.
    #[serde(skip)]
    pub(crate) is_incomplete: bool,
}

impl Ending {
    /// `place` turns a result root into what people can open.
    pub(crate) fn of(job: &Tracked, place: impl Fn(&str) -> String) -> Self {
        let seen = job.seen.as_ref();
        let ran_ms = seen.and_then(|seen| Some(seen.end_ms?.saturating_sub(seen.running_ms?)));
        let root = seen.map_or("", |seen| seen.result_root.as_str());
        let root = if root.is_empty() {
            &job.result_root
        } else {
            root
        };
        Self {
            job_id: job.job_id.clone(),
            file: job.file.clone(),
            params: job
                .params
                .iter()
                .map(|(k, v)| (k.clone(), v.as_str().into()))
                .collect(),
            job_stage: job.stage().to_string(),
            job_health: job.health().to_owned(),
            seconds: ran_ms.map(seconds),
            exit_code: seen.and_then(|seen| seen.exit_code),
            reason: seen.map(|seen| seen.reason.clone()).unwrap_or_default(),
            host: seen.map(|seen| seen.host.clone()).unwrap_or_default(),
            result: if root.is_empty() {
                String::new()
            } else {
                place(root)
            },
            success: job.succeeded(),
            ended: job.stage().is_terminal(),
            is_incomplete: seen
                .is_some_and(|seen| seen.job_data_readiness == DataReadiness::Incomplete.as_str()),
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "milliseconds of one job are far below 2^52"
)]
fn seconds(ms: u64) -> f64 {
    ms as f64 / 1000.0
}

/// What is true of jobs that are no longer followed: how many had ended, and that the others go on.
pub(crate) fn left(endings: &[Ending]) -> String {
    let ended = endings.iter().filter(|ending| ending.ended).count();
    let good = endings.iter().filter(|ending| ending.success).count();
    let is_open = |ending: &&Ending| !ending.ended;
    let waits = endings
        .iter()
        .filter(is_open)
        .filter(|ending| ending.job_stage == Stage::Submit.as_str())
        .count();
    let runs = endings.len() - ended - waits;
    let of_those = match (ended, ended - good.min(ended)) {
        (0, _) => String::new(),
        (_, 0) => format!(" ({good} succeeded)"),
        (_, bad) => format!(" ({good} succeeded, {bad} did not)"),
    };
    let head = format!(
        "stopped following: {ended} of {} had ended{of_those}",
        counted(endings.len(), "job", "jobs")
    );
    let on_testboxes = counted(runs, "is on a testbox", "are on testboxes");
    let waiting = counted(waits, "waits", "wait");
    let open = match (runs, waits) {
        (0, 0) => return head,
        (_, 0) => on_testboxes,
        (0, _) => waiting,
        _ => format!("{on_testboxes} and {waiting}"),
    };
    let go = if runs + waits == 1 { "goes" } else { "go" };
    format!("{head}; {open}, and {go} on: `fairlead jobs` shows them")
}

/// All endings as a table, and what they add up to.
pub(crate) fn table(endings: &[Ending], terminal: bool) -> String {
    let good = endings.iter().filter(|ending| ending.success).count();
    let all = counted(endings.len(), "job", "jobs");
    let sum = match endings.len() - good {
        0 => format!("{good} of {all} succeeded"),
        bad => format!("{good} of {all} succeeded, {bad} did not"),
    };
    format!("{}\n{sum}", rows(endings, terminal))
}

/// All endings as a table, and why the bad ones are.
pub(crate) fn rows(endings: &[Ending], terminal: bool) -> String {
    // A program or a file takes all.
    let params_chars_max = if terminal {
        PARAMS_CHARS_MAX
    } else {
        usize::MAX
    };
    let mut grid = Grid::new(&["job", "parameters", "health", ">seconds", "result folder"]);
    for ending in endings {
        let params: Vec<String> = ending
            .params
            .iter()
            .map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or_default()))
            .collect();
        grid.row([
            ending.job_id.clone(),
            or_dash(&cut(&params.join(" "), params_chars_max)),
            health(ending),
            ending
                .seconds
                .map_or_else(|| "-".to_owned(), |s| format!("{s:.1}")),
            or_dash(&ending.result),
        ]);
    }
    let mut lines = vec![grid.render(terminal), String::new()];
    let told = |ending: &&Ending| {
        let wanting = !ending.success || ending.is_incomplete;
        ending.ended && wanting && !ending.reason.is_empty() && ending.job_health != "cancel"
    };
    for ending in endings.iter().filter(told).take(REASONS_MAX) {
        lines.push(harmless(&format!(
            "job {}: {}",
            ending.job_id, ending.reason
        )));
    }
    let untold = endings
        .iter()
        .filter(told)
        .count()
        .saturating_sub(REASONS_MAX);
    if untold > 0 {
        lines.push(format!("and {untold} more"));
    }
    lines.join("\n")
}

/// The health, with the exit code where it says more.
fn health(ending: &Ending) -> String {
    match ending.exit_code {
        Some(code) if ending.job_health == "fail" => format!("fail ({code})"),
        _ if ending.job_health == "unknown" => ending.job_stage.clone(),
        _ => blamed(&ending.job_health),
    }
}

/// A health for people: with a word where the machine was at fault and not the job.
pub(crate) fn blamed(health: &str) -> String {
    let cause = health.parse::<Health>().ok().and_then(Health::cause);
    if cause == Some(Cause::Infra) {
        format!("{health} (infra)")
    } else {
        health.to_owned()
    }
}

/// The exit code that says whether every job succeeded.
pub(crate) fn code(endings: &[Ending]) -> u8 {
    if endings.iter().all(|ending| ending.success) {
        exit::OK
    } else {
        exit::JOB_FAILED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ending(id: &str, health: &str) -> Ending {
        Ending {
            job_id: id.into(),
            file: "f.yaml".into(),
            params: [("nr".to_owned(), "8".into())].into_iter().collect(),
            job_stage: "finish".into(),
            job_health: health.into(),
            seconds: Some(1.25),
            exit_code: Some(i32::from(health == "fail")),
            reason: if health == "fail" {
                "exit code 1".into()
            } else {
                String::new()
            },
            host: "h".into(),
            result: "/data/result/1".into(),
            success: health == "success",
            ended: true,
            is_incomplete: false,
        }
    }

    /// "0 of 10 jobs succeeded, 10 did not", while all of them went on.
    #[test]
    fn jobs_that_go_on_are_not_said_to_have_failed() {
        let open = |stage: &str| Ending {
            job_stage: stage.into(),
            success: false,
            ended: false,
            ..ending("3", "unknown")
        };
        let (good, bad) = (ending("1", "success"), ending("2", "fail"));
        assert_eq!(
            left(&[
                good.clone(),
                bad,
                open("running"),
                open("submit"),
                open("submit")
            ]),
            "stopped following: 2 of 5 jobs had ended (1 succeeded, 1 did not); \
             1 is on a testbox and 2 wait, and go on: `fairlead jobs` shows them"
        );
        assert_eq!(
            left(&[open("submit")]),
            "stopped following: 0 of 1 job had ended; 1 waits, and goes on: `fairlead jobs` shows them"
        );
        assert_eq!(
            left(&[good]),
            "stopped following: 1 of 1 job had ended (1 succeeded)"
        );
        assert!(!rows(&[open("submit")], false).contains("did not"));
    }

    #[test]
    fn the_table_has_a_row_a_job_and_a_sum() {
        let endings = [ending("1", "success"), ending("2", "fail")];
        assert_eq!(
            table(&endings, false),
            "job  parameters  health    seconds  result folder\n\
             1    nr=8        success       1.2  /data/result/1\n\
             2    nr=8        fail (1)      1.2  /data/result/1\n\n\
             job 2: exit code 1\n1 of 2 jobs succeeded, 1 did not"
        );
        assert_eq!(code(&endings), exit::JOB_FAILED);
        let one = table(&endings[..1], false);
        assert!(one.ends_with("\n1 of 1 job succeeded"), "{one}");
        assert_eq!(code(&endings[..1]), exit::OK);
    }
}
