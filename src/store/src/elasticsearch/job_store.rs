//! Implements [`JobStore`] by the parts of this store.

use async_trait::async_trait;
use fairlead_job::{JobId, Spec};

use super::{jobs::Part, store::ElasticStore};
use crate::{
    ChangeMark, ChangePage, Changes, CountOf, Counts, Doc, DocFind, DocKind, DocPage, DocWrite,
    DueDoc, EventRecord, Find, ItemError, JobStore, NewJob, OldMonth, Page, Patch, Pull, Search,
    SearchPage, StoreError, StoreHealth, StoredJob, Usage, Version,
};

#[async_trait]
impl JobStore for ElasticStore {
    async fn submit(&self, jobs: Vec<NewJob>) -> Vec<Result<Version, ItemError>> {
        self.submit_jobs(jobs).await
    }

    async fn get(&self, ids: &[JobId]) -> Result<Vec<Option<StoredJob>>, StoreError> {
        self.get_states(ids).await
    }

    async fn get_bodies(&self, ids: &[JobId]) -> Result<Vec<Option<Spec>>, StoreError> {
        let kept = ids.iter().map(|id| self.kept_body(*id));
        let mut bodies: Vec<Option<Spec>> = kept.collect();
        let missing = ids.iter().zip(&bodies).filter(|(_, body)| body.is_none());
        let missing: Vec<JobId> = missing.map(|(id, _)| *id).collect();
        let mut read = self.get_job_bodies(&missing).await?.into_iter();
        for body in bodies.iter_mut().filter(|body| body.is_none()) {
            *body = read.next().flatten().map(|(spec, _)| spec);
        }
        Ok(bodies)
    }

    async fn patch(&self, patches: Vec<Patch>) -> Vec<Result<Version, ItemError>> {
        let written = self.patch_jobs(&patches, Part::Version).await.into_iter();
        written.map(|item| Ok(item?.version)).collect()
    }

    async fn patch_and_get(&self, patches: Vec<Patch>) -> Vec<Result<StoredJob, ItemError>> {
        self.patch_and_read(&patches).await
    }

    async fn count(&self, of: &CountOf) -> Result<Counts, StoreError> {
        self.count_some(of).await
    }

    async fn pull(&self, requests: &[Pull]) -> Result<Vec<Page>, StoreError> {
        self.pull_pages(requests).await
    }

    async fn find(&self, requests: &[Find]) -> Result<Vec<Page>, StoreError> {
        self.find_pages(requests).await
    }

    async fn change_mark(&self) -> Result<ChangeMark, StoreError> {
        self.last_changes().await
    }

    async fn changes(&self, requests: &[Changes]) -> Result<Vec<ChangePage>, StoreError> {
        self.changes_since(requests).await
    }

    async fn alarms(&self, before_ms: u64, limit: u32) -> Result<Page, StoreError> {
        self.alarms_before(before_ms, limit).await
    }

    async fn usage(&self, usage: &Usage) -> Result<Vec<u64>, StoreError> {
        self.used_since(usage).await
    }

    async fn search(&self, search: &Search) -> Result<SearchPage, StoreError> {
        self.search_page(search).await
    }

    async fn get_docs(
        &self,
        kind: DocKind,
        ids: &[String],
    ) -> Result<Vec<Option<Doc>>, StoreError> {
        self.docs_by_id(kind, ids).await
    }

    async fn doc_versions(
        &self,
        kind: DocKind,
        ids: &[String],
    ) -> Result<Vec<Option<Version>>, StoreError> {
        self.versions_by_id(kind, ids).await
    }

    async fn put_docs(
        &self,
        kind: DocKind,
        writes: Vec<DocWrite>,
    ) -> Vec<Result<Version, ItemError>> {
        self.write_docs(kind, writes).await
    }

    async fn list_docs(&self, kind: DocKind) -> Result<Vec<Doc>, StoreError> {
        self.read_docs(kind).await
    }

    async fn page_docs(&self, kind: DocKind, find: &DocFind) -> Result<DocPage, StoreError> {
        self.docs_page(kind, find).await
    }

    async fn due_docs(
        &self,
        kind: DocKind,
        before_ms: u64,
        limit: u32,
    ) -> Result<Vec<DueDoc>, StoreError> {
        self.docs_due(kind, before_ms, limit).await
    }

    async fn append_events(&self, events: Vec<EventRecord>) -> Result<(), StoreError> {
        self.write_events(events).await
    }

    async fn drop_oldest(&self, before: JobId) -> Result<Vec<OldMonth>, StoreError> {
        self.drop_oldest_month(before).await
    }

    async fn refresh(&self) -> Result<(), StoreError> {
        self.refresh_all().await
    }

    fn health(&self) -> StoreHealth {
        let name = format!("elasticsearch {}", self.version);
        self.cluster.watch.report(name)
    }
}
