//! What becomes of a job whose grant was not delivered, whose lease was lost or whose time is up.
//!
//! When that is so is judged in `renewal`.

use std::sync::Arc;

use fairlead_job::{DataReadiness, Health, JobId, Stage};
use fairlead_store::{Attempt, JobState};
use serde_json::json;

use crate::{
    core::Core, jobs::Changed, metrics::Returned, parked, refusal::Refusal, results::attempt_root,
};

/// The agent enforces the limit of stage running itself; past this much more, seconds, we do.
const RUNNING_SLACK_S: u64 = 120;
/// Most earlier attempts kept in a job's state.
const ATTEMPTS_KEPT: usize = 20;
/// Sessions of testboxes that boot by themselves (iPXE, grub): they send no heartbeats.
pub(crate) const BOOT_SESSION: &str = "boot:";

/// The state of a job that goes back because its grant was never delivered: the attempt does not count.
pub(crate) fn given_back(state: &JobState, now_ms: u64, reason: &str) -> JobState {
    if state.stop_asked {
        return ended(state, Stage::Finish, Health::Terminate, now_ms, reason);
    }
    let mut next = waiting_again(state, now_ms);
    reason.clone_into(&mut next.reason);
    next
}

/// The state of a job whose attempt ended with `health` and may be tried again (`again`) or not.
pub(crate) fn attempt_over(
    state: &JobState,
    health: Health,
    again: bool,
    now_ms: u64,
    reason: &str,
) -> JobState {
    if !again {
        return ended(state, Stage::Finish, health, now_ms, reason);
    }
    let mut next = waiting_again(state, now_ms);
    next.attempts.push(Attempt {
        attempt: state.attempt,
        host: state.host.clone(),
        session: state.session.clone(),
        claim_token: state.claim_token.clone(),
        stage: state.stage,
        health,
        dispatch_ms: state.dispatch_ms,
        end_ms: now_ms,
        reason: reason.to_owned(),
    });
    if next.attempts.len() > ATTEMPTS_KEPT {
        next.attempts.remove(0);
    }
    next.attempt = state.attempt.saturating_add(1);
    next.result_root = attempt_root(&state.result_root, state.attempt, next.attempt);
    next.reason = format!("attempt {} ended with {health}: {reason}", state.attempt);
    next
}

/// The state of a job that ended for good.
pub(crate) fn ended(
    state: &JobState,
    stage: Stage,
    health: Health,
    now_ms: u64,
    reason: &str,
) -> JobState {
    let mut next = state.clone();
    if health != Health::Success {
        next.last_success_stage = Some(state.stage);
    }
    next.stage = stage;
    next.health = health;
    next.end_ms = now_ms;
    next.ready = false;
    next.waits = None;
    if next.data_readiness < DataReadiness::Uploaded {
        next.data_readiness = if state.running_ms == 0 {
            DataReadiness::Norun
        } else {
            DataReadiness::Incomplete
        };
    }
    reason.clone_into(&mut next.reason);
    next
}

fn waiting_again(state: &JobState, now_ms: u64) -> JobState {
    JobState {
        stage: Stage::Submit,
        health: Health::Unknown,
        data_readiness: DataReadiness::None,
        ready: true,
        ready_ms: now_ms,
        host: String::new(),
        host_group: String::new(),
        host_memory_mb: 0,
        session: String::new(),
        request: 0,
        claim_token: String::new(),
        claim_seq: state.claim_seq.wrapping_add(1),
        replica: String::new(),
        dispatch_ms: 0,
        boot_ms: 0,
        setup_ms: 0,
        running_ms: 0,
        post_run_ms: 0,
        end_ms: 0,
        deadline_ms: 0,
        last_success_stage: None,
        exit_code: None,
        stop_asked: false,
        milestones: Vec::new(),
        ..state.clone()
    }
}

/// What a lost lease does to a job: asked to stop, it has stopped; else it is tried again or given up.
pub(crate) fn lost(state: &JobState, now_ms: u64, reason: &str) -> JobState {
    if state.stop_asked {
        return ended(state, Stage::Finish, Health::Terminate, now_ms, reason);
    }
    let again = state.retry_lost_left > 0;
    let mut next = attempt_over(state, Health::AbortProvider, again, now_ms, reason);
    next.retry_lost_left = state.retry_lost_left.saturating_sub(u16::from(again));
    if again {
        let pause_ms = parked::pause_ms(next.job_id, next.attempt);
        next.ready = false;
        next.waits = Some(parked::until(now_ms.saturating_add(pause_ms)));
    }
    next
}

/// When the present stage must be over, UTC epoch ms; `None`: no limit.
pub(crate) fn stage_deadline_ms(state: &JobState) -> Option<u64> {
    let began = match state.stage {
        Stage::Dispatch => state.dispatch_ms,
        Stage::Boot => state.boot_ms,
        Stage::Setup => state.setup_ms,
        Stage::Running => {
            let limit = state.running_ms.saturating_add(
                (state.timeout_s.saturating_add(RUNNING_SLACK_S)).saturating_mul(1000),
            );
            return Some(limit.max(state.deadline_ms));
        }
        Stage::PostRun => state.post_run_ms,
        _ => 0,
    };
    let limit_s = state.stage.default_timeout_s(state.tbox_type)?;
    (began > 0).then(|| began.saturating_add(limit_s.saturating_mul(1000)))
}

fn stage_timeout_health(stage: Stage) -> Health {
    match stage {
        Stage::Dispatch => Health::TimeoutDispatch,
        Stage::Boot => Health::TimeoutBoot,
        Stage::Setup => Health::TimeoutSetup,
        Stage::PostRun => Health::TimeoutPostRun,
        _ => Health::TimeoutRunning,
    }
}

impl Core {
    /// Puts a job back that its host never got, if it is still that claim's. Costs no attempt.
    pub(crate) async fn give_back(self: &Arc<Self>, id: JobId, claim_token: &str, reason: &str) {
        let now_ms = self.clock.wall_ms();
        let outcome = self
            .change(id, |state| {
                let same = state.stage == Stage::Dispatch && state.claim_token == claim_token;
                Ok(same.then(|| given_back(state, now_ms, reason)))
            })
            .await;
        if outcome.as_ref().is_ok_and(Changed::is_change) {
            self.metrics.returned(Returned::Undelivered);
        }
        log_outcome(
            id,
            "a job could not be put back; its lease will run out",
            outcome.err(),
        );
    }

    /// Ends the lease of a job if it is still that claim's.
    pub(crate) async fn lose(self: &Arc<Self>, id: JobId, claim_token: &str, reason: &str) {
        self.lose_if(id, reason, |state| state.claim_token == claim_token)
            .await;
    }

    /// Ends the lease of a job that nobody heard of: a state that changed meanwhile is a sign of life, and then
    /// this is `false`.
    pub(crate) async fn lose_silent(self: &Arc<Self>, judged: &JobState, reason: &str) -> bool {
        self.lose_if(judged.job_id, reason, |state| state == judged)
            .await
    }

    async fn lose_if(
        self: &Arc<Self>,
        id: JobId,
        reason: &str,
        is_meant: impl Fn(&JobState) -> bool + Send + Sync,
    ) -> bool {
        let now_ms = self.clock.wall_ms();
        let outcome = self
            .change(id, |state| {
                if !state.stage.is_held() || !is_meant(state) {
                    return Ok(None);
                }
                if state.stage == Stage::Dispatch {
                    return Ok(Some(given_back(state, now_ms, reason)));
                }
                Ok(Some(lost(state, now_ms, reason)))
            })
            .await;
        match outcome {
            Ok(changed) if changed.is_change() => {
                self.metrics.returned(Returned::Lost);
                self.parked.add_own(&changed.after.state);
                let (host, attempt) = (&changed.before.state.host, changed.before.state.attempt);
                let detail = json!({ "host": host, "attempt": attempt, "reason": reason });
                self.note(&self.config.replica, "job.lost", &id.to_string(), detail);
                true
            }
            Ok(_) => false,
            Err(refusal) => {
                let what = "a lost lease could not be recorded; tried again";
                log_outcome(id, what, Some(refusal));
                // It may be in, or come in.
                true
            }
        }
    }

    /// Ends a stage that took too long.
    pub(crate) async fn time_out(self: &Arc<Self>, id: JobId, claim_token: &str) {
        let now_ms = self.clock.wall_ms();
        let outcome = self
            .change(id, |state| {
                let past = stage_deadline_ms(state).is_some_and(|deadline| deadline < now_ms);
                if !past || !state.stage.is_held() || state.claim_token != claim_token {
                    return Ok(None);
                }
                let reason = format!("too long in stage {}", state.stage);
                Ok(Some(ended(
                    state,
                    Stage::Finish,
                    stage_timeout_health(state.stage),
                    now_ms,
                    &reason,
                )))
            })
            .await;
        log_outcome(
            id,
            "a time limit could not be recorded; tried again",
            outcome.err(),
        );
    }
}

fn log_outcome(id: JobId, what: &str, refusal: Option<Refusal>) {
    if let Some(refusal) = refusal {
        tracing::warn!(job_id = %id, error = refusal.body.message, "{what}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::state;

    fn held() -> JobState {
        JobState {
            stage: Stage::Running,
            host: "a66".into(),
            session: "s".into(),
            request: 4,
            claim_token: "t".into(),
            dispatch_ms: 5,
            running_ms: 9,
            result_root: "/result/x/1".into(),
            retry_lost_left: 1,
            ..state(1)
        }
    }

    #[test]
    fn an_undelivered_grant_goes_back_without_costing_an_attempt() {
        let before = JobState {
            stage: Stage::Dispatch,
            ..held()
        };
        let after = given_back(&before, 100, "nobody took it");
        assert_eq!(
            (after.stage, after.attempt, after.retry_lost_left),
            (Stage::Submit, 1, 1)
        );
        assert!(
            after.claim_token.is_empty()
                && after.host.is_empty()
                && after.attempts.is_empty()
                && after.ready
        );
    }

    #[test]
    fn a_lost_lease_is_a_new_attempt_while_tries_remain_and_then_the_end() {
        let second = lost(&held(), 100, "silent");
        assert_eq!(
            (second.stage, second.attempt, second.retry_lost_left),
            (Stage::Submit, 2, 0)
        );
        assert_eq!(second.attempts.len(), 1);
        assert_eq!(second.attempts[0].claim_token, "t");
        assert_eq!(second.result_root, "/result/x/1.2");
        let held_again = JobState {
            stage: Stage::Running,
            claim_token: "u".into(),
            ..second
        };
        let end = lost(&held_again, 200, "silent again");
        assert_eq!(
            (end.stage, end.health, end.attempt),
            (Stage::Finish, Health::AbortProvider, 2)
        );
    }

    #[test]
    fn a_job_that_was_told_to_stop_and_is_silent_has_stopped() {
        let end = lost(
            &JobState {
                stop_asked: true,
                ..held()
            },
            100,
            "silent",
        );
        assert_eq!((end.stage, end.health), (Stage::Finish, Health::Terminate));
    }
}
