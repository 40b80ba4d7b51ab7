//! Makes the webhook documents of new jobs.

use fairlead_job::JobId;
use fairlead_store::{DocKind, DocWrite, Expect, ItemError, StoredJob};

use crate::{
    base::errors::{Refusal, SubmitError},
    core::Core,
    known::webhooks::{Event, Webhook, id_of},
};

impl Core {
    /// Writes down for new jobs who is told of their ends, before anybody hears that they are in. Answers those for which
    /// that failed.
    pub(super) async fn make_webhooks(&self, jobs: &[&StoredJob]) -> Vec<JobId> {
        let now_ms = self.clock.wall_ms();
        let asked = jobs.iter().filter(|job| {
            let callback = job.state.callback;
            callback.is_some_and(|callback| callback.ended)
        });
        let writes: Vec<(JobId, DocWrite)> = asked
            .map(|job| {
                let key = (job.state.job_id, Event::Ended);
                let body = Webhook::new(&job.state, Event::Ended, now_ms);
                let write = DocWrite {
                    id: id_of(key),
                    expect: Expect::Absent,
                    body: serde_json::to_value(body).ok(),
                };
                (key.0, write)
            })
            .collect();
        if writes.is_empty() {
            return Vec::new();
        }
        let (ids, writes): (Vec<JobId>, Vec<DocWrite>) = writes.into_iter().unzip();
        let written = self.store.put_docs(DocKind::Webhook, writes).await;
        // One that is there is of the same job, made by an earlier try.
        let failed = |outcome: &Result<_, ItemError>| {
            !matches!(outcome, Ok(_) | Err(ItemError::Conflict { .. }))
        };
        let outcomes = ids.into_iter().zip(&written);
        outcomes
            .filter(|(_, outcome)| failed(outcome))
            .map(|(id, _)| id)
            .collect()
    }

    /// Refuses a job whose receiver the operator does not allow: nobody would ever be told.
    pub(super) fn check_receiver(&self, url: &str) -> Result<(), Refusal> {
        if self.config.webhooks_to.refuse(url) {
            return Err(SubmitError::NoReceiver.into());
        }
        Ok(())
    }
}
