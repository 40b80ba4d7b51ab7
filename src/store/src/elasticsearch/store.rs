//! [`ElasticStore`]: the trait over the parts, and the names of indices.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use fairlead_job::{JobId, Spec};

use super::{
    changes::Places, cluster::Cluster, config::ElasticConfig, jobs::Part, login, recent::Recent,
    setup, sources::Sources,
};
use crate::{
    ChangeMark, ChangePage, Changes, CountOf, Counts, Doc, DocFind, DocKind, DocPage, DocWrite,
    DueDoc, EventRecord, Find, ItemError, JobStore, NewJob, OldMonth, Page, Patch, Pull, Search,
    SearchPage, StoreError, StoreHealth, StoredJob, Usage, Version, clock::Chance,
};

/// Names (accounts, queues, host keys, pairs of them) in one answer; Elasticsearch gives 65,536 at most.
const PAGE_NAMES: usize = 10_000;
/// Bodies that are kept, at least; twice as many at the most, some MB. They are for jobs that are handed out soon: of a
/// long queue the oldest go first.
const BODIES_KEPT: usize = 1_000;

/// Jobs in Elasticsearch, for any number of replicas at once.
#[derive(Debug)]
pub struct ElasticStore {
    pub(super) cluster: Cluster,
    pub(super) prefix: String,
    pub(super) request_timeout: Duration,
    pub(super) chance: Chance,
    pub(super) places: Places,
    /// Of jobs that wait.
    pub(super) sources: Arc<Sources>,
    /// Documents of bodies of the newest jobs that were submitted here and may run: whoever waits for one gets it without
    /// another look at the store. A body never changes.
    pub(super) bodies: Recent<Box<str>>,
    /// Most names in one answer of counts and finds; more are read by pages.
    pub(super) page_names: usize,
    /// The lowest version among the nodes, as it was at start.
    version: String,
}

impl ElasticStore {
    /// Checks the server and the login; puts templates, and makes the indices of this month and the next,
    /// where they are not there yet.
    ///
    /// # Errors
    /// [`StoreError::Unusable`], with what to do: nobody answers, the server is older than 8.0 or refuses
    /// the credentials or the mapping, the credentials lack rights, the templates there are from a newer
    /// version.
    pub async fn open(config: ElasticConfig) -> Result<Self, StoreError> {
        config.check()?;
        let mut store = Self {
            cluster: Cluster::new(&config)?,
            prefix: config.index_prefix.clone(),
            request_timeout: config.request_timeout,
            chance: Chance::new(),
            places: Places::default(),
            sources: Arc::new(Sources::new(config.documents_kept as usize)),
            bodies: Recent::new(BODIES_KEPT),
            page_names: PAGE_NAMES,
            version: String::new(),
        };
        login::check(&store, &config).await?;
        store.version = setup::check_version(&store, &config).await?;
        store.set_up(&config).await?;
        Ok(store)
    }

    /// With another page of names in counts and finds than 10,000: tests try what happens beyond it.
    #[doc(hidden)]
    #[must_use]
    pub fn with_page_of_names(mut self, names: usize) -> Self {
        self.page_names = names;
        self
    }

    /// Where the state of a job is, for ever.
    pub(super) fn jobs_index(&self, id: JobId) -> String {
        format!("{}-jobs-{}", self.prefix, id.month())
    }

    /// Where its body is.
    pub(super) fn bodies_index(&self, id: JobId) -> String {
        format!("{}-bodies-{}", self.prefix, id.month())
    }

    /// Where the events of a month are.
    pub(super) fn events_index(&self, month: &str) -> String {
        format!("{}-events-{month}", self.prefix)
    }

    /// Where documents of a kind are.
    pub(super) fn docs_index(&self, kind: DocKind) -> String {
        format!("{}-{}", self.prefix, kind.as_str())
    }

    /// The states of every month: for searches only.
    pub(super) fn all_jobs(&self) -> String {
        format!("{}-jobs-*", self.prefix)
    }
}

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
