//! Time limits of jobs that testboxes hold: when each is due, and its effect on the job.

use std::sync::Arc;

use fairlead_dispatch::Millis;
use fairlead_job::{JobId, Stage};
use fairlead_store::JobState;

use crate::jobs::{JobFlow, hand_back::log_outcome};
use fairlead_known::live_jobs::Live;
use fairlead_lifecycle::attempt::{BOOT_SESSION, attempt_over, stopped_unheard};

/// The agent enforces the limit of stage running itself; past this much more, ms, we do.
const RUNNING_SLACK_MS: u64 = 120_000;
/// A job that was told to stop has so long to say that it did, ms, beside the time that was left to it; what it leaves
/// behind is brought home in stage `post_run`, which has its own limit.
const STOPPING_MS: u64 = 120_000;

/// When the present stage began, as its document says, UTC epoch ms; 0: it does not say.
pub(crate) fn stage_began_ms(state: &JobState) -> u64 {
    match state.stage {
        Stage::Dispatch => state.dispatch_ms,
        Stage::Boot => state.boot_ms,
        Stage::Setup => state.setup_ms,
        Stage::WaitPeer => state.wait_peer_ms,
        Stage::Running => state.running_ms,
        Stage::PostRun => state.post_run_ms,
        Stage::ManualCheck => state.manual_check_ms,
        _ => 0,
    }
}

/// How long the present stage may take, ms; `None`: no limit.
fn stage_limit_ms(state: &JobState) -> Option<u64> {
    let began_ms = stage_began_ms(state);
    if state.stage == Stage::Running {
        let own_ms = state.timeout_s.saturating_mul(1000);
        let put_off_ms = state.deadline_ms.saturating_sub(began_ms);
        return Some(own_ms.saturating_add(RUNNING_SLACK_MS).max(put_off_ms));
    }
    let limit_ms = limit_ahead_ms(state, state.stage)?;
    (began_ms > 0).then_some(limit_ms)
}

/// How long a stage that has not begun may take, ms; `None`: no limit.
fn limit_ahead_ms(state: &JobState, stage: Stage) -> Option<u64> {
    if stage == Stage::Running {
        let own_ms = state.timeout_s.saturating_mul(1000);
        return Some(own_ms.saturating_add(RUNNING_SLACK_MS));
    }
    let own_s = state.stage_limits_s.get(&stage).copied();
    let limit_s = own_s.or_else(|| stage.default_timeout_s(state.tbox_type))?;
    Some(limit_s.saturating_mul(1000))
}

/// When a job that a testbox holds is over if each stage takes as long as it may, UTC epoch ms; `None`: a stage of it has
/// no limit, or no testbox holds it.
pub(crate) fn latest_end_ms(state: &JobState, now_ms: u64) -> Option<u64> {
    if !state.stage.is_held() {
        return None;
    }
    let own_ms = stage_began_ms(state).saturating_add(stage_limit_ms(state)?);
    let mut end_ms = own_ms.max(now_ms);
    for stage in [
        Stage::Boot,
        Stage::Setup,
        Stage::WaitPeer,
        Stage::Running,
        Stage::PostRun,
    ] {
        let comes = stage > state.stage && (stage != Stage::WaitPeer || state.cluster.is_some());
        if comes {
            end_ms = end_ms.saturating_add(limit_ahead_ms(state, stage)?);
        }
    }
    let by_ms = Some(state.finish_by_ms).filter(|ms| *ms > 0);
    Some(by_ms.map_or(end_ms, |by_ms| by_ms.min(end_ms)))
}

/// How long a job that was told to stop may take to say that it did, ms.
pub(crate) fn stop_patience_ms(state: &JobState) -> u64 {
    let grace_ms = u64::from(state.stop_grace_s.unwrap_or(0)).saturating_mul(1000);
    STOPPING_MS.saturating_add(grace_ms)
}

/// What passed for a job, on this replica's own clock. A wall clock that steps changes none of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Passed {
    stage: Stage,
    /// Since it is in that stage, ms.
    stage_ms: u64,
    /// Since it was heard that it was told to stop, ms; 0: it was not.
    stopping_ms: u64,
    /// What the wall clock would say now had it not stepped since the job was claimed, UTC epoch ms.
    wall_ms: u64,
}

impl Passed {
    pub(crate) fn of(live: &Live, now: Millis) -> Self {
        let since = |then: Millis| now.0.saturating_sub(then.0);
        Self {
            stage: live.stored.state.stage,
            stage_ms: since(live.stage_since),
            stopping_ms: live.stop_seen.map_or(0, since),
            wall_ms: now.0.saturating_add_signed(live.ahead_ms),
        }
    }

    /// Whether something must be done about a job that a testbox holds: its stage or all of it takes too long, or it
    /// was told to stop and does not. Of a job that is in another stage by now only its deadline counts.
    pub(crate) fn is_due(&self, state: &JobState) -> bool {
        let is_over = |limit_ms: u64| self.stage == state.stage && self.stage_ms > limit_ms;
        let stage_is_over = stage_limit_ms(state).is_some_and(is_over);
        if state.stop_asked && state.stop_ms > 0 {
            let is_home = state.stage != Stage::PostRun || stage_is_over;
            return is_home && self.stopping_ms >= stop_patience_ms(state);
        }
        stage_is_over || self.is_past_deadline(state)
    }

    fn is_past_deadline(&self, state: &JobState) -> bool {
        state.finish_by_ms > 0 && state.finish_by_ms < self.wall_ms
    }
}

/// What becomes of a job of which something is due: it is told to stop; one that nobody can tell, or that was told
/// and does not stop, has ended.
fn overdue(state: &JobState, passed: Passed, now_ms: u64) -> JobState {
    let told = stopped_unheard(state);
    let health = told.unwrap_or_else(|| state.stage.timeout_health());
    let reason = if told.is_some() {
        format!("{}; its testbox did not say that it stopped", state.reason)
    } else if passed.is_past_deadline(state) {
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

impl JobFlow {
    /// A job was told to stop: its host hears it now, if it waits.
    pub(crate) fn tell_to_stop(&self, state: &JobState) {
        self.waiters.hurry_host(&state.host, |_| true);
    }

    /// Looks after a job of which something is due.
    pub(crate) async fn time_out(self: &Arc<Self>, id: JobId, claim_token: &str, passed: Passed) {
        let now_ms = self.ctx.clock.wall_ms();
        let outcome = self
            .change(id, |state| {
                if !passed.is_due(state)
                    || !state.stage.is_held()
                    || state.claim_token != claim_token
                {
                    return Ok(None);
                }
                Ok(Some(overdue(state, passed, now_ms)))
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
    use crate::testing::{flows, held, store_job};
    use fairlead_lifecycle::attempt::lost;

    fn passed(stage: Stage, stage_ms: u64, stopping_ms: u64) -> Passed {
        Passed {
            stage,
            stage_ms,
            stopping_ms,
            wall_ms: 0,
        }
    }

    #[test]
    fn a_stage_that_takes_too_long_is_told_to_stop_and_then_ends_so() {
        let job = JobState {
            stage: Stage::Setup,
            setup_ms: 1_000,
            stage_limits_s: [(Stage::Setup, 5)].into(),
            ..held()
        };
        let over = passed(Stage::Setup, 5_001, 0);
        assert!(over.is_due(&job) && !passed(Stage::Setup, 5_000, 0).is_due(&job));
        assert!(
            !passed(Stage::Boot, 5_001, 0).is_due(&job),
            "it is elsewhere by now"
        );
        let told = overdue(&job, over, 6_001);
        assert_eq!((told.stage, told.stop_asked), (Stage::Setup, true));
        assert!(!passed(Stage::Setup, 9_000, STOPPING_MS - 1).is_due(&told));
        assert!(passed(Stage::Setup, 9_000, STOPPING_MS).is_due(&told));
        // Whether the host is lost or says nothing at all: the machine was too slow, so it is tried again.
        for next in [lost(&told, 7_000, "silent"), overdue(&told, over, 200_000)] {
            assert_eq!((next.stage, next.attempt), (Stage::Submit, 2));
            assert_eq!(next.attempts[0].health, Health::TimeoutSetup);
        }
    }

    /// The clock of the one was minutes ahead of the clock of the other, which had told the job to stop. Seed 8965.
    #[tokio::test]
    async fn a_job_that_was_told_to_stop_has_its_time_on_the_clock_of_whoever_waits() {
        let (_data, flows) = flows().await;
        let told = JobState {
            stage: Stage::Running,
            stop_asked: true,
            stop_ms: flows.ctx.clock.wall_ms() - 10 * STOPPING_MS,
            ..held()
        };
        let job = store_job(&flows, told).await;
        let (id, token) = (job.state.job_id, job.state.claim_token.clone());
        flows.jobs.observe(&job);
        let stage = async || flows.jobs.stored_job(id).await.unwrap().state.stage;
        flows.hosts.look_after(id).await;
        assert_eq!(stage().await, Stage::Running, "it was just heard of");
        flows
            .jobs
            .time_out(id, &token, passed(Stage::Running, 0, 0))
            .await;
        assert_eq!(stage().await, Stage::Running);
        let had_time = passed(Stage::Running, 0, STOPPING_MS);
        flows.jobs.time_out(id, &token, had_time).await;
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
        let patience_ms = STOPPING_MS + 300_000;
        let over = passed(Stage::Running, 1_000_000, patience_ms);
        assert!(over.is_due(&told));
        assert!(!passed(Stage::Running, 1_000_000, patience_ms - 1).is_due(&told));
        let end = overdue(&told, over, 1_000_000);
        assert_eq!((end.stage, end.health), (Stage::Finish, Health::Terminate));
        let lost = JobState {
            stop_health: Some(Health::TimeoutSetup),
            ..told
        };
        let again = overdue(&lost, over, 1_000_000);
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
        assert!(!passed(Stage::PostRun, 1_800_000, 1_801_000).is_due(&told));
        assert!(passed(Stage::PostRun, 1_800_001, 1_801_001).is_due(&told));
    }

    #[test]
    fn a_deadline_counts_in_every_stage_and_nobody_is_asked_who_cannot_hear() {
        let job = JobState {
            finish_by_ms: 500,
            session: format!("{BOOT_SESSION}1"),
            ..held()
        };
        let past = Passed {
            wall_ms: 501,
            ..passed(Stage::Boot, 0, 0)
        };
        assert!(past.is_due(&job) && !passed(Stage::Boot, 0, 0).is_due(&job));
        let end = overdue(&job, past, 501);
        assert_eq!(
            (end.stage, end.health),
            (Stage::Finish, Health::TimeoutRunning)
        );
        assert!(end.reason.contains("deadline"), "{}", end.reason);
    }
}
