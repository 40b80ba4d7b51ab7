//! Time limits of jobs that testboxes have: when something is due, and what becomes of the job then.

use std::sync::Arc;

use fairlead_job::{JobId, Stage};
use fairlead_store::JobState;

use crate::{
    core::Core,
    lease::{BOOT_SESSION, attempt_over, log_outcome, stopped_unheard},
};

/// The agent enforces the limit of stage running itself; past this much more, ms, we do.
const RUNNING_SLACK_MS: u64 = 120_000;
/// A job that was told to stop has so long to say that it did, ms, beside the time that was left to it; what it leaves
/// behind is brought home in stage `post_run`, which has its own limit.
const STOPPING_MS: u64 = 120_000;

/// When the present stage must be over, UTC epoch ms; `None`: no limit.
fn stage_until_ms(state: &JobState) -> Option<u64> {
    let began_ms = match state.stage {
        Stage::Dispatch => state.dispatch_ms,
        Stage::Boot => state.boot_ms,
        Stage::Setup => state.setup_ms,
        Stage::WaitPeer => state.wait_peer_ms,
        Stage::Running => {
            let limit_ms = state.timeout_s.saturating_mul(1000);
            let until_ms = state.running_ms.saturating_add(limit_ms);
            return Some(
                until_ms
                    .saturating_add(RUNNING_SLACK_MS)
                    .max(state.deadline_ms),
            );
        }
        Stage::PostRun => state.post_run_ms,
        Stage::ManualCheck => state.manual_check_ms,
        _ => 0,
    };
    let own_s = state.stage_limits_s.get(&state.stage).copied();
    let limit_s = own_s.or_else(|| state.stage.default_timeout_s(state.tbox_type))?;
    (began_ms > 0).then(|| began_ms.saturating_add(limit_s.saturating_mul(1000)))
}

/// How long a job that was told to stop may take to say that it did, ms.
pub(crate) fn stop_patience_ms(state: &JobState) -> u64 {
    let grace_ms = u64::from(state.stop_grace_s.unwrap_or(0)).saturating_mul(1000);
    STOPPING_MS.saturating_add(grace_ms)
}

/// When something must be done about a job that a testbox holds, UTC epoch ms: its stage or all of it takes too
/// long, or it was told to stop and does not. `None`: never.
pub(crate) fn due_ms(state: &JobState) -> Option<u64> {
    if state.stop_asked && state.stop_ms > 0 {
        let told_ms = state.stop_ms.saturating_add(stop_patience_ms(state));
        let home_ms = stage_until_ms(state).filter(|_| state.stage == Stage::PostRun);
        return Some(home_ms.map_or(told_ms, |home_ms| told_ms.max(home_ms)));
    }
    let by_ms = Some(state.finish_by_ms).filter(|ms| *ms > 0);
    [stage_until_ms(state), by_ms].into_iter().flatten().min()
}

/// What becomes of a job of which something is due: it is told to stop; one that nobody can tell, or that was told
/// and does not stop, has ended.
fn overdue(state: &JobState, now_ms: u64) -> JobState {
    let told = stopped_unheard(state);
    let health = told.unwrap_or_else(|| state.stage.timeout_health());
    let reason = if told.is_some() {
        format!("{}; its testbox did not say that it stopped", state.reason)
    } else if state.finish_by_ms > 0 && state.finish_by_ms <= now_ms {
        format!("not over by its deadline, in stage {}", state.stage)
    } else {
        format!("too long in stage {}", state.stage)
    };
    if told.is_some() || state.session.starts_with(BOOT_SESSION) {
        return attempt_over(state, health, now_ms, &reason);
    }
    JobState {
        stop_asked: true,
        stop_ms: now_ms,
        stop_health: Some(health),
        reason,
        ..state.clone()
    }
}

impl Core {
    /// Looks after a job of which something is due. `had_time`: if it was told to stop, so long ago on this replica's own
    /// clock that it should have. Whoever told it may have another wall clock.
    pub(crate) async fn time_out(self: &Arc<Self>, id: JobId, claim_token: &str, had_time: bool) {
        let now_ms = self.clock.wall_ms();
        let outcome = self
            .change(id, |state| {
                let is_due = due_ms(state).is_some_and(|due_ms| due_ms < now_ms);
                let is_due = is_due && (had_time || !state.stop_asked);
                if !is_due || !state.stage.is_held() || state.claim_token != claim_token {
                    return Ok(None);
                }
                Ok(Some(overdue(state, now_ms)))
            })
            .await;
        match outcome {
            Ok(changed) if changed.after.state.stage.is_held() => {
                self.tell_to_stop(&changed.after.state);
            }
            Ok(_) => {}
            Err(refusal) => {
                let what = "a time limit could not be recorded; tried again";
                log_outcome(id, what, Some(refusal));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use fairlead_job::Health;

    use super::*;
    use crate::{
        lease::lost,
        testing::{core, held, store_job},
    };

    #[test]
    fn a_stage_that_takes_too_long_is_told_to_stop_and_then_ends_so() {
        let job = JobState {
            stage: Stage::Setup,
            setup_ms: 1_000,
            stage_limits_s: [(Stage::Setup, 5)].into(),
            ..held()
        };
        assert_eq!(due_ms(&job), Some(6_000));
        let told = overdue(&job, 6_001);
        assert_eq!((told.stage, told.stop_asked), (Stage::Setup, true));
        assert_eq!(due_ms(&told), Some(6_001 + STOPPING_MS));
        // Whether the host is lost or says nothing at all: the machine was too slow, so it is tried again.
        for next in [lost(&told, 7_000, "silent"), overdue(&told, 200_000)] {
            assert_eq!((next.stage, next.attempt), (Stage::Submit, 2));
            assert_eq!(next.attempts[0].health, Health::TimeoutSetup);
        }
    }

    /// The clock of the one was minutes ahead of the clock of the other, which had told the job to stop. Seed 8965.
    #[tokio::test]
    async fn a_job_that_was_told_to_stop_has_its_time_on_the_clock_of_whoever_waits() {
        let (_data, core) = core().await;
        let told = JobState {
            stage: Stage::Running,
            stop_asked: true,
            stop_ms: core.clock.wall_ms() - 10 * STOPPING_MS,
            ..held()
        };
        let job = store_job(&core, told).await;
        let (id, token) = (job.state.job_id, job.state.claim_token.clone());
        core.observe(&job);
        let stage = async || core.stored_job(id).await.unwrap().state.stage;
        core.look_after(id).await;
        assert_eq!(stage().await, Stage::Running, "it was just heard of");
        core.time_out(id, &token, false).await;
        assert_eq!(stage().await, Stage::Running);
        core.time_out(id, &token, true).await;
        assert_eq!(stage().await, Stage::Finish);
    }

    #[test]
    fn who_leaves_a_job_time_to_stop_is_waited_with() {
        let told = JobState {
            stop_asked: true,
            stop_ms: 9_000,
            stop_grace_s: Some(300),
            timeout_s: 1,
            ..held()
        };
        assert_eq!(due_ms(&told), Some(9_000 + STOPPING_MS + 300_000));
        let end = overdue(&told, 1_000_000);
        assert_eq!((end.stage, end.health), (Stage::Finish, Health::Terminate));
        let lost = JobState {
            stop_health: Some(Health::TimeoutSetup),
            ..told
        };
        let again = overdue(&lost, 1_000_000);
        assert_eq!((again.stage, again.stop_grace_s), (Stage::Submit, None));
    }

    #[test]
    fn what_a_stopped_job_leaves_has_the_time_of_its_stage_to_come_home() {
        let told = JobState {
            stage: Stage::PostRun,
            post_run_ms: 10_000,
            stop_asked: true,
            stop_ms: 9_000,
            ..held()
        };
        assert_eq!(due_ms(&told), Some(10_000 + 1_800_000));
    }

    #[test]
    fn a_deadline_counts_in_every_stage_and_nobody_is_asked_who_cannot_hear() {
        let job = JobState {
            finish_by_ms: 500,
            session: format!("{BOOT_SESSION}1"),
            ..held()
        };
        assert_eq!(due_ms(&job), Some(500));
        let end = overdue(&job, 501);
        assert_eq!(
            (end.stage, end.health),
            (Stage::Finish, Health::TimeoutRunning)
        );
        assert!(end.reason.contains("deadline"), "{}", end.reason);
    }
}
