//! When a closed host will be empty: by what is known of how long such jobs take, and by their time limits.

use fairlead_api::{EmptiesView, LeavingJob};
use fairlead_dispatch::JobKind;
use fairlead_job::units::counted;
use fairlead_store::JobState;

use crate::{jobs::time_limits::latest_end_ms, views::ViewFlow};
use fairlead_base::{
    clock::utc_text,
    errors::{HostError, Refusal},
};
use fairlead_lifecycle::engine_facts::class_of;

impl ViewFlow {
    /// When a host with these jobs is empty; none: it is.
    pub(super) async fn empties(&self, jobs: &[JobState]) -> Result<Option<EmptiesView>, Refusal> {
        if jobs.is_empty() {
            return Ok(None);
        }
        let kinds: Vec<(String, u64, String)> = jobs
            .iter()
            .map(|job| {
                let class = class_of(&job.fingerprint);
                (job.suite.clone(), class, job.host_group.clone())
            })
            .collect();
        let asked = self.ctx.engine.ask(move |engine, _| {
            let expect = |(suite, class, group): &(String, u64, String)| {
                engine.run_times().expect_ms(JobKind {
                    suite,
                    class: *class,
                    group,
                })
            };
            kinds.iter().map(expect).collect::<Vec<Option<u64>>>()
        });
        let take_ms = asked.await.ok_or(HostError::DispatcherStopping)?;
        let now_ms = self.ctx.clock.wall_ms();
        let leaving = jobs.iter().zip(take_ms);
        Ok(Some(view(
            leaving
                .map(|(job, takes)| leaving_job(job, takes, now_ms))
                .collect(),
        )))
    }
}

fn leaving_job(job: &JobState, takes_ms: Option<u64>, now_ms: u64) -> LeavingJob {
    LeavingJob {
        job_id: job.job_id.to_string(),
        suite: job.suite.clone(),
        since_ms: job.dispatch_ms,
        expected_ms: takes_ms.map(|takes| job.dispatch_ms.saturating_add(takes).max(now_ms)),
        latest_ms: latest_end_ms(job, now_ms),
    }
}

/// Those that stay longest come first.
fn view(mut jobs: Vec<LeavingJob>) -> EmptiesView {
    jobs.sort_by(|a, b| {
        b.expected_ms
            .cmp(&a.expected_ms)
            .then(a.job_id.cmp(&b.job_id))
    });
    let last = |of: fn(&LeavingJob) -> Option<u64>| {
        let all: Option<Vec<u64>> = jobs.iter().map(of).collect();
        all.and_then(|all| all.into_iter().max())
    };
    let (expected_ms, latest_ms) = (last(|job| job.expected_ms), last(|job| job.latest_ms));
    let many = counted(jobs.len(), "job is", "jobs are");
    let expected = expected_ms.map_or_else(
        || "nobody knows how long such jobs take".to_owned(),
        |ms| format!("the last one ends at about {}", utc_text(ms)),
    );
    let latest = latest_ms.map_or_else(
        || "one of them has no time limit".to_owned(),
        |ms| format!("at the latest at {}", utc_text(ms)),
    );
    EmptiesView {
        words: format!("{many} left there: {expected}, {latest}"),
        jobs,
        expected_ms,
        latest_ms,
    }
}

#[cfg(test)]
mod tests {
    use fairlead_job::Stage;

    use super::*;
    use crate::testing::{held, state};

    #[test]
    fn the_last_job_decides_when_a_host_is_empty() {
        let quick = JobState {
            dispatch_ms: 1_000,
            running_ms: 2_000,
            ..held()
        };
        let long = JobState {
            timeout_s: 600,
            ..quick.clone()
        };
        let now_ms = 5_000;
        let jobs = |known: Option<u64>| {
            vec![
                leaving_job(&quick, Some(10_000), now_ms),
                leaving_job(&long, known, now_ms),
            ]
        };
        let seen = view(jobs(Some(60_000)));
        assert_eq!(seen.expected_ms, Some(61_000));
        assert!(seen.latest_ms > seen.expected_ms, "{seen:?}");
        assert!(
            seen.words
                .starts_with("2 jobs are left there: the last one ends at about")
        );
        let seen = view(jobs(None));
        assert_eq!((seen.expected_ms, seen.latest_ms.is_some()), (None, true));
        // One that takes longer than others ends at any moment.
        let late = leaving_job(&quick, Some(1_000), now_ms);
        assert_eq!(late.expected_ms, Some(now_ms));
    }

    #[test]
    fn each_stage_may_take_as_long_as_it_may() {
        let end = |job: &JobState| latest_end_ms(job, 5_000);
        let runs = JobState {
            running_ms: 2_000,
            timeout_s: 60,
            ..held()
        };
        // Its time, two minutes more, and half an hour to collect.
        let expected = 2_000 + 60_000 + 120_000 + 1_800_000;
        assert_eq!(end(&runs), Some(expected));
        let put_off = JobState {
            deadline_ms: 1_000_000,
            ..runs.clone()
        };
        assert_eq!(end(&put_off), Some(1_000_000 + 1_800_000));
        let due = JobState {
            finish_by_ms: 9_000,
            ..runs
        };
        assert_eq!(end(&due), Some(9_000));
        let boots = JobState {
            stage: Stage::Boot,
            boot_ms: 3_000,
            ..held()
        };
        let later = 3_000 + (180 + 600 + 60 + 120 + 1_800) * 1_000;
        assert_eq!(end(&boots), Some(later));
        assert_eq!(end(&state(1)), None, "nobody has it");
    }
}
