//! A store that notes how long each request takes, how it ends, and how many are under way.
//!
//! It takes no writes while this replica's clock is off, but those of what the replica says of itself. So no flow can act
//! on such a clock, whatever it believes.

use std::{future::Future, sync::Arc};

use async_trait::async_trait;
use fairlead_job::{JobId, Spec};
use fairlead_store::{
    ChangeMark, ChangePage, Changes, CountOf, Counts, Created, Doc, DocFind, DocKind, DocPage,
    DocWrite, DueDoc, EventFind, EventRecord, Find, Group, GroupBy, ItemError, JobStore, NewJob,
    OldMonth, Page, Patch, Pull, Search, SearchPage, StageCounts, StoreError, StoreHealth,
    StoredJob, Usage, Version,
};

use crate::{
    clock::{Clock, Stopwatch},
    metrics::StoreTimes,
};

/// Store that measures its requests.
#[derive(Debug)]
pub struct TimedStore {
    store: Arc<dyn JobStore>,
    times: StoreTimes,
    clock: Clock,
}

/// Result of a request, as a label.
trait Outcome {
    fn word(&self) -> &'static str;
}

impl<T> Outcome for Result<T, StoreError> {
    fn word(&self) -> &'static str {
        match self {
            Ok(_) => "ok",
            Err(StoreError::Refused { .. }) => "refused",
            Err(StoreError::Unavailable { .. }) => "unavailable",
            Err(_) => "error",
        }
    }
}

/// The worst result of a batch counts.
impl<T> Outcome for Vec<Result<T, ItemError>> {
    fn word(&self) -> &'static str {
        let rank = |outcome: &Result<T, ItemError>| match outcome {
            Ok(_) => 0_u8,
            Err(ItemError::Conflict { .. } | ItemError::Missing) => 1,
            Err(ItemError::Refused { .. }) => 2,
            Err(ItemError::NotTaken { .. }) => 3,
            Err(ItemError::Unknown { .. }) => 4,
        };
        match self.iter().map(rank).max().unwrap_or(0) {
            0 => "ok",
            1 => "conflict",
            2 => "refused",
            3 => "unavailable",
            _ => "unknown",
        }
    }
}

/// Guard that counts a request down, also if the caller does not wait for the answer any more.
struct UnderWay<'a> {
    times: &'a StoreTimes,
    kind: &'static str,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.times.in_flight(self.kind, -1);
    }
}

impl TimedStore {
    pub fn new(store: Arc<dyn JobStore>, times: StoreTimes, clock: Clock) -> Self {
        Self {
            store,
            times,
            clock,
        }
    }

    /// Returns the reason why no write is taken now; `None`: writes are taken.
    fn is_shut(&self) -> Option<String> {
        let by_ms = self.clock.off_ms()?;
        Some(format!(
            "the clock of this replica is {by_ms} ms ahead of the others', so it writes nothing"
        ))
    }

    /// Writes items. Each is refused while no write is taken.
    async fn write<T>(
        &self,
        kind: &'static str,
        items: usize,
        asked: impl Future<Output = Vec<Result<T, ItemError>>>,
    ) -> Vec<Result<T, ItemError>> {
        let Some(reason) = self.is_shut() else {
            return self.time(kind, asked).await;
        };
        let refuse = || {
            let reason = reason.clone();
            Err(ItemError::NotTaken { reason })
        };
        std::iter::repeat_with(refuse).take(items).collect()
    }

    async fn time<O: Outcome>(&self, kind: &'static str, asked: impl Future<Output = O>) -> O {
        let watch = Stopwatch::start();
        self.times.in_flight(kind, 1);
        let _under_way = UnderWay {
            times: &self.times,
            kind,
        };
        let outcome = asked.await;
        self.times.ended(kind, outcome.word(), watch.elapsed());
        outcome
    }
}

#[async_trait]
impl JobStore for TimedStore {
    async fn submit(&self, jobs: Vec<NewJob>) -> Vec<Result<Created, ItemError>> {
        let items = jobs.len();
        self.write("submit", items, self.store.submit(jobs)).await
    }

    fn body_at_hand(&self, id: JobId) -> Option<String> {
        self.store.body_at_hand(id)
    }

    fn keep_created(&self, id: JobId, version: Version, state: &str, body: Option<&str>) {
        self.store.keep_created(id, version, state, body);
    }

    async fn get(&self, ids: &[JobId]) -> Result<Vec<Option<StoredJob>>, StoreError> {
        self.time("get", self.store.get(ids)).await
    }

    async fn get_readable(&self, ids: &[JobId]) -> Result<Vec<StoredJob>, StoreError> {
        self.time("get", self.store.get_readable(ids)).await
    }

    async fn get_bodies(&self, ids: &[JobId]) -> Result<Vec<Option<Spec>>, StoreError> {
        self.time("get_bodies", self.store.get_bodies(ids)).await
    }

    async fn patch(&self, patches: Vec<Patch>) -> Vec<Result<Version, ItemError>> {
        let items = patches.len();
        self.write("patch", items, self.store.patch(patches)).await
    }

    async fn patch_and_get(&self, patches: Vec<Patch>) -> Vec<Result<StoredJob, ItemError>> {
        let items = patches.len();
        self.write("patch", items, self.store.patch_and_get(patches))
            .await
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        self.time("count", self.store.counts()).await
    }

    async fn count(&self, of: &CountOf) -> Result<Counts, StoreError> {
        self.time("count", self.store.count(of)).await
    }

    async fn pull(&self, requests: &[Pull]) -> Result<Vec<Page>, StoreError> {
        self.time("pull", self.store.pull(requests)).await
    }

    async fn find(&self, requests: &[Find]) -> Result<Vec<Page>, StoreError> {
        self.time("find", self.store.find(requests)).await
    }

    async fn change_mark(&self) -> Result<ChangeMark, StoreError> {
        self.time("changes", self.store.change_mark()).await
    }

    fn place_of(&self, id: JobId) -> Option<Arc<str>> {
        self.store.place_of(id)
    }

    async fn changes(&self, requests: &[Changes]) -> Result<Vec<ChangePage>, StoreError> {
        self.time("changes", self.store.changes(requests)).await
    }

    async fn alarms(&self, before_ms: u64, limit: u32) -> Result<Page, StoreError> {
        self.time("alarms", self.store.alarms(before_ms, limit))
            .await
    }

    async fn usage(&self, usage: &Usage) -> Result<Vec<u64>, StoreError> {
        self.time("usage", self.store.usage(usage)).await
    }

    async fn search(&self, search: &Search) -> Result<SearchPage, StoreError> {
        self.time("search", self.store.search(search)).await
    }

    async fn groups(&self, search: &Search, by: GroupBy) -> Result<Vec<Group>, StoreError> {
        self.time("groups", self.store.groups(search, by)).await
    }

    async fn named(&self, content: &[String]) -> Result<Vec<bool>, StoreError> {
        self.time("named", self.store.named(content)).await
    }

    async fn get_docs(
        &self,
        kind: DocKind,
        ids: &[String],
    ) -> Result<Vec<Option<Doc>>, StoreError> {
        self.time("get_docs", self.store.get_docs(kind, ids)).await
    }

    async fn get_doc(&self, kind: DocKind, id: &str) -> Result<Option<Doc>, StoreError> {
        self.time("get_docs", self.store.get_doc(kind, id)).await
    }

    async fn doc_versions(
        &self,
        kind: DocKind,
        ids: &[String],
    ) -> Result<Vec<Option<Version>>, StoreError> {
        self.time("get_docs", self.store.doc_versions(kind, ids))
            .await
    }

    async fn put_docs(
        &self,
        kind: DocKind,
        writes: Vec<DocWrite>,
    ) -> Vec<Result<Version, ItemError>> {
        let (items, asked) = (writes.len(), self.store.put_docs(kind, writes));
        match kind {
            DocKind::Replica => self.time("put_docs", asked).await,
            _ => self.write("put_docs", items, asked).await,
        }
    }

    async fn list_docs(&self, kind: DocKind) -> Result<Vec<Doc>, StoreError> {
        self.time("list_docs", self.store.list_docs(kind)).await
    }

    async fn page_docs(&self, kind: DocKind, find: &DocFind) -> Result<DocPage, StoreError> {
        self.time("list_docs", self.store.page_docs(kind, find))
            .await
    }

    async fn due_docs(
        &self,
        kind: DocKind,
        before_ms: u64,
        limit: u32,
    ) -> Result<Vec<DueDoc>, StoreError> {
        let due = self.store.due_docs(kind, before_ms, limit);
        self.time("due_docs", due).await
    }

    async fn stage_counts(&self, since_ms: u64) -> Result<StageCounts, StoreError> {
        self.time("stage_counts", self.store.stage_counts(since_ms))
            .await
    }

    async fn append_events(&self, events: Vec<EventRecord>) -> Result<(), StoreError> {
        self.time("append_events", self.store.append_events(events))
            .await
    }

    async fn read_events(&self, find: &EventFind) -> Result<Vec<EventRecord>, StoreError> {
        self.time("read_events", self.store.read_events(find)).await
    }

    async fn drop_oldest(&self, before: JobId) -> Result<Vec<OldMonth>, StoreError> {
        if let Some(reason) = self.is_shut() {
            return Err(StoreError::Unavailable { reason });
        }
        self.time("drop_oldest", self.store.drop_oldest(before))
            .await
    }

    async fn wall_ms(&self) -> Result<Option<u64>, StoreError> {
        self.time("wall_ms", self.store.wall_ms()).await
    }

    async fn lacks_to_drop(&self) -> Result<Option<String>, StoreError> {
        self.time("lacks_to_drop", self.store.lacks_to_drop()).await
    }

    async fn refresh(&self) -> Result<(), StoreError> {
        self.time("refresh", self.store.refresh()).await
    }

    async fn look_after(&self) {
        self.store.look_after().await;
    }

    fn health(&self) -> StoreHealth {
        self.store.health()
    }
}
