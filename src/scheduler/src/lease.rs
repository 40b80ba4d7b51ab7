//! What becomes of a job whose grant was not delivered, whose lease was lost.
//!
//! When that is so is judged in `renewal`.

use std::sync::Arc;

use fairlead_dispatch::NOT_ON_MAX;
use fairlead_job::{Cause, DataReadiness, Health, JobId, Stage};
use fairlead_store::{Attempt, ClusterPlace, JobState};
use serde_json::json;

use crate::{
    alarms, core::Core, doubts::touched, jobs::Changed, metrics::Returned, refusal::Refusal,
    results::attempt_root,
};

/// Longest time that whoever stops a job may leave it after the polite signal, seconds: agents wait no longer.
pub(crate) const STOP_GRACE_MAX_S: u32 = 3_600;
/// Most earlier attempts kept in a job's state.
const ATTEMPTS_KEPT: usize = NOT_ON_MAX;
/// How long after its submit a job's body may still come, ms: longer than a submit may take to be answered.
const BODY_COMES_MS: u64 = 60_000;
/// How long until a job without one is handed out again, ms.
const BODY_AGAIN_MS: u64 = 5_000;
/// How long a job waits for the key of its secrets, ms: an operator may be importing it.
const KEY_COMES_MS: u64 = 60_000;
/// Why a job waits for that, and why it ends.
const NO_KEY: &str = "its secrets cannot be opened: they are sealed with a key that this lab does not have (an operator can import it)";
/// Sessions of testboxes that boot by themselves (iPXE, grub): they send no heartbeats.
pub(crate) const BOOT_SESSION: &str = "boot:";

/// A claim as it was known: the job, its token, and how often it was made sure of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KnownClaim {
    id: JobId,
    token: String,
    seq: u32,
}

impl KnownClaim {
    pub(crate) fn of(state: &JobState) -> Self {
        Self {
            id: state.job_id,
            token: state.claim_token.clone(),
            seq: state.claim_seq,
        }
    }
}

/// The state of a job that goes back because its grant was never delivered: the attempt does not count.
pub(crate) fn given_back(state: &JobState, now_ms: u64, reason: &str) -> JobState {
    if let Some(health) = stopped_unheard(state) {
        return attempt_over(state, health, now_ms, reason);
    }
    let mut next = waiting_again(state, now_ms);
    reason.clone_into(&mut next.reason);
    next
}

/// The state of a claimed job whose body is not in the store. A submit writes both documents at once, but with a node
/// that hangs one is there long before the other: the job waits for it a while. A half that never comes was never
/// acknowledged.
pub(crate) fn without_body(state: &JobState, now_ms: u64) -> JobState {
    let reason = "its body is not in the store";
    if now_ms.saturating_sub(state.submit_ms) >= BODY_COMES_MS {
        return ended(
            state,
            Stage::AbortInvalid,
            Health::AbortInvalid,
            now_ms,
            reason,
        );
    }
    not_before(given_back(state, now_ms, reason), now_ms, BODY_AGAIN_MS)
}

/// The state of a claimed job whose secrets cannot be opened: it waits for the key once, and then ends. Without its
/// secrets it would only fail in a way that nobody understands.
pub(crate) fn without_key(state: &JobState, now_ms: u64) -> JobState {
    if state.reason == NO_KEY {
        let end = Stage::AbortInvalid;
        return ended(state, end, Health::AbortInvalid, now_ms, NO_KEY);
    }
    not_before(given_back(state, now_ms, NO_KEY), now_ms, KEY_COMES_MS)
}

/// The same, not handed out for so long.
fn not_before(mut next: JobState, now_ms: u64, for_ms: u64) -> JobState {
    if next.stage == Stage::Submit {
        next.ready = false;
        next.start_ms = next.start_ms.max(now_ms.saturating_add(for_ms));
    }
    next
}

/// The state of a job whose attempt ended with `health`: it waits for the next one while its tries for such ends
/// last, else it has ended.
pub(crate) fn attempt_over(
    state: &JobState,
    health: Health,
    now_ms: u64,
    reason: &str,
) -> JobState {
    // Whoever stopped it wants no other attempt.
    let stopped = stopped_with(state) == Some(Health::Terminate);
    let cause = health.cause().filter(|_| !stopped);
    let goes_along = left_behind(state);
    let mut next = waiting_again(state, now_ms);
    let left = match cause {
        Some(Cause::Infra) => Some(&mut next.retry_lost_left),
        Some(own) if state.retry_on.is_empty() || state.retry_on.contains(&own) => {
            Some(&mut next.retry_fail_left)
        }
        _ => None,
    };
    match left.filter(|left| **left > 0) {
        // A peer's try is used up, not its own.
        _ if goes_along && !stopped => {}
        Some(left) => *left -= 1,
        None => return ended(state, Stage::Finish, health, now_ms, reason),
    }
    next.attempt = state.attempt.saturating_add(1);
    let pause_ms = alarms::pause_ms(&next);
    let begins_ms = now_ms.saturating_add(pause_ms);
    if (1..=begins_ms).contains(&state.finish_by_ms) {
        // No time is left for another one.
        return ended(state, Stage::Finish, health, now_ms, reason);
    }
    if let Some(place) = &mut next.cluster
        && !goes_along
    {
        // A try is the whole cluster's: the others follow.
        place.round = place.round.saturating_add(1);
    }
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
    if state.retry_elsewhere && !next.not_on.contains(&state.host) {
        next.not_on.push(state.host.clone());
        if next.not_on.len() > NOT_ON_MAX {
            next.not_on.remove(0);
        }
    }
    next.result_root = attempt_root(&state.result_root, state.attempt, next.attempt);
    next.reason = format!("attempt {} ended with {health}: {reason}", state.attempt);
    next.ready = pause_ms == 0;
    next.start_ms = if pause_ms == 0 { 0 } else { begins_ms };
    next
}

/// The state of a waiting job that somebody cancels.
pub(crate) fn cancelled(state: &JobState, now_ms: u64, reason: &str) -> JobState {
    JobState {
        data_readiness: DataReadiness::Norun,
        ..ended(state, Stage::Cancel, Health::Cancel, now_ms, reason)
    }
}

/// The state of a job that its testbox is told to stop; `None`: it is told already.
pub(crate) fn to_be_stopped(state: &JobState, now_ms: u64, reason: &str) -> Option<JobState> {
    (!state.stop_asked).then(|| JobState {
        stop_asked: true,
        stop_ms: now_ms,
        reason: reason.to_owned(),
        ..state.clone()
    })
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
        wait_peer_ms: 0,
        running_ms: 0,
        post_run_ms: 0,
        manual_check_ms: 0,
        end_ms: 0,
        deadline_ms: 0,
        last_success_stage: None,
        exit_code: None,
        stop_asked: false,
        stop_ms: 0,
        stop_health: None,
        stop_grace_s: None,
        milestones: Vec::new(),
        cluster: state.cluster.clone().map(|place| ClusterPlace {
            met: 0,
            address: String::new(),
            ..place
        }),
        ..state.clone()
    }
}

/// Whether a job runs a round of its cluster that is over: its peers wait for it to run again.
fn left_behind(state: &JobState) -> bool {
    let place = state.cluster.as_ref();
    place.is_some_and(ClusterPlace::is_left_behind)
}

/// Adds to what testboxes spent on a job the attempt that ends by this change, if one does.
pub(crate) fn count_used(before: &JobState, wanted: JobState, now_ms: u64) -> JobState {
    let ends = wanted.attempt > before.attempt || wanted.stage.is_terminal();
    if !before.stage.is_held() || !ends {
        return wanted;
    }
    let took_ms = now_ms.saturating_sub(before.dispatch_ms);
    JobState {
        used_ms: before.used_ms.saturating_add(took_ms),
        used_at_ms: now_ms,
        ..wanted
    }
}

/// What a lost lease does to a job: told to stop, it has stopped; else it is tried again or given up.
pub(crate) fn lost(state: &JobState, now_ms: u64, reason: &str) -> JobState {
    let health = stopped_unheard(state).unwrap_or(Health::AbortProvider);
    attempt_over(state, health, now_ms, reason)
}

/// The health that a job ends with which was told to stop; `None`: it was not.
pub(crate) fn stopped_with(state: &JobState) -> Option<Health> {
    let asked = state.stop_asked;
    asked.then(|| state.stop_health.unwrap_or(Health::Terminate))
}

/// The same if nobody said that it stopped: that it ended well would have to be said.
pub(crate) fn stopped_unheard(state: &JobState) -> Option<Health> {
    let health = stopped_with(state)?;
    Some(match health {
        Health::Success => Health::AbortProvider,
        other => other,
    })
}

impl Core {
    /// Puts a job back that its host never got, if it is still that claim's and was not handed out again since.
    /// Costs no attempt.
    pub(crate) async fn give_back(self: &Arc<Self>, claim: &KnownClaim, reason: &str) {
        let (id, now_ms) = (claim.id, self.clock.wall_ms());
        let outcome = self
            .change(id, |state| {
                let same = state.stage == Stage::Dispatch && KnownClaim::of(state) == *claim;
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

    /// Makes sure of a claim that is to be handed out once more: who put the job back meanwhile was faster, and
    /// `None` says so; who would do it now is too late.
    pub(crate) async fn make_sure(
        self: &Arc<Self>,
        claim: &JobState,
    ) -> Result<Option<JobState>, Refusal> {
        let changed = self
            .change(claim.job_id, |state| {
                let same = state.stage == Stage::Dispatch && state.claim_token == claim.claim_token;
                Ok(same.then(|| touched(state)))
            })
            .await?;
        let sure = changed.is_change();
        Ok(sure.then_some(changed.after.state))
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
}

pub(crate) fn log_outcome(id: JobId, what: &str, refusal: Option<Refusal>) {
    if let Some(refusal) = refusal {
        tracing::warn!(job_id = %id, error = refusal.body.message, "{what}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::held;

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
    fn a_job_without_a_body_waits_for_it_and_not_for_ever() {
        let claimed = JobState {
            stage: Stage::Dispatch,
            submit_ms: 1_000,
            ..held()
        };
        let soon = without_body(&claimed, 2_000);
        assert_eq!(
            (soon.stage, soon.attempt, soon.ready, soon.start_ms),
            (Stage::Submit, 1, false, 2_000 + BODY_AGAIN_MS)
        );
        let late = without_body(&claimed, 1_000 + BODY_COMES_MS);
        assert_eq!(late.stage, Stage::AbortInvalid);
    }

    #[test]
    fn a_job_whose_secrets_cannot_be_opened_waits_for_the_key_once_and_ends() {
        let claimed = JobState {
            stage: Stage::Dispatch,
            ..held()
        };
        let soon = without_key(&claimed, 2_000);
        assert_eq!(
            (soon.stage, soon.ready, soon.start_ms),
            (Stage::Submit, false, 2_000 + KEY_COMES_MS)
        );
        let again = JobState {
            stage: Stage::Dispatch,
            claim_token: "u".into(),
            ..soon
        };
        let late = without_key(&again, 2_000 + KEY_COMES_MS);
        assert_eq!(
            (late.stage, late.health, late.reason.as_str()),
            (Stage::AbortInvalid, Health::AbortInvalid, NO_KEY)
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

    /// It was to wait for an attempt that could only begin when it was too late.
    #[test]
    fn an_attempt_that_would_begin_after_the_deadline_is_not_waited_for() {
        let second = lost(&held(), 100, "silent");
        let begins_ms = second.start_ms.max(100);
        for (finish_by_ms, tried_again) in [(begins_ms + 1, true), (begins_ms, false), (50, false)]
        {
            let job = JobState {
                finish_by_ms,
                ..held()
            };
            let after = lost(&job, 100, "silent");
            assert_eq!(after.stage == Stage::Submit, tried_again, "{finish_by_ms}");
            assert_eq!(after.attempt, if tried_again { 2 } else { 1 });
        }
    }

    #[test]
    fn what_testboxes_spend_is_counted_when_an_attempt_ends() {
        let job = JobState {
            dispatch_ms: 1_000,
            ..held()
        };
        let running = count_used(&job, job.clone(), 5_000);
        assert_eq!((running.used_ms, running.used_at_ms), (0, 0));
        let second = count_used(&job, lost(&job, 5_000, "silent"), 5_000);
        assert_eq!((second.used_ms, second.used_at_ms), (4_000, 5_000));
        let undelivered = JobState {
            stage: Stage::Dispatch,
            ..job
        };
        let back = given_back(&undelivered, 6_000, "nobody took it");
        assert_eq!(count_used(&undelivered, back, 6_000).used_ms, 0);
        let again = JobState {
            stage: Stage::Running,
            dispatch_ms: 7_000,
            ..second
        };
        let end = ended(&again, Stage::Finish, Health::Success, 9_000, "");
        assert_eq!(count_used(&again, end, 9_000).used_ms, 6_000);
    }

    #[test]
    fn who_asks_for_another_host_is_kept_from_those_where_it_failed() {
        let mut job = JobState {
            retry_elsewhere: true,
            retry_lost_left: 50,
            ..held()
        };
        for n in 0..30 {
            job.stage = Stage::Running;
            job.host = format!("h{n}");
            job = lost(&job, 100, "silent");
        }
        assert_eq!(job.not_on.len(), NOT_ON_MAX);
        assert_eq!(job.not_on.last().map(String::as_str), Some("h29"));
        assert!(lost(&held(), 100, "silent").not_on.is_empty());
        let end = JobState {
            stage: Stage::Running,
            retry_lost_left: 0,
            ..job
        };
        assert_eq!(lost(&end, 200, "silent").stage, Stage::Finish);
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
