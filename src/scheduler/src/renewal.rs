//! Who was heard of, by all replicas together: one small document a host, written at most once a second.
//!
//! A host that says it has jobs renews them here at once, and for the other replicas by its lease document:
//! each change of it is a sign of life of the jobs it names. A lease is lost when its agent was not heard of
//! for `lease_ms` on this replica's own monotonic clock, while the store could be read. A start, an outage of
//! the store and a pause of this process forgive the time: they requeue nobody.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use fairlead_dispatch::Millis;
use fairlead_job::JobId;
use fairlead_store::{Doc, DocKind, DocWrite, Expect, StoreError, Version};
use serde_json::{Value, json};

use crate::{
    core::Core,
    jobs::Live,
    lease::{BOOT_SESSION, stage_deadline_ms},
    writer::only,
};

/// Looks in a lease.
const LOOKS: u64 = 12;
/// Shortest and longest time between looks, ms.
const LOOK_MS: std::ops::RangeInclusive<u64> = 100..=5_000;
/// Renewals are collected for this long at most, ms.
const COLLECT_MS: u64 = 1_000;

/// Renewals on their way to the store, and those that were read.
#[derive(Debug, Default)]
pub(crate) struct Renewals {
    due: Mutex<BTreeMap<String, Vec<JobId>>>,
    read: Mutex<BTreeMap<String, Version>>,
}

impl Renewals {
    /// A host was heard of; it has these jobs.
    pub(crate) fn note(&self, host: &str, jobs: Vec<JobId>) {
        if jobs.is_empty() {
            return;
        }
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        due.insert(host.to_owned(), jobs);
    }

    fn take_due(&self) -> BTreeMap<String, Vec<JobId>> {
        std::mem::take(&mut *self.due.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What could not be written is written later, unless there is news.
    fn put_back(&self, left: BTreeMap<String, Vec<JobId>>) {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        for (host, jobs) in left {
            due.entry(host).or_insert(jobs);
        }
    }

    /// The documents that changed since they were read last.
    fn changed(&self, docs: Vec<Doc>) -> Vec<Doc> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let mut is_news = |doc: &Doc| {
            read.insert(doc.id.clone(), doc.version)
                .is_none_or(|before| before < doc.version)
        };
        docs.into_iter().filter(|doc| is_news(doc)).collect()
    }
}

fn jobs_of(body: &Value) -> Vec<JobId> {
    let ids = body.get("jobs").and_then(Value::as_array);
    let texts = ids.into_iter().flatten().filter_map(Value::as_str);
    texts.filter_map(|text| text.parse().ok()).collect()
}

impl Core {
    /// Renews these jobs of a host for all replicas, now: they are about to be handed out again, perhaps at the
    /// end of their lease.
    pub(crate) async fn renew_now(&self, host: &str, jobs: &[JobId]) {
        for id in jobs {
            self.live.renew(*id, self.clock.now());
        }
        let write = self.renewal(host, jobs);
        if let Err(error) = only(self.store.put_docs(DocKind::Lease, vec![write]).await) {
            tracing::warn!(host, %error, "a renewal could not be written");
        }
    }

    fn renewal(&self, host: &str, jobs: &[JobId]) -> DocWrite {
        let (replica, beat_ms) = (&self.config.replica, self.clock.wall_ms());
        DocWrite {
            id: host.to_owned(),
            expect: Expect::Any,
            body: Some(json!({ "jobs": jobs, "replica": replica, "beat_ms": beat_ms })),
        }
    }

    /// Writes renewals until the replica stops.
    pub(crate) async fn write_renewals(self: Arc<Self>) {
        let every = Duration::from_millis(self.look_ms().min(COLLECT_MS));
        loop {
            tokio::select! {
                biased;
                () = self.draining.cancelled() => return,
                () = self.clock.sleep(every) => {}
            }
            let due = self.renewals.take_due();
            if due.is_empty() {
                continue;
            }
            let beat_ms = self.clock.wall_ms();
            let writes = due.iter().map(|(host, jobs)| DocWrite {
                id: host.clone(),
                expect: Expect::Any,
                body: Some(
                    json!({ "jobs": jobs, "replica": self.config.replica, "beat_ms": beat_ms }),
                ),
            });
            let outcomes = self.store.put_docs(DocKind::Lease, writes.collect()).await;
            let failed = outcomes.iter().filter(|outcome| outcome.is_err()).count();
            if failed > 0 {
                tracing::warn!(failed, "renewals could not be written, tried again");
                let left = due.into_iter().zip(&outcomes).filter(|(_, o)| o.is_err());
                self.renewals.put_back(left.map(|(due, _)| due).collect());
            }
        }
    }

    /// Time between two looks at leases, ms.
    fn look_ms(&self) -> u64 {
        (self.config.lease_ms / LOOKS).clamp(*LOOK_MS.start(), *LOOK_MS.end())
    }

    /// Looks after leases and limits until the replica stops.
    pub(crate) async fn watch_leases(self: Arc<Self>) {
        let look_ms = self.look_ms();
        // A look that comes later than this means that this process was paused.
        let late_ms = look_ms.saturating_add(self.config.lease_ms / 4);
        let mut last = self.clock.now();
        loop {
            tokio::select! {
                biased;
                () = self.draining.cancelled() => return,
                () = self.clock.sleep(Duration::from_millis(look_ms)) => {}
            }
            let read = self.read_renewals().await;
            let now = self.clock.now();
            let gap = now.0.saturating_sub(last.0);
            last = now;
            if gap > late_ms || read.is_err() || !self.store.health().is_well() {
                self.live.forgive(gap);
                continue;
            }
            for live in self.live.all() {
                self.look_after(&live, now.0).await;
            }
        }
    }

    /// Takes in what other replicas heard.
    async fn read_renewals(&self) -> Result<(), StoreError> {
        let docs = self.store.list_docs(DocKind::Lease).await?;
        let now = self.clock.now();
        for doc in self.renewals.changed(docs) {
            self.renew_named(&doc, now);
        }
        Ok(())
    }

    fn renew_named(&self, doc: &Doc, now: Millis) {
        for id in jobs_of(&doc.body) {
            self.live.renew_of(id, &doc.id, now);
        }
    }

    async fn look_after(self: &Arc<Self>, live: &Live, now: u64) {
        let state = &live.stored.state;
        let silent_ms = now.saturating_sub(live.renewed.0);
        if silent_ms > self.config.lease_ms && !state.session.starts_with(BOOT_SESSION) {
            // Lists lag behind: the last word is read in real time.
            match self.store.get_doc(DocKind::Lease, &state.host).await {
                Ok(Some(doc)) if !self.renewals.changed(vec![doc.clone()]).is_empty() => {
                    self.renew_named(&doc, self.clock.now());
                    return;
                }
                Ok(_) => {}
                Err(_) => return,
            }
            let reason = format!(
                "host {} was not heard of for {} s",
                state.host,
                silent_ms / 1000
            );
            self.lose_silent(state, &reason).await;
        } else if stage_deadline_ms(state).is_some_and(|deadline| deadline < self.clock.wall_ms()) {
            self.time_out(state.job_id, &state.claim_token).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use fairlead_job::Stage;
    use fairlead_store::JobState;

    use super::*;
    use crate::testing::{core, core_beside, state, store_job};

    #[tokio::test]
    async fn what_one_replica_hears_renews_the_job_at_the_others() {
        let (_data, a) = core().await;
        let b = core_beside(&a);
        let held = JobState {
            stage: Stage::Running,
            host: "h".to_owned(),
            claim_token: "t".to_owned(),
            ..state(5)
        };
        let job = store_job(&a, held).await;
        let (id, long_ago) = (job.state.job_id, Millis(1));
        b.live.put(job, long_ago);
        let write = DocWrite {
            id: "h".to_owned(),
            expect: Expect::Any,
            body: Some(json!({ "jobs": [id] })),
        };
        a.store.put_docs(DocKind::Lease, vec![write]).await;
        b.read_renewals().await.unwrap();
        let renewed = b.live.get(id).unwrap().renewed;
        assert!(renewed > long_ago);
        b.live.set_renewed(id, long_ago);
        b.read_renewals().await.unwrap();
        assert_eq!(
            b.live.get(id).unwrap().renewed,
            long_ago,
            "the document did not change"
        );
    }

    #[test]
    fn what_could_not_be_written_yields_to_news() {
        let renewals = Renewals::default();
        renewals.note("a", vec![JobId::new(1)]);
        renewals.note("b", vec![JobId::new(2)]);
        let due = renewals.take_due();
        renewals.note("a", vec![JobId::new(3)]);
        renewals.put_back(due);
        let due = renewals.take_due();
        assert_eq!(due["a"], [JobId::new(3)]);
        assert_eq!(due["b"], [JobId::new(2)]);
    }
}
