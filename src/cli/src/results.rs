//! The end of `run`, `submit -m` and `wait`: why jobs failed, and the sum of all.

use std::{fmt::Write as _, time::Duration};

use fairlead_api::{HealthWord, StageWord};
use fairlead_job::{Cause, DataReadiness, Health, Stage, units::counted};
use serde::Serialize;

use crate::{
    clock::length,
    exit,
    follow::Tracked,
    printable::{Hue, hued},
    table::harmless,
};

/// Maximum number of failed jobs that are shown with details.
const FAILURES_MAX: usize = 20;

/// End of one job. The field names are part of the CLI's interface for programs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Ending {
    pub(crate) job_id: String,
    pub(crate) file: String,
    /// Parameters that differ between the jobs, in the job's order. A single job has all its parameters.
    pub(crate) params: serde_json::Map<String, serde_json::Value>,
    pub(crate) job_stage: StageWord,
    pub(crate) job_health: HealthWord,
    /// Run time of its script, seconds. Absent: it did not run.
    pub(crate) seconds: Option<f64>,
    pub(crate) exit_code: Option<i32>,
    /// Reason, if it did not succeed.
    pub(crate) reason: String,
    /// Host that had the job.
    pub(crate) host: String,
    /// Number of the attempt, from 1.
    pub(crate) attempt: u16,
    /// Last lines of its output, if it failed and they were requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) tail: Vec<String>,
    /// Folder on this machine, or path at the scheduler.
    pub(crate) result: String,
    pub(crate) success: bool,
    /// True if it has ended. Following may have stopped earlier.
    pub(crate) ended: bool,
    /// True if a part of its results never arrived.
    #[serde(skip)]
    pub(crate) is_incomplete: bool,
}

impl Ending {
    /// Returns true if it ended badly. A cancelled job did not.
    pub(crate) fn has_failed(&self) -> bool {
        self.ended && !self.success && self.job_health != Health::Cancel
    }

    /// Returns the end of a job. `place` turns a result root into a path that people can open.
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
            job_stage: job.stage(),
            job_health: job.health(),
            seconds: ran_ms.map(seconds),
            exit_code: seen.and_then(|seen| seen.exit_code),
            reason: seen.map(|seen| seen.reason.clone()).unwrap_or_default(),
            host: seen.map(|seen| seen.host.clone()).unwrap_or_default(),
            attempt: seen.map_or(1, |seen| seen.attempt),
            tail: Vec::new(),
            result: if root.is_empty() {
                String::new()
            } else {
                place(root)
            },
            success: job.succeeded(),
            ended: job.is_over(),
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

/// Returns a remark on jobs that are no longer followed: the number of ended ones, and that the others go on.
pub(crate) fn left(endings: &[Ending], again: &str) -> String {
    let ended = endings.iter().filter(|ending| ending.ended).count();
    let good = endings.iter().filter(|ending| ending.success).count();
    let open = endings.iter().filter(|ending| !ending.ended);
    let stages: Vec<Option<Stage>> = open.map(|ending| ending.job_stage.known()).collect();
    let count = |is: fn(&Option<Stage>) -> bool| stages.iter().filter(|stage| is(stage)).count();
    let waits = count(|stage| *stage == Some(Stage::Submit));
    let others = count(Option::is_none);
    let runs = stages.len() - waits - others;
    let of_those = match (ended, ended - good.min(ended)) {
        (0, _) => String::new(),
        (_, 0) => format!(" ({good} succeeded)"),
        (_, bad) => format!(" ({good} succeeded, {bad} did not)"),
    };
    let head = format!(
        "stopped following: {ended} of {} had ended{of_those}",
        counted(endings.len(), "job", "jobs")
    );
    let parts = [
        (runs, "is on a testbox", "are on testboxes"),
        (waits, "waits", "wait"),
        (others, "is in an unknown stage", "are in unknown stages"),
    ];
    let parts = parts.into_iter().filter(|(many, ..)| *many > 0);
    let parts: Vec<String> = parts
        .map(|(many, one, more)| counted(many, one, more))
        .collect();
    if parts.is_empty() {
        return head;
    }
    let open = parts.join(" and ");
    let go = if stages.len() == 1 { "goes" } else { "go" };
    format!("{head}; {open}, and {go} on; follow them again: {again}")
}

/// Data for the user's next steps.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ways {
    /// Duration of the whole run.
    pub(crate) took: Duration,
    /// Folder of all results, or the command that downloads them. Empty: not shown.
    pub(crate) results: String,
    /// Command that runs all failed jobs again. Empty: none.
    pub(crate) again: String,
}

/// Returns the failed jobs with details, and the totals.
pub(crate) fn text(endings: &[Ending], ways: &Ways, again: impl Fn(&Ending) -> String) -> String {
    let mut lines = Vec::new();
    let failed: Vec<&Ending> = endings.iter().filter(|one| one.has_failed()).collect();
    for ending in failed.iter().take(FAILURES_MAX) {
        lines.extend(failure(ending));
        lines.push(format!("  again: {}", again(ending)));
        lines.push(String::new());
    }
    if failed.len() > FAILURES_MAX {
        let more = failed.len() - FAILURES_MAX;
        lines.push(format!(
            "… and {} more failed",
            counted(more, "job", "jobs")
        ));
        lines.push(String::new());
    }
    for ending in endings
        .iter()
        .filter(|one| one.success && one.is_incomplete)
    {
        let reason = harmless(&ending.reason);
        lines.push(format!(
            "job {}: results are missing: {reason}",
            ending.job_id
        ));
    }
    lines.extend(later(endings));
    lines.push(sum(endings, ways.took));
    if !ways.again.is_empty() && failed.len() > 1 {
        lines.push(format!("run the failed jobs again: {}", ways.again));
    }
    if !ways.results.is_empty() {
        lines.push(format!("results: {}", ways.results));
    }
    lines.join("\n")
}

/// Returns the details of a failure.
fn failure(ending: &Ending) -> Vec<String> {
    let params: Vec<String> = ending
        .params
        .iter()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    let head = format!("job {}  {}", ending.job_id, params.join(" "));
    let mut said = hued(Hue::Bad, &health(ending));
    if !ending.host.is_empty() {
        let _ = write!(said, " on {}", harmless(&ending.host));
    }
    if let Some(seconds) = ending.seconds {
        let _ = write!(said, " after {seconds:.1} s");
    }
    if ending.attempt > 1 {
        let _ = write!(said, ", at try {}", ending.attempt);
    }
    if !ending.reason.is_empty() {
        let _ = write!(said, ": {}", harmless(&ending.reason));
    }
    let mut lines = vec![harmless(&head).trim_end().to_owned(), format!("  {said}")];
    let tail = ending.tail.iter();
    lines.extend(tail.map(|line| format!("  | {}", harmless(line)).trim_end().to_owned()));
    lines
}

/// Returns a remark on jobs that passed only after a retry.
fn later(endings: &[Ending]) -> Option<String> {
    let late: Vec<&Ending> = endings
        .iter()
        .filter(|one| one.success && one.attempt > 1)
        .collect();
    let shown = late.iter().take(FAILURES_MAX);
    let shown: Vec<String> = shown
        .map(|one| format!("{} at try {}", one.job_id, one.attempt))
        .collect();
    let more = late.len().saturating_sub(FAILURES_MAX);
    let more = if more > 0 {
        format!(", and {more} more")
    } else {
        String::new()
    };
    (!late.is_empty()).then(|| format!("passed at a later try: {}{more}", shown.join(", ")))
}

/// Returns the totals: `14 failed, 186 succeeded, 27 s`.
pub(crate) fn sum(endings: &[Ending], took: Duration) -> String {
    let count = |is: &dyn Fn(&Ending) -> bool| endings.iter().filter(|one| is(one)).count();
    let cancelled = count(&|one| one.ended && one.job_health == Health::Cancel);
    let mut parts = Vec::new();
    for (many, word, hue) in [
        (count(&|one| one.has_failed()), "failed", Hue::Bad),
        (cancelled, "cancelled", Hue::Busy),
        (count(&|one| !one.ended), "not ended", Hue::Busy),
        (count(&|one| one.success), "succeeded", Hue::Good),
    ] {
        if many > 0 {
            parts.push(hued(hue, &format!("{many} {word}")));
        }
    }
    parts.push(length(u64::try_from(took.as_millis()).unwrap_or(u64::MAX)));
    parts.join(", ")
}

/// Returns the health, with the exit code if it adds information.
fn health(ending: &Ending) -> String {
    match ending.exit_code {
        Some(code) if ending.job_health == Health::Fail => format!("fail ({code})"),
        _ if ending.job_health == Health::Unknown => ending.job_stage.to_string(),
        _ => blamed(&ending.job_health),
    }
}

/// Returns a health for people, with a note if the machine was at fault and not the job.
pub(crate) fn blamed(health: &HealthWord) -> String {
    let cause = health.known().and_then(Health::cause);
    if cause == Some(Cause::Infra) {
        format!("{health} (infra)")
    } else {
        health.to_string()
    }
}

/// Returns the exit code: 0 if every job succeeded.
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
    use crate::printable::paint;

    fn ending(id: &str, health: Health) -> Ending {
        Ending {
            job_id: id.into(),
            file: "f.yaml".into(),
            params: [("nr".to_owned(), "8".into())].into_iter().collect(),
            job_stage: Stage::Finish.into(),
            job_health: health.into(),
            seconds: Some(1.25),
            exit_code: Some(i32::from(health == Health::Fail)),
            reason: if health == Health::Fail {
                "exit code 1".into()
            } else {
                String::new()
            },
            host: "h".into(),
            attempt: 1,
            tail: Vec::new(),
            result: "/data/result/1".into(),
            success: health == Health::Success,
            ended: true,
            is_incomplete: false,
        }
    }

    /// Regression: a summary said "0 of 10 jobs succeeded, 10 did not" while all jobs went on.
    #[test]
    fn jobs_that_go_on_are_not_said_to_have_failed() {
        let open = |stage: Stage| Ending {
            job_stage: stage.into(),
            success: false,
            ended: false,
            ..ending("3", Health::Unknown)
        };
        let (good, bad) = (ending("1", Health::Success), ending("2", Health::Fail));
        assert_eq!(
            left(
                &[
                    good.clone(),
                    bad,
                    open(Stage::Running),
                    open(Stage::Submit),
                    open(Stage::Submit)
                ],
                "fairlead wait s"
            ),
            "stopped following: 2 of 5 jobs had ended (1 succeeded, 1 did not); \
             1 is on a testbox and 2 wait, and go on; follow them again: fairlead wait s"
        );
        assert_eq!(
            left(&[open(Stage::Submit)], "fairlead wait s"),
            "stopped following: 0 of 1 job had ended; 1 waits, and goes on; follow them again: fairlead wait s"
        );
        let newer = Ending {
            job_stage: StageWord::Other("frozen".to_owned()),
            ..open(Stage::Submit)
        };
        assert_eq!(
            left(&[newer], "fairlead wait s"),
            "stopped following: 0 of 1 job had ended; 1 is in an unknown stage, and goes on; follow them again: fairlead wait s"
        );
        assert_eq!(
            left(&[good], "fairlead wait s"),
            "stopped following: 1 of 1 job had ended (1 succeeded)"
        );
    }

    #[test]
    fn a_failure_says_why_and_how_to_run_it_again() {
        let (good, mut bad) = (ending("1", Health::Success), ending("2", Health::Fail));
        bad.tail = vec!["boom \u{1b}[2J".into(), String::new()];
        let late = Ending {
            attempt: 2,
            ..ending("3", Health::Success)
        };
        let ways = Ways {
            took: Duration::from_secs(27),
            results: "/data".into(),
            again: "fairlead rerun --submit-id s --failed".into(),
        };
        let shown = text(&[good.clone(), bad.clone(), late], &ways, |ending| {
            format!("fairlead rerun {}", ending.job_id)
        });
        assert_eq!(
            paint(&shown, false),
            "job 2  nr=8\n  fail (1) on h after 1.2 s: exit code 1\n  | boom  [2J\n  |\n  again: fairlead rerun 2\n\n\
             passed at a later try: 3 at try 2\n1 failed, 2 succeeded, 27s\nresults: /data"
        );
        let all = text(&[good.clone(), good.clone()], &ways, |_| String::new());
        assert_eq!(paint(&all, false), "2 succeeded, 27s\nresults: /data");
        let many = vec![bad; 30];
        let shown = text(&many, &ways, |_| String::new());
        assert!(shown.contains("and 10 jobs more failed"), "{shown}");
        assert!(
            shown.contains("again: fairlead rerun --submit-id s --failed"),
            "{shown}"
        );
        assert_eq!(code(&many), exit::JOB_FAILED);
        assert_eq!(code(&[good]), exit::OK);
    }
}
