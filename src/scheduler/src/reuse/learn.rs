//! Notes results as jobs end. Each note may be written again at any time.

use std::{future::ready, sync::Arc};

use fairlead_job::{JobId, image_fact};
use fairlead_store::{JobState, StoreError};
use serde_json::json;

use crate::reuse::ReuseFlow;
use fairlead_base::errors::Refusal;
use fairlead_known::reuse::{Class, Entry, Known, entry_id};
use fairlead_lifecycle::reuse::{Outcome, differs, outcome};

/// The image that a job named, with what it held; empty: it named none. `None`: its host does not say what the job ran in.
fn image_of(state: &JobState, class: &Class) -> Option<String> {
    let reuse = state.reuse.as_deref()?;
    let digest = reuse.image_digest.as_str();
    if !reuse.image.is_empty() {
        return (!digest.is_empty()).then(|| image_fact(&reuse.image, digest));
    }
    // The image of jobs that name none may have changed since.
    let is_still_so = digest.is_empty() || class.default_images.contains(&format!("={digest}"));
    is_still_so.then(String::new)
}

impl ReuseFlow {
    /// Writes the results of jobs that ended, all that wait for it.
    pub(crate) async fn write_results(self: &Arc<Self>) -> Result<(), Refusal> {
        let results = &self.results;
        results
            .look_at_due(u64::MAX, self, Self::learn_results)
            .await
    }

    /// Writes these results.
    pub(crate) async fn learn_results(
        self: Arc<Self>,
        due: Vec<(JobId, JobState)>,
    ) -> Result<(), Refusal> {
        for (_, ended) in due {
            self.learn_result(&ended).await?;
        }
        Ok(())
    }

    async fn learn_result(&self, state: &JobState) -> Result<(), Refusal> {
        let is_good = match outcome(state) {
            Outcome::Good => true,
            Outcome::Failed => false,
            Outcome::Open | Outcome::Nothing => return Ok(()),
        };
        let audited = self.audited(state).await?;
        // An edit is no part of the key.
        let class = Class::kept_by(state).filter(|_| state.edits.is_none());
        let ran_in = class.and_then(|class| image_of(state, &class).map(|image| (class, image)));
        let Some((class, image)) = ran_in else {
            return Ok(());
        };
        let print = if is_good {
            match self.files.print_of_files(state).await {
                Ok(print) => print,
                Err(error) => {
                    tracing::warn!(job_id = %state.job_id, %error, "the results of a job cannot be looked at; they are not reused");
                    return Ok(());
                }
            }
        } else {
            String::new()
        };
        let new = Known {
            class,
            image,
            print,
            job: state.job_id,
            is_good,
            outputs: state.outputs.clone(),
            end_ms: state.end_ms,
            ran_ms: state.end_ms.saturating_sub(state.running_ms),
        };
        let is_flaky = !is_good && state.health == fairlead_job::Health::Success;
        for id in self.written_ids(state) {
            let mut is_news = false;
            let learn = |known: Option<Entry>| {
                let mut entry = known.unwrap_or_default();
                let counts = entry.learn(&new);
                if counts && is_flaky {
                    let job = state.job_id;
                    entry.is_bad(&format!(
                        "it is flaky: job {job} succeeded only at another try"
                    ));
                }
                if let Some(words) = audited.as_ref().filter(|_| counts) {
                    is_news = entry.bad.is_empty();
                    entry.is_bad(&format!("an audit failed: {words}"));
                }
                ready(Ok::<_, Refusal>(entry))
            };
            self.ctx.docs.change(&id, learn).await?;
            if let Some(words) = audited.as_ref().filter(|_| is_news) {
                self.tell_mismatch(state, words);
            }
        }
        Ok(())
    }

    /// The documents that a result is written to.
    fn written_ids(&self, state: &JobState) -> Vec<String> {
        let key = state.reuse.as_ref().map_or("", |reuse| reuse.key.as_str());
        let own = entry_id(key, Some(&state.account));
        let is_shared = self.people.accounts.shares_results(&state.account);
        let lab = is_shared.then(|| entry_id(key, None));
        std::iter::once(own).chain(lab).collect()
    }

    /// How an audit that ended differs from what it checks; `None`: it does not, or it is none.
    async fn audited(&self, state: &JobState) -> Result<Option<String>, StoreError> {
        let origin = state.reuse.as_ref().and_then(|reuse| reuse.audit_of);
        let Some(origin) = origin else {
            return Ok(None);
        };
        let origin = self.ctx.store.get(&[origin]).await?.pop().flatten();
        Ok(origin.and_then(|origin| differs(state, &origin.state)))
    }

    fn tell_mismatch(&self, state: &JobState, words: &str) {
        tracing::warn!(job_id = %state.job_id, words, "an audit of a reused result failed; no result of its key is reused any more");
        self.ctx.metrics.reuse_mismatches.inc();
        let subject = state.job_id.to_string();
        let origin = state.reuse.as_ref().and_then(|reuse| reuse.audit_of);
        let key = state.reuse.as_ref().map(|reuse| &reuse.key);
        let detail = json!({ "audit_of": origin, "key": key, "why": words });
        self.ctx
            .audit(&self.ctx.config.replica, "reuse.mismatch", &subject, detail);
    }

    /// Forgets old entries, some at a time.
    pub(crate) async fn sweep_results(&self) -> Result<(), StoreError> {
        self.ctx
            .docs
            .forget_due::<Entry>(self.ctx.clock.wall_ms())
            .await
    }
}
