//! One replica's handle on the simulated store: delays, lost answers, late writes, outages.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use fairlead_job::{JobId, Spec};
use fairlead_store::{
    ChangeMark, ChangePage, Changes, CountOf, Counts, Created, Doc, DocFind, DocKind, DocPage,
    DocWrite, DueDoc, EventFind, EventRecord, Find, Group, GroupBy, ItemError, JobStore, NewJob,
    OldMonth, Page, Patch, Pull, Search, SearchPage, StageCounts, StoreError, StoreHealth,
    StoredJob, Usage, Version,
};

use super::{
    answers::{not_taken, unavailable, unknown},
    process::Process,
    query,
    timer::pause,
    truth::{Truth, View},
    world::{Broken, World},
};

/// Timeout of a call, ms.
const CALL_MS: u64 = 3_000;

type Outcome = Result<Version, ItemError>;
type Docs = Result<Vec<Option<Doc>>, StoreError>;

/// One write.
#[derive(Debug, Clone)]
enum Op {
    Create(Box<NewJob>),
    Patch(Patch),
    Put(DocKind, DocWrite),
}

/// Send time of a write, and arrival time of its answer. Until then a refresh may miss it, ms.
#[derive(Debug, Clone, Copy)]
struct Asked {
    asked_ms: u64,
    told_ms: u64,
}

/// Fate of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Done,
    Lost,
    Unanswered,
    Late,
    AsConflict,
    Conflict,
    NotTaken,
    Phantom,
    Half,
}

/// The store as one replica reaches it.
pub(super) struct Handle {
    world: Arc<World>,
    process: Arc<Process>,
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("of", &self.process.name)
            .finish_non_exhaustive()
    }
}

impl Handle {
    pub(super) fn new(world: &Arc<World>, process: &Arc<Process>) -> Self {
        Self {
            world: Arc::clone(world),
            process: Arc::clone(process),
        }
    }

    fn is_cut(&self) -> bool {
        self.world.is_broken(Broken::Store)
            || self.world.is_broken(Broken::StoreOf(self.process.slot))
    }

    fn half_ms(&self) -> u64 {
        let world = &self.world;
        let slow = world.is_broken(Broken::Slow) || world.hits(world.faults().call_slow);
        world
            .chance()
            .within(if slow { 200..=2_500 } else { 0..=5 })
    }

    /// Simulates the way of a request. Returns false if it does not arrive.
    async fn go(&self) -> bool {
        self.process.gate().await;
        pause(self.half_ms()).await;
        !self.is_cut()
    }

    /// Simulates the way of an answer, which takes this time. Returns false if it does not arrive.
    async fn come_back(&self, takes_ms: u64) -> bool {
        pause(takes_ms).await;
        let arrives = !self.is_cut();
        if !arrives {
            pause(CALL_MS).await;
        }
        self.process.gate().await;
        if !arrives {
            self.process.health.silence(self.world.now_ms());
        }
        arrives
    }

    /// Simulates an unreachable store: a refusal at once, or no answer. Returns true if certainly nothing was sent.
    async fn give_up(&self) -> bool {
        let at_once = self.world.chance().hits(500);
        pause(if at_once { 5 } else { CALL_MS }).await;
        self.process.gate().await;
        self.process.health.silence(self.world.now_ms());
        at_once
    }

    async fn read<T>(&self, what: &str, look: impl FnOnce(&Truth) -> T) -> Result<T, StoreError> {
        if !self.go().await {
            self.give_up().await;
            return Err(unavailable());
        }
        let fails = self.world.hits(self.world.faults().read_failed);
        let found = look(&self.world.truth());
        if !self.come_back(self.half_ms()).await {
            return Err(unavailable());
        }
        self.process.health.read(!fails, self.world.now_ms());
        if fails {
            let name = &self.process.name;
            self.world.note(format_args!("{name}: {what} fails"));
            return Err(unavailable());
        }
        Ok(found)
    }

    async fn look<T>(
        &self,
        what: &str,
        look: impl FnOnce(&[Arc<View>]) -> T,
    ) -> Result<T, StoreError> {
        let stale = self.world.faults().search_stale;
        self.read(what, |truth| look(&truth.seen(|| self.world.hits(stale))))
            .await
    }

    fn draw_fate(&self) -> Fate {
        let (world, faults) = (&self.world, self.world.faults());
        if world.is_broken(Broken::Full) {
            return Fate::NotTaken;
        }
        if world.is_broken(Broken::Conflicts) && world.hits(600) {
            return if world.hits(500) {
                Fate::Conflict
            } else {
                Fate::AsConflict
            };
        }
        let kinds = [
            (faults.write_lost, Fate::Lost),
            (faults.write_unanswered, Fate::Unanswered),
            (faults.write_late, Fate::Late),
            (faults.write_as_conflict, Fate::AsConflict),
            (faults.write_conflict, Fate::Conflict),
            (faults.write_not_taken, Fate::NotTaken),
            (faults.write_phantom, Fate::Phantom),
            (faults.submit_half, Fate::Half),
        ];
        let drawn = kinds.into_iter().find(|(rate, _)| world.hits(*rate));
        drawn.map_or(Fate::Done, |(_, fate)| fate)
    }

    async fn write(&self, ops: Vec<Op>) -> Vec<Outcome> {
        let asked_ms = self.world.now_ms();
        if !self.go().await {
            let certain = self.give_up().await;
            let error = if certain { not_taken() } else { unknown() };
            return ops.iter().map(|_| Err(error.clone())).collect();
        }
        let of_all = self.draw_fate();
        let (item_alone, mut back_ms) = (self.world.faults().item_alone, self.half_ms());
        if matches!(of_all, Fate::Lost | Fate::Unanswered | Fate::Late) {
            back_ms += self.world.chance().within(0..=CALL_MS);
        }
        let told_ms = self.world.now_ms() + back_ms;
        let asked = Asked { asked_ms, told_ms };
        let mut outcomes = Vec::with_capacity(ops.len());
        for op in &ops {
            let alone = self.world.hits(item_alone);
            let fate = if alone { self.draw_fate() } else { of_all };
            outcomes.push(self.meet(op, fate, asked));
        }
        if !self.come_back(back_ms).await {
            return ops.iter().map(|_| Err(unknown())).collect();
        }
        let taken = |outcome: &Outcome| !matches!(outcome, Err(ItemError::NotTaken { .. }));
        let now_ms = self.world.now_ms();
        self.process
            .health
            .wrote(outcomes.iter().all(taken), now_ms);
        outcomes
    }

    fn apply(&self, op: &Op, asked: Asked) -> Outcome {
        apply(&self.world, op, &self.process, asked)
    }

    /// Applies one write according to its fate.
    fn meet(&self, op: &Op, fate: Fate, asked: Asked) -> Outcome {
        if fate != Fate::Done {
            let name = &self.process.name;
            self.world
                .note(format_args!("{name}: {} meets {fate:?}", shown(op)));
        }
        match (fate, op) {
            (Fate::Done, _) => self.apply(op, asked),
            (Fate::Half, Op::Create(job)) => {
                if self.world.chance().hits(500) {
                    self.world.truth().create_body(job);
                } else {
                    // The result shows when the other half arrives.
                    let _ = create_state(&self.world, job, &self.process, asked);
                }
                Err(unknown())
            }
            (Fate::Half | Fate::Unanswered, _) => {
                // Nobody gets the result.
                let _ = self.apply(op, asked);
                Err(unknown())
            }
            (Fate::Phantom, Op::Patch(patch)) => {
                let for_ms = self.world.chance().within(50..=3_000);
                let until_ms = self.world.now_ms() + for_ms;
                self.world
                    .truth()
                    .phantom(patch, self.process.slot, until_ms);
                Err(unknown())
            }
            (Fate::Phantom, Op::Put(kind, write)) => {
                let for_ms = self.world.chance().within(50..=3_000);
                let until_ms = self.world.now_ms() + for_ms;
                self.world
                    .truth()
                    .phantom_doc(*kind, write, self.process.slot, until_ms);
                Err(unknown())
            }
            (Fate::Lost | Fate::Phantom, _) => Err(unknown()),
            (Fate::Late, _) => {
                self.later(op.clone(), asked);
                Err(unknown())
            }
            (Fate::AsConflict, _) => {
                // Either the write is stored, or it truly conflicts.
                let _ = self.apply(op, asked);
                Err(ItemError::Conflict { current: None })
            }
            (Fate::Conflict, _) => Err(ItemError::Conflict { current: None }),
            (Fate::NotTaken, _) => Err(not_taken()),
        }
    }

    /// Applies the write seconds later, whatever happens to its sender.
    fn later(&self, op: Op, asked: Asked) {
        let (world, process) = (Arc::clone(&self.world), Arc::clone(&self.process));
        let late_ms = world.chance().within(10..=8_000);
        self.world.tasks.spawn(async move {
            pause(late_ms).await;
            let outcome = apply(&world, &op, &process, asked);
            if outcome.is_ok() {
                world.note(format_args!("{}: {} came late", process.name, shown(&op)));
            }
        });
    }
}

fn shown(op: &Op) -> String {
    match op {
        Op::Create(job) => format!("create {}", job.state.job_id),
        Op::Patch(patch) => format!("patch {}", patch.id),
        Op::Put(DocKind::Timer, write) => {
            let body = write.body.as_ref();
            let said = |field: &str| body.and_then(|body| body.get(field)).cloned();
            format!(
                "put timers/{} (runs {}, pending {})",
                write.id,
                said("runs").unwrap_or_default(),
                said("pending").unwrap_or_default()
            )
        }
        Op::Put(kind @ DocKind::Lease, write) => {
            let body = write.body.as_ref();
            let jobs = body.and_then(|body| body.get("jobs")).cloned();
            let jobs = jobs.unwrap_or_default();
            format!("put {}/{} of {jobs}", kind.as_str(), write.id)
        }
        Op::Put(kind, write) => format!("put {}/{}", kind.as_str(), write.id),
    }
}

fn apply(world: &World, op: &Op, process: &Process, asked: Asked) -> Outcome {
    match op {
        Op::Create(job) => {
            if !world.truth().create_body(job) {
                return Err(ItemError::Conflict { current: None });
            }
            create_state(world, job, process, asked)
        }
        Op::Patch(patch) => {
            let change = world.truth().patch(patch, asked.told_ms)?;
            let version = change.version;
            world.changed(&change, &process.name, asked.asked_ms);
            Ok(version)
        }
        Op::Put(kind, write) => {
            let version = world.truth().put(*kind, write)?;
            world.doc_written(*kind, write);
            let (name, number) = (&process.name, version.seq_no);
            world.note(format_args!("{name}: {} {number}", shown(op)));
            Ok(version)
        }
    }
}

fn create_state(world: &World, job: &NewJob, process: &Process, asked: Asked) -> Outcome {
    world.is_wanted(job);
    let change = world.truth().create_state(job, asked.told_ms)?;
    let version = change.version;
    world.changed(&change, &process.name, asked.asked_ms);
    if change.before.is_none() {
        world.created(job);
    }
    Ok(version)
}

#[async_trait]
impl JobStore for Handle {
    async fn submit(&self, jobs: Vec<NewJob>) -> Vec<Result<Created, ItemError>> {
        let ids: Vec<JobId> = jobs.iter().map(|job| job.state.job_id).collect();
        let ops = jobs.into_iter().map(|job| Op::Create(Box::new(job)));
        let written = self.write(ops.collect()).await;
        self.world.truth().created(&ids, written)
    }

    async fn get(&self, ids: &[JobId]) -> Result<Vec<Option<StoredJob>>, StoreError> {
        let (slot, world) = (self.process.slot, &self.world);
        self.read("get", |truth| {
            let now_ms = world.now_ms();
            ids.iter().map(|id| truth.read(*id, slot, now_ms)).collect()
        })
        .await
    }

    async fn get_bodies(&self, ids: &[JobId]) -> Result<Vec<Option<Spec>>, StoreError> {
        self.read("get_bodies", |truth| {
            ids.iter().map(|id| truth.body(*id).cloned()).collect()
        })
        .await
    }

    async fn patch(&self, patches: Vec<Patch>) -> Vec<Outcome> {
        self.write(patches.into_iter().map(Op::Patch).collect())
            .await
    }

    async fn count(&self, of: &CountOf) -> Result<Counts, StoreError> {
        self.look("counts", |views| query::counts(views, of)).await
    }

    async fn pull(&self, requests: &[Pull]) -> Result<Vec<Page>, StoreError> {
        self.look("pull", |views| {
            requests.iter().map(|it| query::pull(views, it)).collect()
        })
        .await
    }

    async fn find(&self, requests: &[Find]) -> Result<Vec<Page>, StoreError> {
        self.look("find", |views| {
            requests.iter().map(|it| query::find(views, it)).collect()
        })
        .await
    }

    async fn change_mark(&self) -> Result<ChangeMark, StoreError> {
        self.look("change_mark", query::change_mark).await
    }

    fn place_of(&self, id: JobId) -> Option<Arc<str>> {
        query::known_place(id, self.world.scenario.places)
    }

    async fn changes(&self, requests: &[Changes]) -> Result<Vec<ChangePage>, StoreError> {
        self.look("changes", |views| query::changes(views, requests))
            .await
    }

    async fn alarms(&self, before_ms: u64, limit: u32) -> Result<Page, StoreError> {
        self.look("alarms", |views| query::alarms(views, before_ms, limit))
            .await
    }

    async fn usage(&self, usage: &Usage) -> Result<Vec<u64>, StoreError> {
        self.look("usage", |views| query::usage(views, usage)).await
    }

    async fn search(&self, search: &Search) -> Result<SearchPage, StoreError> {
        self.look("search", |views| query::search(views, search))
            .await
    }

    async fn groups(&self, search: &Search, by: GroupBy) -> Result<Vec<Group>, StoreError> {
        self.look("groups", |views| query::groups(views, search, by))
            .await
    }

    async fn named(&self, content: &[String]) -> Result<Vec<bool>, StoreError> {
        self.refresh().await?;
        let named = |truth: &Truth| query::named(&truth.seen(|| false), content);
        self.read("named", named).await
    }

    async fn get_docs(&self, kind: DocKind, ids: &[String]) -> Docs {
        let (slot, world) = (self.process.slot, &self.world);
        self.read("get_docs", |truth| {
            let now_ms = world.now_ms();
            ids.iter()
                .map(|id| truth.doc(kind, id, slot, now_ms))
                .collect()
        })
        .await
    }

    async fn put_docs(&self, kind: DocKind, writes: Vec<DocWrite>) -> Vec<Outcome> {
        let ops = writes.into_iter().map(|write| Op::Put(kind, write));
        self.write(ops.collect()).await
    }

    async fn list_docs(&self, kind: DocKind) -> Result<Vec<Doc>, StoreError> {
        let stale = self.world.hits(self.world.faults().search_stale);
        self.read("list_docs", |truth| truth.list(kind, stale))
            .await
    }

    async fn page_docs(&self, kind: DocKind, find: &DocFind) -> Result<DocPage, StoreError> {
        let docs = self.list_docs(kind).await?;
        Ok(query::page_docs(docs, find))
    }

    async fn due_docs(
        &self,
        kind: DocKind,
        before_ms: u64,
        limit: u32,
    ) -> Result<Vec<DueDoc>, StoreError> {
        let docs = self.list_docs(kind).await?;
        Ok(query::due_docs(docs, before_ms, limit))
    }

    async fn append_events(&self, _: Vec<EventRecord>) -> Result<(), StoreError> {
        // The call is best effort, and nothing depends on it.
        Ok(())
    }

    async fn read_events(&self, _: &EventFind) -> Result<Vec<EventRecord>, StoreError> {
        Ok(Vec::new())
    }

    async fn stage_counts(&self, since_ms: u64) -> Result<StageCounts, StoreError> {
        self.look("stage_counts", |views| query::stage_counts(views, since_ms))
            .await
    }

    async fn drop_oldest(&self, _: JobId) -> Result<Vec<OldMonth>, StoreError> {
        // A simulation ends before anything is old.
        Ok(Vec::new())
    }

    async fn refresh(&self) -> Result<(), StoreError> {
        if !self.go().await {
            self.give_up().await;
            return Err(unavailable());
        }
        self.world.truth().refresh_all();
        let is_back = self.come_back(self.half_ms()).await;
        is_back.then_some(()).ok_or_else(unavailable)
    }

    async fn wall_ms(&self) -> Result<Option<u64>, StoreError> {
        Ok(Some(self.world.true_ms()))
    }

    fn health(&self) -> StoreHealth {
        self.process.health.report(self.world.now_ms())
    }
}
