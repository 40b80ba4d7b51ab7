//! Forgets what is known of a key, so that the next job runs, and its result is kept anew.

use std::future::ready;

use fairlead_api::ReuseForgotten;
use fairlead_job::JobId;

use crate::reuse::ReuseFlow;
use fairlead_base::errors::{JobError, Refusal};
use fairlead_known::{
    accounts::Who,
    reuse::{Entry, entry_id},
};

/// For what the account of the job knows of the key.
const ACCOUNT: &str = "account";
/// For what all accounts know that share their results.
const LAB: &str = "lab";

impl ReuseFlow {
    /// Forgets the results of the key of a job, also that it is flaky, and those of jobs that ended and are not noted yet.
    /// Its owner forgets those of the account, and those of the lab if the account shares its own. An admin forgets both.
    pub(crate) async fn forget_results(
        &self,
        who: &Who,
        id: JobId,
    ) -> Result<ReuseForgotten, Refusal> {
        let state = self.jobs.stored_job(id).await?.state;
        who.check_owns(&state)?;
        let key = state.reuse.map(|reuse| reuse.key);
        let key = key.filter(|key| !key.is_empty());
        let key = key.ok_or(JobError::NoKey(id))?;
        let may_forget_lab =
            who.acts_for_all() || self.people.accounts.shares_results(&state.account);
        let mut answer = ReuseForgotten {
            job_id: id.to_string(),
            key: key.clone(),
            ..ReuseForgotten::default()
        };
        for (scope, account) in [(ACCOUNT, Some(state.account.as_str())), (LAB, None)] {
            let doc = entry_id(&key, account);
            if account.is_none() && !may_forget_lab {
                let known = self.ctx.docs.read::<Entry>(&doc).await?;
                answer.still = known.map_or_else(String::new, |known| known.doc.bad);
                continue;
            }
            let now_ms = self.ctx.clock.wall_ms();
            let (mut was, mut knew) = (String::new(), false);
            let forget = |known: Option<Entry>| {
                let mut entry = known.unwrap_or_default();
                knew = entry.knows_results();
                was = entry.forget(now_ms);
                ready(Ok::<_, Refusal>(entry))
            };
            self.ctx.docs.change(&doc, forget).await?;
            answer.forgotten.extend(knew.then(|| scope.to_owned()));
            if answer.was.is_empty() {
                answer.was = was;
            }
        }
        Ok(answer)
    }
}
