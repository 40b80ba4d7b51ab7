//! Hands back jobs whose grant was not delivered or whose lease was lost.
//!
//! `hosts::lease_docs` decides whether a lease is lost.

use std::sync::Arc;

use fairlead_job::{JobId, Stage};
use fairlead_store::JobState;
use serde_json::json;

use crate::jobs::JobFlow;
use fairlead_base::{errors::Refusal, metrics::Returned};
use fairlead_known::open_requests::KnownClaim;
use fairlead_lifecycle::{
    attempt::{given_back, lost},
    changed::Changed,
    touch::touched,
};

impl JobFlow {
    /// Puts a job back that its host never got, if it is still that claim's and was not handed out again since.
    /// Costs no attempt.
    pub(crate) async fn give_back(self: &Arc<Self>, claim: &KnownClaim, reason: &str) {
        let (id, now_ms) = (claim.id, self.ctx.clock.wall_ms());
        let outcome = self
            .change(id, |state| {
                let same = state.stage == Stage::Dispatch && KnownClaim::of(state) == *claim;
                Ok(same.then(|| given_back(state, now_ms, reason)))
            })
            .await;
        if outcome.as_ref().is_ok_and(Changed::is_change) {
            self.ctx.metrics.returned(Returned::Undelivered);
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
        let now_ms = self.ctx.clock.wall_ms();
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
                self.ctx.metrics.returned(Returned::Lost);
                let (host, attempt) = (&changed.before.state.host, changed.before.state.attempt);
                let detail = json!({ "host": host, "attempt": attempt, "reason": reason });
                self.ctx.audit(
                    &self.ctx.config.replica,
                    "job.lost",
                    &id.to_string(),
                    detail,
                );
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
        tracing::warn!(job_id = %id, error = %refusal, "{what}");
    }
}

#[cfg(test)]
mod tests {
    use fairlead_dispatch::NOT_ON_MAX;
    use fairlead_job::Health;

    use super::*;
    use crate::testing::held;
    use fairlead_lifecycle::attempt::{
        BODY_AGAIN_MS, BODY_COMES_MS, KEY_COMES_MS, NO_KEY, count_used, ended, without_body,
        without_key,
    };

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
