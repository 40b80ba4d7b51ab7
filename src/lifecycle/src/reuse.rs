//! Results that other jobs take for their own: which ends count, what a job becomes that takes one, and what an audit
//! compares. Pure.

use fairlead_job::{Cause, DataReadiness, Health, JobId, Stage, WaitOn};
use fairlead_store::{JobState, Reusing, StoredJob};

use crate::{
    alarm::{begin, waiting},
    attempt::MISSING_MS,
    shards::{DATA_COMES_MS, is_data_due},
};
use fairlead_base::text::cut;

/// Result of a job for its reuse key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It has not ended, or its data is incomplete.
    Open,
    /// It succeeded, and its results are complete.
    Good,
    /// It failed by itself, at the end or in an earlier attempt.
    Failed,
    /// No statement: the machine failed, the time limit was reached, or somebody stopped it.
    Nothing,
}

/// Returns true if this health is the fault of the test itself. Time limits do not count, because the key does not
/// contain them.
fn is_own(health: Health) -> bool {
    matches!(
        health.cause(),
        Some(Cause::Fail | Cause::Oom | Cause::Panic)
    )
}

/// Returns the outcome of a job for its key.
pub fn outcome(state: &JobState) -> Outcome {
    if !state.stage.is_terminal() {
        return Outcome::Open;
    }
    if state.reused_from.is_some() || state.stage != Stage::Finish || state.stop_asked {
        return Outcome::Nothing;
    }
    if is_own(state.health) {
        return Outcome::Failed;
    }
    if state.health != Health::Success {
        return Outcome::Nothing;
    }
    if state.attempts.iter().any(|attempt| is_own(attempt.health)) {
        return Outcome::Failed;
    }
    match state.data_readiness {
        DataReadiness::Uploaded | DataReadiness::Complete => Outcome::Good,
        _ if is_data_due(state) => Outcome::Open,
        _ => Outcome::Nothing,
    }
}

/// Returns the job with the result of `origin`. Nothing ran for it, and it does not count as run.
pub fn reused(state: &JobState, origin: &JobState, now_ms: u64) -> JobState {
    let from = origin.reused_from.unwrap_or(origin.job_id);
    let reuse = state.reuse.as_deref().cloned().map(|reuse| {
        let why = String::new();
        Box::new(Reusing { why, ..reuse })
    });
    JobState {
        stage: Stage::Finish,
        health: origin.health,
        data_readiness: origin.data_readiness,
        ready: false,
        // Its results and its log are those of this attempt.
        attempt: origin.attempt,
        result_root: origin.result_root.clone(),
        exit_code: origin.exit_code,
        milestones: origin.milestones.clone(),
        outputs: origin.outputs.clone(),
        cases: origin.cases.clone(),
        end_ms: now_ms,
        waits: None,
        start_ms: 0,
        held_by: String::new(),
        // A reused job does not count among the jobs that ran the same test.
        fingerprint: String::new(),
        reason: format!("it has the result of job {from}; nothing ran"),
        reused_from: Some(from),
        reuse,
        ..state.clone()
    }
    .set_alarm()
}

/// Returns the job waiting for the end of an identical one.
pub fn joining(state: &JobState, to: JobId) -> JobState {
    let next = with_reuse(state, |reuse| reuse.joined = Some(to));
    waiting(next, WaitOn::end_of(to))
}

/// Returns the job with a change of its reuse data.
fn with_reuse(state: &JobState, change: impl FnOnce(&mut Reusing)) -> JobState {
    let mut next = state.clone();
    if let Some(reuse) = next.reuse.as_deref_mut() {
        change(reuse);
    }
    next
}

/// Returns the job running itself, with the reason why it takes no other result.
pub fn runs_itself(state: &JobState, why: &str) -> JobState {
    with_reuse(state, |reuse| {
        cut(why, Reusing::WHY_BYTES_MAX).clone_into(&mut reuse.why);
    })
}

/// Returns the job running although it could take the result of `origin`, so that both are compared.
pub fn audits(state: &JobState, origin: JobId) -> JobState {
    let why = format!("it checks the result of job {origin}: one in a hundred does");
    with_reuse(&runs_itself(state, &why), |reuse| {
        reuse.audit_of = Some(origin);
    })
}

/// Returns true if the new job with this id is among the `percent` audits.
pub fn is_audit(id: JobId, percent: u8) -> bool {
    let hash = blake3::hash(&id.get().to_le_bytes());
    let [a, b, c, d, ..] = *hash.as_bytes();
    u32::from_le_bytes([a, b, c, d]) % 100 < u32::from(percent)
}

/// Returns the job for whose result this one waits.
pub fn joined(state: &JobState) -> Option<JobId> {
    let reuse = state.reuse.as_deref()?;
    reuse
        .joined
        .filter(|_| state.stage == Stage::Submit && state.waits.is_some())
}

/// Returns true if both run the same test for one account. The check is needed because an id may belong to another job
/// by now.
pub fn are_twins(state: &JobState, other: &JobState) -> bool {
    let key = |state: &JobState| state.reuse.as_ref().map(|reuse| reuse.key.clone());
    state.account == other.account && key(state) == key(other)
}

/// Returns true if a result from `end_ms` is older than the job accepts.
pub fn is_too_old(state: &JobState, end_ms: u64, now_ms: u64) -> bool {
    let within_s = state.reuse.as_ref().map_or(0, |reuse| reuse.within_s);
    end_ms.saturating_add(within_s.saturating_mul(1_000)) < now_ms
}

/// Returns the next state of a job that waits for the result of `other`. `None`: it waits on.
pub fn after_joined(state: &JobState, other: Option<&StoredJob>, now_ms: u64) -> Option<JobState> {
    let Some(other) = other.map(|other| &other.state) else {
        let is_late = now_ms >= state.submit_ms.saturating_add(MISSING_MS);
        return is_late.then(|| {
            free(
                state,
                "the job that ran the same thing does not exist",
                now_ms,
            )
        });
    };
    let id = other.job_id;
    if !are_twins(state, other) {
        let why = format!("job {id}, which was to run the same thing, is another job");
        return Some(free(state, &why, now_ms));
    }
    if other.reused_from.is_some() && other.health == Health::Success {
        return Some(reused(state, other, now_ms));
    }
    if joined(other) == Some(state.job_id) && state.job_id < id {
        // Two replicas created them at the same moment, and each found the other one. The older job runs.
        let why = format!("job {id}, which runs the same thing, waits for this one");
        return Some(free(state, &why, now_ms));
    }
    match outcome(other) {
        Outcome::Good => Some(reused(state, other, now_ms)),
        Outcome::Open if !other.stage.is_terminal() => None,
        Outcome::Open if now_ms < other.end_ms.saturating_add(DATA_COMES_MS) => None,
        Outcome::Open => {
            let why = format!("job {id}, which ran the same thing, has no results");
            Some(free(state, &why, now_ms))
        }
        Outcome::Failed | Outcome::Nothing => {
            let health = other.health;
            let why = format!("job {id}, which ran the same thing, ended with {health}");
            Some(free(state, &why, now_ms))
        }
    }
}

/// Returns the job no longer waiting for a result, so that it runs itself.
pub fn free(state: &JobState, why: &str, now_ms: u64) -> JobState {
    let free = JobState {
        waits: None,
        ..runs_itself(state, why)
    };
    begin(free, now_ms)
}

/// Returns how the end of an audit differs from the audited result. `None`: no difference, or no statement.
pub fn differs(audit: &JobState, origin: &JobState) -> Option<String> {
    let (id, from) = (audit.job_id, origin.job_id);
    match outcome(audit) {
        Outcome::Failed => {
            let health = audit.health;
            Some(format!(
                "job {id} failed ({health}) where job {from} had succeeded"
            ))
        }
        Outcome::Good if audit.cases != origin.cases => Some(format!(
            "job {id} and job {from} have other test cases: {} and {}",
            cases(audit),
            cases(origin)
        )),
        Outcome::Good | Outcome::Open | Outcome::Nothing => None,
    }
}

fn cases(state: &JobState) -> String {
    let Some(cases) = &state.cases else {
        return "none".to_owned();
    };
    format!(
        "{} passed, {} failed, {} skipped",
        cases.passed, cases.failed, cases.skipped
    )
}

#[cfg(test)]
mod tests {
    use fairlead_store::{Attempt, CaseCounts, Version};
    use proptest::prelude::*;

    use super::*;
    use fairlead_fixtures::{held, state};

    fn good(n: u64) -> JobState {
        JobState {
            job_id: JobId::new(n),
            stage: Stage::Finish,
            health: Health::Success,
            data_readiness: DataReadiness::Complete,
            end_ms: 20,
            reuse: Some(reusing("k")),
            ..held()
        }
    }

    fn reusing(key: &str) -> Box<Reusing> {
        Box::new(Reusing {
            key: key.to_owned(),
            within_s: 60,
            ..Reusing::default()
        })
    }

    fn waiting(n: u64) -> JobState {
        JobState {
            reuse: Some(reusing("k")),
            ..state(n)
        }
    }

    fn failed_attempt(health: Health) -> Attempt {
        Attempt {
            attempt: 1,
            host: "h".to_owned(),
            host_class: String::new(),
            session: String::new(),
            claim_token: String::new(),
            stage: Stage::Running,
            health,
            dispatch_ms: 1,
            end_ms: 2,
            reason: String::new(),
        }
    }

    #[test]
    fn only_whole_successes_count_and_only_own_failures_tell() {
        use Outcome::{Failed, Good, Nothing, Open};
        let with = |change: &dyn Fn(&mut JobState)| {
            let mut state = good(1);
            change(&mut state);
            outcome(&state)
        };
        assert_eq!(with(&|_| {}), Good);
        assert_eq!(with(&|s| s.stage = Stage::Running), Open);
        assert_eq!(
            with(&|s| s.data_readiness = DataReadiness::Incomplete),
            Open
        );
        assert_eq!(with(&|s| s.data_readiness = DataReadiness::Norun), Nothing);
        assert_eq!(with(&|s| s.health = Health::Fail), Failed);
        assert_eq!(with(&|s| s.health = Health::Panic), Failed);
        assert_eq!(with(&|s| s.health = Health::TimeoutRunning), Nothing);
        assert_eq!(with(&|s| s.health = Health::AbortProvider), Nothing);
        assert_eq!(with(&|s| s.stop_asked = true), Nothing);
        assert_eq!(with(&|s| s.reused_from = Some(JobId::new(9))), Nothing);
        let again = |health| with(&|s| s.attempts.push(failed_attempt(health)));
        assert_eq!(
            again(Health::Fail),
            Failed,
            "it passed only the second time"
        );
        assert_eq!(again(Health::AbortProvider), Good);
    }

    #[test]
    fn a_reused_job_has_the_result_and_never_ran() {
        let mut origin = good(1);
        origin.attempt = 3;
        origin.result_root = "/result/x/1.3".to_owned();
        origin.cases = Some(Box::new(CaseCounts {
            passed: 4,
            ..CaseCounts::default()
        }));
        let job = reused(
            &JobState {
                fingerprint: "p".to_owned(),
                ..waiting(2)
            },
            &origin,
            77,
        );
        assert_eq!(
            (job.stage, job.health, job.end_ms),
            (Stage::Finish, Health::Success, 77)
        );
        assert_eq!(
            (job.attempt, job.result_root.as_str()),
            (3, "/result/x/1.3")
        );
        assert_eq!(
            (job.cases, job.reused_from),
            (origin.cases.clone(), Some(origin.job_id))
        );
        let times = [job.dispatch_ms, job.running_ms, job.used_ms, job.alarm_ms];
        assert_eq!(
            (times, job.host.as_str(), job.fingerprint.as_str()),
            ([0; 4], "", "")
        );
        // The result of a reused job is that of the first job.
        let again = reused(
            &waiting(3),
            &JobState {
                reused_from: job.reused_from,
                ..origin
            },
            78,
        );
        assert_eq!(again.reused_from, Some(JobId::new(1)));
    }

    fn stored(state: JobState) -> StoredJob {
        StoredJob {
            state,
            version: Version::default(),
        }
    }

    /// Regression test of seed 120001.
    #[test]
    fn of_two_jobs_that_joined_each_other_the_older_one_runs() {
        let joins = |id, of| joining(&waiting(id), JobId::new(of));
        let other = |id, of| stored(joins(id, of));
        let runs = after_joined(&joins(3, 4), Some(&other(4, 3)), 30).unwrap();
        assert!(runs.ready && runs.waits.is_none());
        assert_eq!(after_joined(&joins(4, 3), Some(&other(3, 4)), 30), None);
        assert_eq!(after_joined(&joins(3, 4), Some(&other(4, 5)), 30), None);
    }

    #[test]
    fn a_joined_job_gets_the_result_or_runs_itself() {
        let job = joining(&waiting(2), JobId::new(1));
        assert_eq!((job.ready, joined(&job)), (false, Some(JobId::new(1))));
        let after = |other: JobState, now_ms| after_joined(&job, Some(&stored(other)), now_ms);
        let running = JobState {
            reuse: Some(reusing("k")),
            ..held()
        };
        assert_eq!(after(running, 30), None);
        let got = after(good(1), 30).unwrap();
        assert_eq!(
            (got.stage, got.reused_from),
            (Stage::Finish, Some(JobId::new(1)))
        );
        let failed = after(
            JobState {
                health: Health::Fail,
                ..good(1)
            },
            30,
        )
        .unwrap();
        assert_eq!(
            (failed.stage, failed.ready, failed.ready_ms),
            (Stage::Submit, true, 30)
        );
        assert!(failed.reuse.unwrap().why.contains("ended with fail"));
        let due = JobState {
            data_readiness: DataReadiness::Incomplete,
            ..good(1)
        };
        assert_eq!(after(due.clone(), 30), None);
        let late = after(due, 20 + DATA_COMES_MS).unwrap();
        assert_eq!((late.ready, late.reused_from), (true, None));
        let of_another_thing = JobState {
            reuse: Some(reusing("l")),
            ..good(1)
        };
        let of_another = JobState {
            account: "other".to_owned(),
            ..good(1)
        };
        for other in [of_another_thing, of_another] {
            let next = after(other, 30).unwrap();
            assert_eq!((next.ready, next.reused_from), (true, None));
            assert!(next.reuse.unwrap().why.contains("is another job"));
        }
        assert_eq!(after_joined(&job, None, 30), None);
        assert!(after_joined(&job, None, 1 + MISSING_MS).unwrap().ready);
        let cancelled = JobState {
            stage: Stage::Cancel,
            health: Health::Cancel,
            ..good(1)
        };
        assert!(after(cancelled, 30).unwrap().ready);
    }

    #[test]
    fn an_audit_compares_health_and_cases() {
        let origin = good(1);
        assert_eq!(differs(&good(2), &origin), None);
        assert_eq!(differs(&held(), &origin), None, "it runs");
        let lost = JobState {
            health: Health::AbortProvider,
            ..good(2)
        };
        assert_eq!(differs(&lost, &origin), None, "the machine failed");
        let failed = JobState {
            health: Health::Fail,
            ..good(2)
        };
        assert!(differs(&failed, &origin).unwrap().contains("failed (fail)"));
        let cases = CaseCounts {
            passed: 1,
            ..CaseCounts::default()
        };
        let other = JobState {
            cases: Some(Box::new(cases)),
            ..good(2)
        };
        assert!(differs(&other, &origin).unwrap().contains("1 passed"));
    }

    #[test]
    fn one_in_a_hundred_is_an_audit() {
        let ids = (0..20_000).map(|n| JobId::new(2_611_242_328_437_900_000 + n));
        let audits = ids.filter(|id| is_audit(*id, 1)).count();
        assert!((120..300).contains(&audits), "{audits}");
        assert!((0..100).all(|n| is_audit(JobId::new(n), 100) && !is_audit(JobId::new(n), 0)));
    }

    proptest! {
        /// Checks that a reused job never ran and has the health of its origin, in whatever state it was before.
        #[test]
        fn a_reused_job_is_never_charged(n in 1_u64..1_000, attempt in 1_u16..9, now_ms in 1_u64..1_000_000) {
            let origin = JobState { attempt, ..good(n) };
            let job = reused(&waiting(n + 1), &origin, now_ms);
            prop_assert!(job.stage.is_terminal() && !job.ready && job.waits.is_none());
            prop_assert_eq!((job.dispatch_ms, job.running_ms, job.used_ms), (0, 0, 0));
            prop_assert_eq!(outcome(&job), Outcome::Nothing);
            prop_assert_eq!(reused(&job, &origin, now_ms), job);
        }
    }
}
