//! Implements [`JobStore`] by the parts of this store.

use std::sync::Arc;

use async_trait::async_trait;
use fairlead_job::{JobId, Spec};

use super::{
    changes, counts, docs, finds, jobs, login, looks, months, people, reads, searches,
    store::ElasticStore, submit,
};
use crate::{
    ChangeMark, ChangePage, Changes, CountOf, Counts, Created, Doc, DocFind, DocKind, DocPage,
    DocWrite, DueDoc, EventFind, EventRecord, Find, Group, GroupBy, ItemError, JobStore, NewJob,
    OldMonth, Page, Patch, Pull, Search, SearchPage, StageCounts, StoreError, StoreHealth,
    StoredJob, Usage, Version,
};

#[async_trait]
impl JobStore for ElasticStore {
    async fn submit(&self, jobs: Vec<NewJob>) -> Vec<Result<Created, ItemError>> {
        submit::submit_jobs(&self.cluster, &self.documents, &self.bodies, jobs).await
    }

    fn body_at_hand(&self, id: JobId) -> Option<String> {
        self.bodies.document(id)
    }

    fn keep_created(&self, id: JobId, version: Version, state: &str, body: Option<&str>) {
        self.documents.keep_state(id, version, state);
        if let Some(document) = body {
            self.bodies.keep(id, document);
        }
    }

    async fn get(&self, ids: &[JobId]) -> Result<Vec<Option<StoredJob>>, StoreError> {
        jobs::get_states(&self.cluster, ids).await
    }

    async fn get_bodies(&self, ids: &[JobId]) -> Result<Vec<Option<Spec>>, StoreError> {
        let kept = ids.iter().map(|id| self.bodies.take(*id));
        let mut bodies: Vec<Option<Spec>> = kept.collect();
        let missing = ids.iter().zip(&bodies).filter(|(_, body)| body.is_none());
        let missing: Vec<JobId> = missing.map(|(id, _)| *id).collect();
        let mut read = jobs::get_job_bodies(&self.cluster, &missing)
            .await?
            .into_iter();
        for body in bodies.iter_mut().filter(|body| body.is_none()) {
            *body = read.next().flatten().map(|(spec, _)| spec);
        }
        Ok(bodies)
    }

    async fn patch(&self, patches: Vec<Patch>) -> Vec<Result<Version, ItemError>> {
        jobs::patch_jobs(&self.cluster, &self.documents, &patches).await
    }

    async fn patch_and_get(&self, patches: Vec<Patch>) -> Vec<Result<StoredJob, ItemError>> {
        jobs::patch_and_read(&self.cluster, &self.documents, patches).await
    }

    async fn count(&self, of: &CountOf) -> Result<Counts, StoreError> {
        counts::count_some(&self.cluster, self.page_names, of).await
    }

    async fn pull(&self, requests: &[Pull]) -> Result<Vec<Page>, StoreError> {
        reads::pull_pages(&self.cluster, &self.documents, requests).await
    }

    async fn find(&self, requests: &[Find]) -> Result<Vec<Page>, StoreError> {
        finds::find_pages(&self.cluster, self.page_names, &self.documents, requests).await
    }

    async fn change_mark(&self) -> Result<ChangeMark, StoreError> {
        changes::last_changes(&self.cluster, &self.places).await
    }

    fn place_of(&self, id: JobId) -> Option<Arc<str>> {
        self.places.only_of(&self.cluster.indices.jobs(id))
    }

    async fn changes(&self, requests: &[Changes]) -> Result<Vec<ChangePage>, StoreError> {
        changes::changes_since(&self.cluster, &self.places, requests).await
    }

    async fn alarms(&self, before_ms: u64, limit: u32) -> Result<Page, StoreError> {
        reads::alarms_before(&self.cluster, before_ms, limit).await
    }

    async fn usage(&self, usage: &Usage) -> Result<Vec<u64>, StoreError> {
        counts::used_since(&self.cluster, usage).await
    }

    async fn search(&self, search: &Search) -> Result<SearchPage, StoreError> {
        searches::search_page(&self.cluster, search).await
    }

    async fn groups(&self, search: &Search, by: GroupBy) -> Result<Vec<Group>, StoreError> {
        people::groups(&self.cluster, search, by).await
    }

    async fn named(&self, content: &[String]) -> Result<Vec<bool>, StoreError> {
        counts::named(&self.cluster, content).await
    }

    async fn get_docs(
        &self,
        kind: DocKind,
        ids: &[String],
    ) -> Result<Vec<Option<Doc>>, StoreError> {
        docs::docs_by_id(&self.cluster, kind, ids).await
    }

    async fn doc_versions(
        &self,
        kind: DocKind,
        ids: &[String],
    ) -> Result<Vec<Option<Version>>, StoreError> {
        docs::versions_by_id(&self.cluster, kind, ids).await
    }

    async fn put_docs(
        &self,
        kind: DocKind,
        writes: Vec<DocWrite>,
    ) -> Vec<Result<Version, ItemError>> {
        docs::write_docs(&self.cluster, kind, writes).await
    }

    async fn list_docs(&self, kind: DocKind) -> Result<Vec<Doc>, StoreError> {
        docs::read_docs(&self.cluster, kind).await
    }

    async fn page_docs(&self, kind: DocKind, find: &DocFind) -> Result<DocPage, StoreError> {
        docs::docs_page(&self.cluster, kind, find).await
    }

    async fn due_docs(
        &self,
        kind: DocKind,
        before_ms: u64,
        limit: u32,
    ) -> Result<Vec<DueDoc>, StoreError> {
        docs::docs_due(&self.cluster, kind, before_ms, limit).await
    }

    async fn append_events(&self, events: Vec<EventRecord>) -> Result<(), StoreError> {
        docs::write_events(&self.cluster, events).await
    }

    async fn read_events(&self, find: &EventFind) -> Result<Vec<EventRecord>, StoreError> {
        people::events(&self.cluster, find).await
    }

    async fn stage_counts(&self, since_ms: u64) -> Result<StageCounts, StoreError> {
        people::stage_counts(&self.cluster, since_ms).await
    }

    async fn drop_oldest(&self, before: JobId) -> Result<Vec<OldMonth>, StoreError> {
        let looked_at = months::drop_oldest_month(&self.cluster, before).await;
        let is_kept = |months: &Vec<OldMonth>| months.iter().all(|month| month.unfinished > 0);
        if !looked_at.as_ref().is_ok_and(is_kept) {
            self.bodies.clear();
        }
        looked_at
    }

    async fn wall_ms(&self) -> Result<Option<u64>, StoreError> {
        docs::node_ms(&self.cluster).await
    }

    async fn lacks_to_drop(&self) -> Result<Option<String>, StoreError> {
        login::lacks_to_drop(&self.cluster).await
    }

    async fn refresh(&self) -> Result<(), StoreError> {
        docs::refresh_all(&self.cluster).await
    }

    async fn look_after(&self) {
        looks::look_after(&self.cluster, &self.looks).await;
    }

    fn health(&self) -> StoreHealth {
        let name = format!("elasticsearch {}", self.version);
        self.cluster.watch.report(name)
    }
}
