//! Authorization by job token: decides for which attempt of a job a request may speak.
//!
//! With tokens, reports, output and results of a job need its `job_token`. Of all accounts, only an admin needs none. A
//! wrong token gets the same answer whether the job exists or not.

use fairlead_job::JobId;
use fairlead_store::{JobState, StoredJob};

use crate::jobs::JobFlow;
use fairlead_base::errors::{JobError, Refusal};
use fairlead_known::accounts::Who;
use fairlead_lifecycle::after_report::Speaker;

impl JobFlow {
    /// Which attempt the sender of a token speaks for; refuses strangers.
    pub(crate) fn speaker(
        &self,
        state: &JobState,
        token: Option<&str>,
        attempt: Option<u16>,
        who: Option<&Who>,
    ) -> Result<Speaker, Refusal> {
        let id = state.job_id;
        let Some(token) = token else {
            self.require_trusted(state, who)?;
            return Ok(match attempt {
                Some(attempt) if attempt < state.attempt => Speaker::Earlier(attempt),
                _ => Speaker::Present,
            });
        };
        let is_of = |attempt: u16, claim_token: &str| {
            !claim_token.is_empty()
                && self
                    .ctx
                    .sealer
                    .is_job_token(token, id, attempt, claim_token)
        };
        if is_of(state.attempt, &state.claim_token) {
            return Ok(Speaker::Present);
        }
        let mut earlier = state.attempts.iter().rev();
        if let Some(earlier) = earlier.find(|a| is_of(a.attempt, &a.claim_token)) {
            return Ok(Speaker::Earlier(earlier.attempt));
        }
        // The token of a claim that was taken back: right once, over now.
        let may_be_over = attempt.is_some() && token.len() == 64 && !state.stage.is_terminal();
        if may_be_over && !self.people.accounts.tokens_needed() {
            return Err(JobError::ClaimOver(id).into());
        }
        Err(JobError::WrongToken(id).into())
    }

    /// A job, for whoever shows its token.
    pub(crate) async fn job_of_token(
        &self,
        id: JobId,
        token: Option<&str>,
    ) -> Result<StoredJob, Refusal> {
        let found = self.job(id).await;
        found.map_err(|refusal| self.to_stranger(id, token, refusal))
    }

    /// What a request with a token is told instead of this: not whether there is the job.
    pub(crate) fn to_stranger(&self, id: JobId, token: Option<&str>, refusal: Refusal) -> Refusal {
        let is_missing = matches!(refusal, Refusal::Job(JobError::Unknown(_)));
        if is_missing && token.is_some() && self.people.accounts.tokens_needed() {
            return JobError::WrongToken(id).into();
        }
        refusal
    }

    fn require_trusted(&self, state: &JobState, who: Option<&Who>) -> Result<(), Refusal> {
        let is_trusted = who.is_some_and(|who| {
            if self.people.accounts.tokens_needed() {
                who.is_admin()
            } else {
                who.may_act_for(&state.account)
            }
        });
        if is_trusted {
            return Ok(());
        }
        Err(JobError::NoToken.into())
    }
}
