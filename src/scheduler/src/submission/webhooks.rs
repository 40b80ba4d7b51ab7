//! Makes the webhook documents of new jobs.

use fairlead_job::{CALLBACK, CallbackEvents, JobFields, JobId, NOTIFY, Notify};
use fairlead_store::{DocKind, DocWrite, Expect, ItemError, StoredJob};

use crate::submission::SubmissionFlow;
use fairlead_base::{errors::SubmitError, text::without_path};
use fairlead_known::webhooks::{Event, Key, Webhook, id_of};

impl SubmissionFlow {
    /// Writes down for new jobs who is told of their ends, before anybody hears that they are in. Answers those for which
    /// that failed.
    pub(super) async fn make_webhooks(&self, jobs: &[&StoredJob]) -> Vec<JobId> {
        let now_ms = self.ctx.clock.wall_ms();
        let ends = jobs.iter().flat_map(|job| {
            let keys = Key::each(job.state.job_id, Event::Ended);
            keys.map(move |key| (key, &job.state))
        });
        let asked = ends.filter(|(key, state)| {
            let events = key.field.events(state);
            events.is_some_and(CallbackEvents::may_come_at_the_end)
        });
        let writes: Vec<(JobId, DocWrite)> = asked
            .map(|(key, state)| {
                let body = Webhook::new(state, key, now_ms);
                let write = DocWrite {
                    id: id_of(key),
                    expect: Expect::Absent,
                    body: serde_json::to_value(body).ok(),
                };
                (key.job, write)
            })
            .collect();
        if writes.is_empty() {
            return Vec::new();
        }
        let (ids, writes): (Vec<JobId>, Vec<DocWrite>) = writes.into_iter().unzip();
        let written = self.ctx.store.put_docs(DocKind::Webhook, writes).await;
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

    /// Of which events a job's callback and notice tell. Refuses a receiver that the operator does not allow: nobody would
    /// ever be told.
    pub(super) fn events_told(
        &self,
        fields: &JobFields,
        account: &str,
    ) -> Result<Told, SubmitError> {
        let notice = match &fields.notify {
            Notify::To(receiver) => Some(receiver),
            Notify::AsAccount | Notify::Nobody => None,
        };
        let named = [(CALLBACK, fields.callback.as_ref()), (NOTIFY, notice)];
        for (field, receiver) in named {
            // The address among sealed secrets is checked when it is sent to.
            let url = receiver.map_or("", |receiver| receiver.url.as_str());
            if !url.is_empty() && self.ctx.config.webhooks_to.refuse(url) {
                let receiver = without_path(url);
                return Err(SubmitError::NoReceiver { field, receiver });
            }
        }
        let notify = match &fields.notify {
            Notify::AsAccount => self.people.accounts.notify_of(account),
            Notify::Nobody => None,
            Notify::To(receiver) => Some(receiver.on),
        };
        Ok(Told {
            callback: fields.callback.as_ref().map(|callback| callback.on),
            notify,
        })
    }
}

/// Of which events a job's callback and notice tell; `None`: of none.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Told {
    pub(super) callback: Option<CallbackEvents>,
    pub(super) notify: Option<CallbackEvents>,
}
