//! Group commit: writes that are ready together go to the store in one batch.
//!
//! Nobody waits for company: while batches are in flight the next one collects. At most `IN_FLIGHT_MAX`
//! batches of one kind are in flight, each of at most `BATCH_MAX` items.

use std::{collections::VecDeque, fmt, future::Future, pin::Pin, sync::Arc};

use fairlead_store::{DocKind, DocWrite, ItemError, JobStore, NewJob, Patch, Version};
use parking::Parking;
use tokio::sync::{Notify, Semaphore, oneshot};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// More batches at once gain little (measured on Elasticsearch: 2 to 4 is the knee).
const IN_FLIGHT_MAX: usize = 4;
/// Larger batches gain little and wait longer.
const BATCH_MAX: usize = 500;

type Outcome = Result<Version, ItemError>;
type Work<I> =
    Box<dyn Fn(Vec<I>) -> Pin<Box<dyn Future<Output = Vec<Outcome>> + Send>> + Send + Sync>;

/// Collects items of one kind and writes them in batches.
pub(crate) struct GroupCommit<I> {
    waiting: Parking<(I, oneshot::Sender<Outcome>)>,
    ready: Notify,
    in_flight: Arc<Semaphore>,
    work: Work<I>,
}

impl<I> fmt::Debug for GroupCommit<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupCommit")
            .field("waiting", &self.waiting.len())
            .finish_non_exhaustive()
    }
}

impl<I: Send + 'static> GroupCommit<I> {
    fn new(work: Work<I>) -> Arc<Self> {
        Arc::new(Self {
            waiting: Parking::default(),
            ready: Notify::new(),
            in_flight: Arc::new(Semaphore::new(IN_FLIGHT_MAX)),
            work,
        })
    }

    /// Writes `items` and waits for the outcome of each, in order.
    pub(crate) async fn write(&self, items: Vec<I>) -> Vec<Outcome> {
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
        loop {
            tokio::select! {
                biased;
                () = self.ready.notified() => {}
                () = stop.cancelled() => {
                    if self.waiting.len() == 0 {
                        return;
                    }
                }
            }
            while self.waiting.len() > 0 {
                let Ok(permit) = Arc::clone(&self.in_flight).acquire_owned().await else {
                    return;
                };
                let batch = self.waiting.with(|queue| {
                    let take = queue.len().min(BATCH_MAX);
                    queue.drain(..take).collect::<Vec<_>>()
                });
                let this = Arc::clone(&self);
                tasks.spawn(async move {
                    let (items, tells): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
                    let outcomes = (this.work)(items).await;
                    warn_of(&outcomes);
                    for (tell, outcome) in tells.into_iter().zip(outcomes) {
                        // Whoever asked may have hung up; the write is in all the same.
                        let _ = tell.send(outcome);
                    }
                    drop(permit);
                });
            }
        }
    }
}

/// One line for all that a batch lost to a store in trouble.
fn warn_of(outcomes: &[Outcome]) {
    let in_trouble = |outcome: &&Outcome| {
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
    patches: Arc<GroupCommit<Patch>>,
    sessions: Arc<GroupCommit<DocWrite>>,
    leases: Arc<GroupCommit<DocWrite>>,
}

impl Writer {
    /// Starts both writers; they end when `stop` is cancelled and nothing waits.
    pub(crate) fn start(
        store: &Arc<dyn JobStore>,
        stop: &CancellationToken,
        tasks: &TaskTracker,
    ) -> Self {
        let (for_submits, for_patches) = (Arc::clone(store), Arc::clone(store));
        let submits = GroupCommit::new(Box::new(move |jobs| {
            let store = Arc::clone(&for_submits);
            Box::pin(async move { store.submit(jobs).await })
        }));
        let patches = GroupCommit::new(Box::new(move |patches| {
            let store = Arc::clone(&for_patches);
            Box::pin(async move { store.patch(patches).await })
        }));
        let (sessions, leases) = (docs(store, DocKind::Session), docs(store, DocKind::Lease));
        tasks.spawn(Arc::clone(&submits).run(stop.clone(), tasks.clone()));
        tasks.spawn(Arc::clone(&patches).run(stop.clone(), tasks.clone()));
        tasks.spawn(Arc::clone(&sessions).run(stop.clone(), tasks.clone()));
        tasks.spawn(Arc::clone(&leases).run(stop.clone(), tasks.clone()));
        Self {
            submits,
            patches,
            sessions,
            leases,
        }
    }

    /// Creates jobs.
    pub(crate) async fn submit(&self, jobs: Vec<NewJob>) -> Vec<Outcome> {
        self.submits.write(jobs).await
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

fn docs(store: &Arc<dyn JobStore>, kind: DocKind) -> Arc<GroupCommit<DocWrite>> {
    let store = Arc::clone(store);
    GroupCommit::new(Box::new(move |writes| {
        let store = Arc::clone(&store);
        Box::pin(async move { store.put_docs(kind, writes).await })
    }))
}

/// The outcome of a batch of one.
pub(crate) fn only(outcomes: Vec<Outcome>) -> Outcome {
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
