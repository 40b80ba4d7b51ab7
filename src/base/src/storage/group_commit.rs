//! Group commit: writes that are ready together go to the store in one batch.
//!
//! A request costs the store as much as several writes in it. A replica that sends 1,000 claims a second one by one
//! makes 1,000 requests, and the store is busy with requests. To collect writes for a fixed time would help, but then
//! each write waits for that time, also when nothing else happens.
//!
//! So the store's own answer time is used to collect. The first write goes at once. While its batch is in flight, the
//! next batch collects, and it goes when the first one is back. For example, a claim comes each millisecond, and the
//! store answers after ten:
//!
//! ```text
//! ms        0          10         20         30
//! batch 1   [1 item---]
//! batch 2              [10 items-]
//! batch 3                         [10 items-]
//! ```
//!
//! These are about 100 requests a second instead of 1,000, and no claim waits longer than ten milliseconds to be sent.
//! A write that comes alone never waits.
//!
//! If the store is slow, one batch at a time is too little. So another batch starts beside those in flight, once it is
//! worth a request of its own: with `n` batches in flight, when it has 32 × `n` items (`COMPANY`). It also starts when
//! it has waited for 20 ms (`PATIENCE_MS`). At most four batches of one kind are in flight (`IN_FLIGHT_MAX`), each with
//! at most 500 items (`BATCH_MAX`).
//!
//! A node that hangs may hold a batch until its request times out. Four such batches would stop all writes of that
//! kind, although the other nodes are well. So after two seconds a batch counts as stuck and no longer among the four.
//!
//! Limits: batches in flight side by side may reach the store in any order, so no write may rely on the order. Items
//! that were given together stay in one batch, up to 500. Each item has its own outcome. A batch without an answer
//! leaves each of its items unknown.

use std::{collections::VecDeque, fmt, future::Future, pin::Pin, sync::Arc};

use fairlead_dispatch::Millis;
use fairlead_store::{
    Created, DocKind, DocWrite, ItemError, JobStore, NewJob, Patch, StoredJob, Version,
};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{clock::Clock, tasks::Tasks};

/// Maximum number of batches in flight. More gain little (measured on Elasticsearch: 2 to 4 is the knee).
const IN_FLIGHT_MAX: usize = 4;
/// Maximum size of a batch. Larger ones gain little and wait longer.
const BATCH_MAX: usize = 500;
/// Items per batch in flight from which the next batch is sent. A request alone costs the store as much as several
/// items.
const COMPANY: usize = 32;
/// Time after which the next batch is sent in any case, ms: the store is slow, not busy.
const PATIENCE_MS: u64 = 20;
/// Time after which a batch in flight counts as stuck, ms. If a node of Elasticsearch hangs, the others hold its
/// writes until the request times out. Later writes are written.
const STUCK_MS: u64 = 2_000;

type Outcome<O = Version> = Result<O, ItemError>;
type Work<I, O> =
    Box<dyn Fn(Vec<I>) -> Pin<Box<dyn Future<Output = Vec<Outcome<O>>> + Send>> + Send + Sync>;

/// Collects items of one kind and writes them in batches. Each item is answered with an `O`.
pub struct GroupCommit<I, O = Version> {
    waiting: Mutex<Line<I, O>>,
    /// Notified when a group waits, or a batch is back.
    ready: Notify,
    /// Send times of the batches in flight.
    in_flight: Mutex<Vec<Millis>>,
    clock: Clock,
    work: Work<I, O>,
}

/// Items that were given together.
struct Group<I, O> {
    items: Vec<I>,
    tell: oneshot::Sender<Vec<Outcome<O>>>,
}

/// Waiting groups, first come first.
struct Line<I, O> {
    groups: VecDeque<Group<I, O>>,
    /// Number of items in all groups.
    items: usize,
}

impl<I, O> Line<I, O> {
    fn push(&mut self, group: Group<I, O>) {
        self.items += group.items.len();
        self.groups.push_back(group);
    }

    /// Removes and returns the next batch: whole groups, at least one.
    fn take(&mut self) -> Vec<Group<I, O>> {
        let mut batch = Vec::new();
        let mut size = 0;
        while let Some(group) = self.groups.pop_front_if(|group| {
            size += group.items.len();
            size <= BATCH_MAX
        }) {
            self.items -= group.items.len();
            batch.push(group);
        }
        batch
    }
}

impl<I, O> fmt::Debug for GroupCommit<I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupCommit")
            .field("waiting", &lock(&self.waiting).items)
            .finish_non_exhaustive()
    }
}

impl<I: Send + 'static, O: Send + 'static> GroupCommit<I, O> {
    pub(super) fn new(clock: &Clock, work: Work<I, O>) -> Arc<Self> {
        Arc::new(Self {
            waiting: Mutex::new(Line {
                groups: VecDeque::new(),
                items: 0,
            }),
            ready: Notify::new(),
            in_flight: Mutex::default(),
            clock: clock.clone(),
            work,
        })
    }

    /// Writes `items` and returns the result of each, in order.
    pub async fn write(&self, items: Vec<I>) -> Vec<Outcome<O>> {
        let mut outcomes = Vec::with_capacity(items.len());
        let mut answers = Vec::new();
        let mut rest = items;
        while !rest.is_empty() {
            let after = rest.split_off(rest.len().min(BATCH_MAX));
            let items = std::mem::replace(&mut rest, after);
            let (tell, told) = oneshot::channel();
            answers.push((items.len(), told));
            lock(&self.waiting).push(Group { items, tell });
        }
        self.ready.notify_one();
        for (many, told) in answers {
            let mut told = told.await.unwrap_or_default();
            told.resize_with(many, || {
                Err(ItemError::Unknown {
                    reason: "the writer gave no outcome".to_owned(),
                })
            });
            outcomes.append(&mut told);
        }
        outcomes
    }

    /// Starts a task that writes until `stop` is cancelled and no item waits.
    pub(super) fn start(
        self: &Arc<Self>,
        name: &'static str,
        stop: &CancellationToken,
        tasks: &Tasks,
    ) {
        tasks.run(name, Arc::clone(self).run(stop.clone(), tasks.clone()));
    }

    /// Takes batches until `stop`, then writes the waiting items.
    async fn run(self: Arc<Self>, stop: CancellationToken, tasks: Tasks) {
        // Time at which the waiting items have waited long enough.
        let mut patience = None;
        loop {
            let (waiting, now) = (lock(&self.waiting).items, self.clock.now());
            let (busy, stuck_at) = self.busy(now);
            let is_late = patience.is_some_and(|until| until <= now);
            if waiting > 0 && busy < IN_FLIGHT_MAX && (waiting >= busy * COMPANY || is_late) {
                patience = None;
                lock(&self.in_flight).push(now);
                let batch = lock(&self.waiting).take();
                tasks.spawn(Arc::clone(&self).send(batch, now));
                continue;
            }
            if waiting == 0 && stop.is_cancelled() {
                return;
            }
            if waiting == 0 {
                patience = None;
            } else if patience.is_none() {
                patience = Some(Millis(now.0.saturating_add(PATIENCE_MS)));
            }
            let wake = if busy < IN_FLIGHT_MAX {
                patience
            } else {
                stuck_at
            };
            let late = async {
                match wake {
                    Some(at) if waiting > 0 => self.clock.sleep_until(at).await,
                    _ => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.ready.notified() => {}
                () = stop.cancelled(), if waiting == 0 => {}
                () = late => {}
            }
        }
    }

    /// Returns the number of batches in flight that are not stuck, and the time when the first of them will be.
    fn busy(&self, now: Millis) -> (usize, Option<Millis>) {
        let sent = lock(&self.in_flight);
        let stuck_at = sent.iter().map(|at| Millis(at.0.saturating_add(STUCK_MS)));
        let moving = stuck_at.filter(|at| *at > now);
        (moving.clone().count(), moving.min())
    }

    /// Writes a batch of waiting groups.
    async fn send(self: Arc<Self>, batch: Vec<Group<I, O>>, sent: Millis) {
        let _back = Back(&self.in_flight, sent, &self.ready);
        let (mut items, mut tells) = (Vec::new(), Vec::with_capacity(batch.len()));
        for mut group in batch {
            tells.push((group.items.len(), group.tell));
            items.append(&mut group.items);
        }
        let outcomes = (self.work)(items).await;
        warn_of(&outcomes);
        let mut outcomes = outcomes.into_iter();
        for (many, tell) in tells {
            // The caller may have hung up; the write is stored anyway.
            let _ = tell.send(outcomes.by_ref().take(many).collect());
        }
    }
}

/// Guard of a batch in flight. The batch is back when the guard is dropped.
struct Back<'a>(&'a Mutex<Vec<Millis>>, Millis, &'a Notify);

impl Drop for Back<'_> {
    fn drop(&mut self) {
        let mut sent = lock(self.0);
        if let Some(mine) = sent.iter().position(|at| *at == self.1) {
            sent.remove(mine);
        }
        drop(sent);
        self.2.notify_one();
    }
}

/// Logs one line for all items that a batch lost to a store in trouble.
fn warn_of<O>(outcomes: &[Outcome<O>]) {
    let in_trouble = |outcome: &&Outcome<O>| {
        matches!(
            outcome,
            Err(ItemError::NotTaken { .. } | ItemError::Unknown { .. })
        )
    };
    let writes = outcomes.iter().filter(in_trouble).count();
    if let Some(Err(error)) = outcomes.iter().find(in_trouble) {
        tracing::warn!(writes, of = outcomes.len(), %error, "the store did not accept writes");
    }
}

/// The writers of a replica.
#[derive(Debug, Clone)]
pub struct Writer {
    submits: Arc<GroupCommit<NewJob, Created>>,
    claims: Arc<GroupCommit<Patch, Arc<StoredJob>>>,
    patches: Arc<GroupCommit<Patch>>,
    sessions: Arc<GroupCommit<DocWrite>>,
    leases: Arc<GroupCommit<DocWrite>>,
}

impl Writer {
    /// Starts all writers. They end when `stop` is cancelled and no item waits.
    pub fn start(
        store: &Arc<dyn JobStore>,
        clock: &Clock,
        stop: &CancellationToken,
        tasks: &Tasks,
    ) -> Self {
        let (for_submits, for_claims) = (Arc::clone(store), Arc::clone(store));
        let for_patches = Arc::clone(store);
        let submits = GroupCommit::new(
            clock,
            Box::new(move |jobs| {
                let store = Arc::clone(&for_submits);
                Box::pin(async move { store.submit(jobs).await })
            }),
        );
        let claims = GroupCommit::new(
            clock,
            Box::new(move |patches| {
                let store = Arc::clone(&for_claims);
                Box::pin(async move {
                    let written = store.patch_and_get(patches).await.into_iter();
                    written.map(|job| job.map(Arc::new)).collect()
                })
            }),
        );
        let patches = GroupCommit::new(
            clock,
            Box::new(move |patches| {
                let store = Arc::clone(&for_patches);
                Box::pin(async move { store.patch(patches).await })
            }),
        );
        let (sessions, leases) = (
            docs(store, clock, DocKind::Session),
            docs(store, clock, DocKind::Lease),
        );
        submits.start("write_submits", stop, tasks);
        claims.start("write_claims", stop, tasks);
        patches.start("write_patches", stop, tasks);
        sessions.start("write_sessions", stop, tasks);
        leases.start("write_leases", stop, tasks);
        Self {
            submits,
            claims,
            patches,
            sessions,
            leases,
        }
    }

    /// Creates jobs.
    pub async fn submit(&self, jobs: Vec<NewJob>) -> Vec<Outcome<Created>> {
        self.submits.write(jobs).await
    }

    /// Compare-and-set of states by claims, answered with the resulting jobs.
    pub async fn claim(&self, patches: Vec<Patch>) -> Vec<Outcome<Arc<StoredJob>>> {
        self.claims.write(patches).await
    }

    /// Compare-and-set of one state.
    pub async fn patch(&self, patch: Patch) -> Outcome {
        only(self.patches.write(vec![patch]).await)
    }

    /// Compare-and-set of one host's session document.
    pub async fn session(&self, write: DocWrite) -> Outcome {
        only(self.sessions.write(vec![write]).await)
    }

    /// Compare-and-set of one host's lease document.
    pub async fn lease(&self, write: DocWrite) -> Outcome {
        only(self.leases.write(vec![write]).await)
    }
}

fn docs(store: &Arc<dyn JobStore>, clock: &Clock, kind: DocKind) -> Arc<GroupCommit<DocWrite>> {
    let store = Arc::clone(store);
    GroupCommit::new(
        clock,
        Box::new(move |writes| {
            let store = Arc::clone(&store);
            Box::pin(async move { store.put_docs(kind, writes).await })
        }),
    )
}

/// Returns the result of a batch of one.
pub fn only<O>(outcomes: Vec<Outcome<O>>) -> Outcome<O> {
    outcomes.into_iter().next().unwrap_or_else(|| {
        Err(ItemError::Unknown {
            reason: "the store gave no outcome".to_owned(),
        })
    })
}

/// Locks a mutex that is only held for a few pushes or one batch.
fn lock<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_given_together_is_written_together_up_to_a_batch() {
        let sizes = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&sizes);
        let work = move |items: Vec<u32>| -> Pin<Box<dyn Future<Output = _> + Send>> {
            lock(&seen).push(items.len());
            Box::pin(async move { items.into_iter().map(Ok).collect() })
        };
        let commit: Arc<GroupCommit<u32, u32>> = GroupCommit::new(&Clock::system(), Box::new(work));
        let tasks = Tasks::default();
        tasks.spawn(Arc::clone(&commit).run(CancellationToken::new(), tasks.clone()));
        let many = |count: u32| (0..count).collect::<Vec<_>>();
        let all = |count: u32| (0..count).map(Ok).collect::<Vec<_>>();
        let (a, b, c, none) = tokio::join!(
            commit.write(many(300)),
            commit.write(many(300)),
            commit.write(many(1_100)),
            commit.write(Vec::new()),
        );
        assert_eq!((a, b, c), (all(300), all(300), all(1_100)));
        assert_eq!(none, []);
        assert_eq!(*lock(&sizes), [300, 300, 500, 500, 100]);
        assert_eq!(lock(&commit.waiting).items, 0);
    }

    /// Batches held by a hung node blocked all others from a store that was well again.
    #[tokio::test(start_paused = true)]
    async fn what_comes_after_batches_that_are_stuck_is_written() {
        let stuck = u32::try_from(IN_FLIGHT_MAX).unwrap();
        let work = move |items: Vec<u32>| -> Pin<Box<dyn Future<Output = _> + Send>> {
            Box::pin(async move {
                if items[0] < stuck {
                    std::future::pending::<()>().await;
                }
                items.into_iter().map(Ok).collect()
            })
        };
        let clock = Clock::system();
        let commit: Arc<GroupCommit<u32, u32>> = GroupCommit::new(&clock, Box::new(work));
        let tasks = Tasks::default();
        tasks.spawn(Arc::clone(&commit).run(CancellationToken::new(), tasks.clone()));
        for n in 0..stuck {
            // Each in a batch of its own.
            let held = commit.write(vec![n]);
            let held = tokio::time::timeout(Duration::from_millis(2 * PATIENCE_MS), held);
            assert!(held.await.is_err(), "it is stuck");
        }
        assert_eq!(lock(&commit.in_flight).len(), IN_FLIGHT_MAX);
        // Before requests time out.
        let next = tokio::time::timeout(Duration::from_secs(9), commit.write(vec![stuck]));
        assert_eq!(next.await.unwrap(), [Ok(stuck)]);
        assert_eq!(lock(&commit.in_flight).len(), IN_FLIGHT_MAX);
    }
}
