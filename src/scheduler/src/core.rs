//! What all parts of a replica share.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use fairlead_api::ErrorCode;
use fairlead_dispatch::OfferKey;
use fairlead_job::{IdMaker, JobId};
use fairlead_store::JobStore;
use tokio::sync::{Semaphore, broadcast};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    Clock, Config, Parts, PeerLink,
    base::{budget::Budget, errors::Refusal, mailbox::Mailbox, metrics::Metrics, sealing::Sealer},
    known::{
        accounts::Accounts, alarms::Alarms, changes::Changes, clusters::Clusters, cordons::Cordons,
        dependants::Dependants, feasibility::Feasibility, host_turns::HostTurns, hosts::Hosts,
        instances::Instances, leases::Renewals, live_jobs::LiveJobs, open_requests::Waiters,
        outbox::Outbox, queues::Queues, replicas::Replicas, reservations::Reservations,
        seen_versions::Seen, sequences::Sequences, timers::Timers, usage::Usage,
        vanished_writes::VanishedWrites,
    },
    storage::group_commit::Writer,
};

/// More submits at once gain nothing: their jobs wait in the same batches.
const SUBMITS_MAX: usize = 256;

/// One replica's shared state. No lock of it is held across an await.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) config: Config,
    pub(crate) clock: Clock,
    pub(crate) store: Arc<dyn JobStore>,
    pub(crate) writer: Writer,
    pub(crate) engine: Mailbox,
    pub(crate) live: LiveJobs,
    /// Requests that wait for an answer of the engine.
    pub(crate) waiters: Waiters,
    pub(crate) hosts: Hosts,
    pub(crate) instances: Instances,
    pub(crate) accounts: Accounts,
    /// Which shapes of jobs some host could run.
    pub(crate) feasibility: Feasibility,
    /// Hosts that get no new job.
    pub(crate) cordons: Cordons,
    /// Hosts that are kept for some accounts.
    pub(crate) reservations: Reservations,
    pub(crate) queues: Queues,
    /// What those have that limits are set of.
    pub(crate) usage: Usage,
    /// The way to other replicas, and where they reach this one.
    pub(crate) peers: Arc<dyn PeerLink>,
    pub(crate) url: String,
    pub(crate) metrics: Metrics,
    pub(crate) changes: Changes,
    pub(crate) dependants: Dependants,
    /// Sequences whose jobs wait for their turn.
    pub(crate) sequences: Sequences,
    /// Clusters to look at now.
    pub(crate) clusters: Clusters,
    /// Waiting jobs that must soon be looked at.
    pub(crate) alarms: Alarms,
    /// Timers that are soon due.
    pub(crate) timers: Timers,
    /// One run of this replica: its name and a random word.
    pub(crate) run: String,
    pub(crate) replicas: Replicas,
    /// What the other replicas are told.
    pub(crate) outbox: Outbox,
    pub(crate) host_turns: HostTurns,
    pub(crate) renewals: Renewals,
    /// Versions of jobs that were seen lately, and what the store seems not to have of them.
    pub(crate) seen: Seen,
    pub(crate) vanished_writes: VanishedWrites,
    pub(crate) sealer: Sealer,
    pub(crate) tasks: TaskTracker,
    /// Submits that are worked on at one time.
    pub(crate) submits: Semaphore,
    /// Large bodies of submits that are read at one time: half of the cores are left to everything else.
    pub(crate) readers: Arc<Semaphore>,
    /// Cancelled first: waiting requests are answered, no new work is taken.
    pub(crate) draining: CancellationToken,
    /// The memory of requests.
    pub(crate) budget: Arc<Budget>,
    ids: Mutex<IdMaker>,
    /// One looks at the number at a time.
    pub(crate) numbering: tokio::sync::Mutex<()>,
    offers: AtomicU64,
    waiting: AtomicU64,
}

impl Core {
    /// A replica that knows nothing yet. `stop` ends its writers.
    pub(crate) fn new(
        config: Config,
        parts: Parts,
        url: String,
        sealer: Sealer,
        stop: &CancellationToken,
    ) -> Self {
        let Parts {
            store,
            clock,
            peers,
            run,
        } = parts;
        let run = format!("{}.{run}", config.replica);
        let tasks = TaskTracker::new();
        let writer = Writer::start(&store, &clock, stop, &tasks);
        let budget = Arc::new(Budget::new(&config.limits));
        let accounts = Accounts::new(config.access.clone(), config.admin.as_ref());
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            ids: Mutex::new(IdMaker::new(0, clock.wall_s())),
            numbering: tokio::sync::Mutex::default(),
            config,
            clock,
            store,
            writer,
            engine: Mailbox::default(),
            live: LiveJobs::default(),
            waiters: Waiters::default(),
            hosts: Hosts::default(),
            instances: Instances::default(),
            accounts,
            cordons: Cordons::default(),
            reservations: Reservations::default(),
            usage: Usage::default(),
            feasibility: Feasibility::default(),
            queues: Queues::default(),
            peers,
            url,
            metrics: Metrics::new(),
            changes: Changes::default(),
            dependants: Dependants::default(),
            sequences: Sequences::default(),
            clusters: Clusters::default(),
            alarms: Alarms::default(),
            timers: Timers::default(),
            run,
            replicas: Replicas::default(),
            outbox: Outbox::default(),
            host_turns: HostTurns::default(),
            renewals: Renewals::default(),
            seen: Seen::default(),
            vanished_writes: VanishedWrites::default(),
            sealer,
            tasks,
            submits: Semaphore::new(SUBMITS_MAX),
            readers: Arc::new(Semaphore::new((cores / 2).max(1))),
            draining: CancellationToken::new(),
            budget,
            offers: AtomicU64::new(1),
            waiting: AtomicU64::new(0),
        }
    }

    /// From now on ids are made by `ids`.
    pub(crate) fn number_ids(&self, ids: IdMaker) {
        *self.ids.lock().unwrap_or_else(PoisonError::into_inner) = ids;
    }

    /// A new job's id. While nobody has looked whether this replica still has its number, ids bear the last second in
    /// which it surely had it.
    pub(crate) fn next_id(&self) -> JobId {
        let wall_s = self.clock.wall_s();
        let number = self.replicas.numbered();
        let now_s = number.map_or(wall_s, |number| wall_s.min(number.until_s()));
        self.ids
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .next(now_s)
    }

    /// A new offer's key.
    pub(crate) fn next_offer(&self) -> OfferKey {
        OfferKey(self.offers.fetch_add(1, Ordering::Relaxed))
    }

    /// A place among the waiting requests; a refusal when all are taken.
    pub(crate) fn wait_place(self: &Arc<Self>) -> Result<WaitPlace, Refusal> {
        let taken = self.waiting.fetch_add(1, Ordering::Relaxed);
        let place = WaitPlace(Arc::clone(self));
        let limit = self.config.limits.waiters_max;
        if taken < u64::try_from(limit).unwrap_or(u64::MAX) {
            return Ok(place);
        }
        Err(Refusal::new(
            ErrorCode::TooMany,
            format!("{limit} requests wait already"),
            "ask again in a few seconds",
        ))
    }

    /// Waits until one of these jobs changes, or too many change to tell; at `deadline`, and when the replica stops, no
    /// longer.
    pub(crate) async fn any_changes(
        &self,
        changes: &mut broadcast::Receiver<JobId>,
        jobs: &[JobId],
        deadline: u64,
    ) {
        loop {
            let left = deadline.saturating_sub(self.clock.now().0);
            tokio::select! {
                biased;
                changed = changes.recv() => match changed {
                    Ok(id) if !jobs.contains(&id) => {}
                    _ => return,
                },
                () = self.clock.sleep(Duration::from_millis(left)) => return,
                () = self.draining.cancelled() => return,
            }
        }
    }
}

/// A place among the waiting requests, free again when dropped.
#[derive(Debug)]
pub(crate) struct WaitPlace(Arc<Core>);

impl Drop for WaitPlace {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
