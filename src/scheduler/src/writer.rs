//! Group commit: writes that are ready together go to the store in one batch.
//!
//! The first goes at once; while a batch is in flight the next one collects. A further one goes beside it when it is
//! worth a request of its own, or has waited for `PATIENCE_MS`. At most `IN_FLIGHT_MAX` batches of one kind are in
//! flight, each of at most `BATCH_MAX` items; one that is stuck is not counted.

use std::{collections::VecDeque, fmt, future::Future, pin::Pin, sync::Arc};

use fairlead_dispatch::Millis;
use fairlead_store::{DocKind, DocWrite, ItemError, JobStore, NewJob, Patch, StoredJob, Version};
use parking::Parking;
use tokio::sync::{Notify, oneshot};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::clock::Clock;

/// More batches at once gain little (measured on Elasticsearch: 2 to 4 is the knee).
const IN_FLIGHT_MAX: usize = 4;
/// Larger batches gain little and wait longer.
const BATCH_MAX: usize = 500;
/// What collects goes beside `n` batches in flight when it has `n` times so many items. A request alone costs the store
/// as much as several items do.
const COMPANY: usize = 32;
/// Or when it has collected for so long: the store is slow, not busy.
const PATIENCE_MS: u64 = 20;
/// A batch that is in flight for so long is stuck, ms. Where a node of Elasticsearch hangs, the others hold on to writes
/// that went on to it until the request times out, also when they do without it by then; what comes later is written.
const STUCK_MS: u64 = 2_000;

type Outcome<O = Version> = Result<O, ItemError>;
type Work<I, O> =
    Box<dyn Fn(Vec<I>) -> Pin<Box<dyn Future<Output = Vec<Outcome<O>>> + Send>> + Send + Sync>;

/// Collects items of one kind and writes them in batches; each is answered with an `O`.
pub(crate) struct GroupCommit<I, O = Version> {
    waiting: Parking<(I, oneshot::Sender<Outcome<O>>)>,
    /// Something waits, or a batch is back.
    ready: Notify,
    /// When each batch in flight was sent.
    in_flight: Parking<Millis>,
    clock: Clock,
    work: Work<I, O>,
}

impl<I, O> fmt::Debug for GroupCommit<I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupCommit")
            .field("waiting", &self.waiting.len())
            .finish_non_exhaustive()
    }
}

impl<I: Send + 'static, O: Send + 'static> GroupCommit<I, O> {
    fn new(clock: &Clock, work: Work<I, O>) -> Arc<Self> {
        Arc::new(Self {
            waiting: Parking::default(),
            ready: Notify::new(),
            in_flight: Parking::default(),
            clock: clock.clone(),
            work,
        })
    }

    /// Writes `items` and waits for the outcome of each, in order.
    pub(crate) async fn write(&self, items: Vec<I>) -> Vec<Outcome<O>> {
        let mut answers = Vec::with_capacity(items.len());
        self.waiting.with(|queue| {
            for item in items {
                let (tell, told) = oneshot::channel();
                queue.push_back((item, tell));
                answers.push(told);
            }
        });
        self.ready.notify_one();
        let mut outcomes = Vec::with_capacity(answers.len());
        for told in answers {
            outcomes.push(told.await.unwrap_or_else(|_| {
                Err(ItemError::Unknown {
                    reason: "the writer stopped before it had an answer".to_owned(),
                })
            }));
        }
        outcomes
    }

    /// Takes batches until `stop`, then writes what still waits.
    async fn run(self: Arc<Self>, stop: CancellationToken, tasks: TaskTracker) {
        // When what waits has waited long enough.
        let mut patience = None;
        loop {
            let (waiting, now) = (self.waiting.len(), self.clock.now());
            let (busy, stuck_at) = self.busy(now);
            let is_late = patience.is_some_and(|until| until <= now);
            if waiting > 0 && busy < IN_FLIGHT_MAX && (waiting >= busy * COMPANY || is_late) {
                patience = None;
                self.in_flight.with(|sent| sent.push_back(now));
                let batch = self.waiting.with(|queue| {
                    let take = queue.len().min(BATCH_MAX);
                    queue.drain(..take).collect::<Vec<_>>()
                });
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

    /// How many batches are in flight and not stuck, and when the first of these is.
    fn busy(&self, now: Millis) -> (usize, Option<Millis>) {
        self.in_flight.with(|sent| {
            let stuck_at = sent.iter().map(|at| Millis(at.0.saturating_add(STUCK_MS)));
            let moving = stuck_at.filter(|at| *at > now);
            (moving.clone().count(), moving.min())
        })
    }

    /// Writes a batch of what waits.
    async fn send(self: Arc<Self>, batch: Vec<(I, oneshot::Sender<Outcome<O>>)>, sent: Millis) {
        let _back = Back(&self.in_flight, sent, &self.ready);
        let (items, tells): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
        let outcomes = (self.work)(items).await;
        warn_of(&outcomes);
        for (tell, outcome) in tells.into_iter().zip(outcomes) {
            // Whoever asked may have hung up; the write is in all the same.
            let _ = tell.send(outcome);
        }
    }
}

/// A batch in flight; back when this is dropped.
struct Back<'a>(&'a Parking<Millis>, Millis, &'a Notify);

impl Drop for Back<'_> {
    fn drop(&mut self) {
        self.0.with(|sent| {
            if let Some(mine) = sent.iter().position(|at| *at == self.1) {
                sent.remove(mine);
            }
        });
        self.2.notify_one();
    }
}

/// One line for all that a batch lost to a store in trouble.
fn warn_of<O>(outcomes: &[Outcome<O>]) {
    let in_trouble = |outcome: &&Outcome<O>| {
        matches!(
            outcome,
            Err(ItemError::NotTaken { .. } | ItemError::Unknown { .. })
        )
    };
    let writes = outcomes.iter().filter(in_trouble).count();
    if let Some(Err(error)) = outcomes.iter().find(in_trouble) {
        tracing::warn!(writes, of = outcomes.len(), %error, "the store did not take writes");
    }
}

/// The writers of a replica.
#[derive(Debug, Clone)]
pub(crate) struct Writer {
    submits: Arc<GroupCommit<NewJob>>,
    claims: Arc<GroupCommit<Patch, StoredJob>>,
    patches: Arc<GroupCommit<Patch>>,
    sessions: Arc<GroupCommit<DocWrite>>,
    leases: Arc<GroupCommit<DocWrite>>,
}

impl Writer {
    /// Starts all writers; they end when `stop` is cancelled and nothing waits.
    pub(crate) fn start(
        store: &Arc<dyn JobStore>,
        clock: &Clock,
        stop: &CancellationToken,
        tasks: &TaskTracker,
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
                Box::pin(async move { store.patch_and_get(patches).await })
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
        tasks.spawn(Arc::clone(&submits).run(stop.clone(), tasks.clone()));
        tasks.spawn(Arc::clone(&claims).run(stop.clone(), tasks.clone()));
        tasks.spawn(Arc::clone(&patches).run(stop.clone(), tasks.clone()));
        tasks.spawn(Arc::clone(&sessions).run(stop.clone(), tasks.clone()));
        tasks.spawn(Arc::clone(&leases).run(stop.clone(), tasks.clone()));
        Self {
            submits,
            claims,
            patches,
            sessions,
            leases,
        }
    }

    /// Creates jobs.
    pub(crate) async fn submit(&self, jobs: Vec<NewJob>) -> Vec<Outcome> {
        self.submits.write(jobs).await
    }

    /// Compare-and-set of one state by a claim, answered with the job as it is then.
    pub(crate) async fn claim(&self, patch: Patch) -> Outcome<StoredJob> {
        only(self.claims.write(vec![patch]).await)
    }

    /// Compare-and-set of one state.
    pub(crate) async fn patch(&self, patch: Patch) -> Outcome {
        only(self.patches.write(vec![patch]).await)
    }

    /// Compare-and-set of one host's session document.
    pub(crate) async fn session(&self, write: DocWrite) -> Outcome {
        only(self.sessions.write(vec![write]).await)
    }

    /// Compare-and-set of one host's lease document.
    pub(crate) async fn lease(&self, write: DocWrite) -> Outcome {
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

/// The outcome of a batch of one.
pub(crate) fn only<O>(outcomes: Vec<Outcome<O>>) -> Outcome<O> {
    outcomes.into_iter().next().unwrap_or_else(|| {
        Err(ItemError::Unknown {
            reason: "the store gave no outcome".to_owned(),
        })
    })
}

mod parking {
    //! A queue behind a lock that is only ever held for a few pushes or one drain.

    use std::sync::{Mutex, PoisonError};

    use super::VecDeque;

    pub(super) struct Parking<T>(Mutex<VecDeque<T>>);

    impl<T> Default for Parking<T> {
        fn default() -> Self {
            Self(Mutex::new(VecDeque::new()))
        }
    }

    impl<T> Parking<T> {
        pub(super) fn with<R>(&self, work: impl FnOnce(&mut VecDeque<T>) -> R) -> R {
            work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
        }

        pub(super) fn len(&self) -> usize {
            self.with(|queue| queue.len())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Batches that a hung node held kept all others from a store that was well again.
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
        let tasks = TaskTracker::new();
        tasks.spawn(Arc::clone(&commit).run(CancellationToken::new(), tasks.clone()));
        for n in 0..stuck {
            // Each in a batch of its own.
            let held = commit.write(vec![n]);
            let held = tokio::time::timeout(Duration::from_millis(2 * PATIENCE_MS), held);
            assert!(held.await.is_err(), "it is stuck");
        }
        assert_eq!(commit.in_flight.len(), IN_FLIGHT_MAX);
        // Before requests time out.
        let next = tokio::time::timeout(Duration::from_secs(9), commit.write(vec![stuck]));
        assert_eq!(next.await.unwrap(), [Ok(stuck)]);
        assert_eq!(commit.in_flight.len(), IN_FLIGHT_MAX);
    }
}
