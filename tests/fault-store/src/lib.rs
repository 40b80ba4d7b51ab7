//! A store that fails as planned, for tests of code that uses a [`JobStore`].
//!
//! The plan is data, so a failing test can be repeated; there is no randomness. Each call of the kind that a fault
//! names uses that fault up. A call without a fault passes through.

use std::{collections::VecDeque, sync::Arc};

use async_trait::async_trait;
use fairlead_job::{JobId, Spec};
use parking_lot::Mutex;

use fairlead_store::{
    ChangeMark, ChangePage, Changes, CountOf, Counts, Created, Doc, DocFind, DocKind, DocPage,
    DocWrite, DueDoc, EventFind, EventRecord, Find, Group, GroupBy, ItemError, JobStore, NewJob,
    OldMonth, Page, Patch, Pull, Search, SearchPage, StageCounts, StoreError, StoreHealth,
    StoredJob, Usage, Version,
};

/// Kind of calls that a fault waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// `submit`.
    Submit,
    /// `patch`.
    Patch,
    /// `put_docs`.
    PutDocs,
    /// `submit`, `patch` and `put_docs`.
    Write,
    /// `get`, `get_bodies` and `get_docs`.
    Get,
    /// `counts`, `pull`, `find`, `search` and `list_docs`.
    Search,
    /// Every call.
    Any,
}

/// Kind of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A write is not carried out. Each item reports that another write was faster.
    Conflict,
    /// A write is carried out, without an answer.
    CommitWithoutAnswer,
    /// A write is carried out. Each item reports that another write was faster, as from a store that retries inside.
    CommitAsConflict,
    /// A write is not carried out, without an answer.
    LostWithoutAnswer,
    /// A read fails. A write is certainly not carried out.
    Unavailable,
    /// The request is refused. A read fails, and a write is not carried out.
    Refused,
    /// A search repeats its answer to the last equal question. The first time it answers normally.
    Stale,
}

/// A number of calls of a kind that meet a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Kind of calls.
    pub on: On,
    /// Fault that they meet.
    pub fault: Fault,
    /// Number of calls.
    pub times: u32,
}

/// A store that meets faults as planned.
#[derive(Debug)]
pub struct FaultStore {
    inner: Arc<dyn JobStore>,
    plan: Mutex<VecDeque<Step>>,
    last: Mutex<Last>,
    shown: Mutex<Option<StoredJob>>,
    wall_ms: Mutex<Option<u64>>,
}

/// Last answers of searches.
#[derive(Debug, Default)]
struct Last {
    counts: Option<Counts>,
    pulls: Vec<(Pull, Page)>,
    finds: Vec<(Find, Page)>,
    searches: Vec<(Search, SearchPage)>,
    lists: Vec<(DocKind, Vec<Doc>)>,
}

impl FaultStore {
    /// Creates a store that follows `plan` from its front. A step waits for its calls, while later steps may already
    /// have theirs.
    pub fn new(inner: Arc<dyn JobStore>, plan: impl IntoIterator<Item = Step>) -> Self {
        Self {
            inner,
            plan: Mutex::new(plan.into_iter().collect()),
            last: Mutex::default(),
            shown: Mutex::default(),
            wall_ms: Mutex::default(),
        }
    }

    /// Makes reads in real time show this state of its job from now on, as on a node that was cut off. Nobody
    /// acknowledged the state. `None`: it has vanished.
    pub fn show(&self, unacknowledged: Option<StoredJob>) {
        *self.shown.lock() = unacknowledged;
    }

    /// Sets the reported time, UTC epoch ms.
    pub fn tells_time(&self, wall_ms: u64) {
        *self.wall_ms.lock() = Some(wall_ms);
    }

    /// Adds a step to the plan.
    pub fn then(&self, step: Step) {
        self.plan.lock().push_back(step);
    }

    /// Returns the steps that have not happened yet.
    pub fn left(&self) -> Vec<Step> {
        self.plan.lock().iter().copied().collect()
    }

    fn next(&self, kinds: &[On]) -> Option<Fault> {
        let mut plan = self.plan.lock();
        let number = plan
            .iter()
            .position(|step| step.on == On::Any || kinds.contains(&step.on))?;
        let step = plan.get_mut(number)?;
        let fault = step.fault;
        step.times = step.times.saturating_sub(1);
        if step.times == 0 {
            plan.remove(number);
        }
        Some(fault)
    }

    /// Applies the fault of a read that is not a search.
    fn read_fault(&self) -> Result<(), StoreError> {
        match self.next(&[On::Get]) {
            Some(fault) => Err(failed(fault)),
            None => Ok(()),
        }
    }

    /// Returns true if the search must repeat its last answer.
    fn search_is_stale(&self) -> Result<bool, StoreError> {
        match self.next(&[On::Search]) {
            None => Ok(false),
            Some(Fault::Stale) => Ok(true),
            Some(fault) => Err(failed(fault)),
        }
    }

    async fn write<T, F>(&self, on: On, items: usize, write: F) -> Vec<Result<T, ItemError>>
    where
        T: Clone,
        F: Future<Output = Vec<Result<T, ItemError>>> + Send,
    {
        let all = |error: ItemError| vec![Err(error); items];
        let conflict = ItemError::Conflict { current: None };
        let lost = ItemError::Unknown {
            reason: "planned: no answer".to_owned(),
        };
        match self.next(&[on, On::Write]) {
            None | Some(Fault::Stale) => write.await,
            Some(Fault::Conflict) => all(conflict),
            Some(Fault::CommitWithoutAnswer) => {
                write.await;
                all(lost)
            }
            Some(Fault::CommitAsConflict) => {
                write.await;
                all(conflict)
            }
            Some(Fault::LostWithoutAnswer) => all(lost),
            Some(Fault::Unavailable) => all(ItemError::NotTaken {
                reason: "planned: unavailable".to_owned(),
            }),
            Some(Fault::Refused) => all(ItemError::Refused {
                reason: "planned: refused".to_owned(),
            }),
        }
    }
}

fn failed(fault: Fault) -> StoreError {
    if fault == Fault::Refused {
        return StoreError::Refused {
            reason: "planned: refused".to_owned(),
        };
    }
    StoreError::Unavailable {
        reason: "planned: unavailable".to_owned(),
    }
}

/// Returns the last answer to `question` if the search is stale, and otherwise `fresh`, which is kept.
fn answer<Q: PartialEq + Clone, A: Clone>(
    kept: &mut Vec<(Q, A)>,
    question: &Q,
    fresh: A,
    is_stale: bool,
) -> A {
    let place = kept.iter_mut().find(|(asked, _)| asked == question);
    match place {
        Some((_, old)) if is_stale => old.clone(),
        Some((_, old)) => {
            *old = fresh.clone();
            fresh
        }
        None => {
            kept.push((question.clone(), fresh.clone()));
            fresh
        }
    }
}

#[async_trait]
impl JobStore for FaultStore {
    async fn submit(&self, jobs: Vec<NewJob>) -> Vec<Result<Created, ItemError>> {
        let items = jobs.len();
        self.write(On::Submit, items, self.inner.submit(jobs)).await
    }

    async fn get(&self, ids: &[JobId]) -> Result<Vec<Option<StoredJob>>, StoreError> {
        self.read_fault()?;
        let mut found = self.inner.get(ids).await?;
        if let Some(shown) = &*self.shown.lock() {
            let of_it = ids.iter().zip(&mut found);
            let of_it = of_it.filter(|(id, _)| **id == shown.state.job_id);
            of_it.for_each(|(_, found)| *found = Some(shown.clone()));
        }
        Ok(found)
    }

    async fn get_bodies(&self, ids: &[JobId]) -> Result<Vec<Option<Spec>>, StoreError> {
        self.read_fault()?;
        self.inner.get_bodies(ids).await
    }

    async fn patch(&self, patches: Vec<Patch>) -> Vec<Result<Version, ItemError>> {
        let items = patches.len();
        self.write(On::Patch, items, self.inner.patch(patches))
            .await
    }

    async fn count(&self, of: &CountOf) -> Result<Counts, StoreError> {
        let is_stale = self.search_is_stale()?;
        let fresh = self.inner.count(of).await?;
        let mut last = self.last.lock();
        if !is_stale || last.counts.is_none() {
            last.counts = Some(fresh.clone());
        }
        Ok(last.counts.clone().unwrap_or(fresh))
    }

    async fn pull(&self, requests: &[Pull]) -> Result<Vec<Page>, StoreError> {
        let is_stale = self.search_is_stale()?;
        let fresh = self.inner.pull(requests).await?;
        let mut last = self.last.lock();
        let each = requests.iter().zip(fresh);
        Ok(each
            .map(|(request, page)| answer(&mut last.pulls, request, page, is_stale))
            .collect())
    }

    async fn find(&self, requests: &[Find]) -> Result<Vec<Page>, StoreError> {
        let is_stale = self.search_is_stale()?;
        let fresh = self.inner.find(requests).await?;
        let mut last = self.last.lock();
        let each = requests.iter().zip(fresh);
        Ok(each
            .map(|(request, page)| answer(&mut last.finds, request, page, is_stale))
            .collect())
    }

    async fn change_mark(&self) -> Result<ChangeMark, StoreError> {
        self.read_fault()?;
        self.inner.change_mark().await
    }

    fn body_at_hand(&self, id: JobId) -> Option<String> {
        self.inner.body_at_hand(id)
    }

    fn keep_created(&self, id: JobId, version: Version, state: &str, body: Option<&str>) {
        self.inner.keep_created(id, version, state, body);
    }

    fn place_of(&self, id: JobId) -> Option<Arc<str>> {
        self.inner.place_of(id)
    }

    async fn changes(&self, requests: &[Changes]) -> Result<Vec<ChangePage>, StoreError> {
        // A stale search shows no new data.
        if self.search_is_stale()? {
            let nothing = |request: &Changes| ChangePage {
                mark: request.since.clone(),
                ..ChangePage::default()
            };
            return Ok(requests.iter().map(nothing).collect());
        }
        self.inner.changes(requests).await
    }

    async fn alarms(&self, before_ms: u64, limit: u32) -> Result<Page, StoreError> {
        // A stale search shows no new data.
        if self.search_is_stale()? {
            return Ok(Page::default());
        }
        self.inner.alarms(before_ms, limit).await
    }

    async fn usage(&self, usage: &Usage) -> Result<Vec<u64>, StoreError> {
        // A stale search shows no new data.
        if self.search_is_stale()? {
            let asked = [&usage.accounts, &usage.queues, &usage.uploads_of];
            return Ok(vec![0; asked.map(Vec::len).iter().sum()]);
        }
        self.inner.usage(usage).await
    }

    async fn search(&self, search: &Search) -> Result<SearchPage, StoreError> {
        let is_stale = self.search_is_stale()?;
        let fresh = self.inner.search(search).await?;
        let mut last = self.last.lock();
        Ok(answer(&mut last.searches, search, fresh, is_stale))
    }

    async fn groups(&self, search: &Search, by: GroupBy) -> Result<Vec<Group>, StoreError> {
        self.read_fault()?;
        self.inner.groups(search, by).await
    }

    async fn named(&self, content: &[String]) -> Result<Vec<bool>, StoreError> {
        self.read_fault()?;
        self.inner.named(content).await
    }

    async fn get_docs(
        &self,
        kind: DocKind,
        ids: &[String],
    ) -> Result<Vec<Option<Doc>>, StoreError> {
        self.read_fault()?;
        self.inner.get_docs(kind, ids).await
    }

    async fn doc_versions(
        &self,
        kind: DocKind,
        ids: &[String],
    ) -> Result<Vec<Option<Version>>, StoreError> {
        self.read_fault()?;
        self.inner.doc_versions(kind, ids).await
    }

    async fn put_docs(
        &self,
        kind: DocKind,
        writes: Vec<DocWrite>,
    ) -> Vec<Result<Version, ItemError>> {
        let items = writes.len();
        self.write(On::PutDocs, items, self.inner.put_docs(kind, writes))
            .await
    }

    async fn list_docs(&self, kind: DocKind) -> Result<Vec<Doc>, StoreError> {
        let is_stale = self.search_is_stale()?;
        let fresh = self.inner.list_docs(kind).await?;
        let mut last = self.last.lock();
        Ok(answer(&mut last.lists, &kind, fresh, is_stale))
    }

    async fn page_docs(&self, kind: DocKind, find: &DocFind) -> Result<DocPage, StoreError> {
        // A stale search shows no new data.
        if self.search_is_stale()? {
            return Ok(DocPage::default());
        }
        self.inner.page_docs(kind, find).await
    }

    async fn due_docs(
        &self,
        kind: DocKind,
        before_ms: u64,
        limit: u32,
    ) -> Result<Vec<DueDoc>, StoreError> {
        // A stale search shows no new data.
        if self.search_is_stale()? {
            return Ok(Vec::new());
        }
        self.inner.due_docs(kind, before_ms, limit).await
    }

    async fn append_events(&self, events: Vec<EventRecord>) -> Result<(), StoreError> {
        self.inner.append_events(events).await
    }

    async fn read_events(&self, find: &EventFind) -> Result<Vec<EventRecord>, StoreError> {
        self.read_fault()?;
        self.inner.read_events(find).await
    }

    async fn stage_counts(&self, since_ms: u64) -> Result<StageCounts, StoreError> {
        self.read_fault()?;
        self.inner.stage_counts(since_ms).await
    }

    async fn drop_oldest(&self, before: JobId) -> Result<Vec<OldMonth>, StoreError> {
        self.read_fault()?;
        self.inner.drop_oldest(before).await
    }

    async fn wall_ms(&self) -> Result<Option<u64>, StoreError> {
        Ok(*self.wall_ms.lock())
    }

    async fn lacks_to_drop(&self) -> Result<Option<String>, StoreError> {
        self.read_fault()?;
        self.inner.lacks_to_drop().await
    }

    async fn refresh(&self) -> Result<(), StoreError> {
        self.inner.refresh().await
    }

    async fn look_after(&self) {
        self.inner.look_after().await;
    }

    fn health(&self) -> StoreHealth {
        self.inner.health()
    }
}
