//! State shared by all flows of a replica: configuration, clock, store, and six parts with everything it believes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use fairlead_content::ContentStore;
use fairlead_dispatch::OfferKey;
use fairlead_job::{IdMaker, JobId};
use fairlead_store::JobStore;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, broadcast};
use tokio_util::sync::CancellationToken;

use crate::{Clock, Config, Parts, PeerLink};
use fairlead_base::{
    budget::{Budget, Charge, Identity},
    errors::Refusal,
    mailbox::Mailbox,
    metrics::Metrics,
    providers::Providers,
    sealing::Sealer,
    storage::{
        controller::Controller, group_commit::Writer, group_reads::Reader, small_doc::SmallDocs,
        timed_store::TimedStore,
    },
    tasks::Tasks,
};
use fairlead_known::{
    accounts::Accounts,
    alarms::Alarms,
    board::Board,
    changes::Changes,
    clusters::{Clusters, PartialClusters},
    content::KnownContent,
    controllers::{ALARMS, CLUSTERS, PARENTS, RESULTS, SEQUENCES, TIMERS, WEBHOOKS},
    cordons::Cordons,
    data_room::DataRoom,
    dependants::Dependants,
    feasibility::Feasibility,
    feed::Feed,
    host_turns::HostTurns,
    hosts::Hosts,
    instances::Instances,
    leases::Renewals,
    live_jobs::LiveJobs,
    log_sizes::LogSizes,
    lost_hosts::LostHosts,
    open_requests::Waiters,
    outbox::Outbox,
    parents::Parents,
    pools::Pools,
    queues::Queues,
    replicas::{Replicas, Vitals},
    reservations::Reservations,
    reuse::PendingResults,
    reuse_settings::ReuseRules,
    rules::Rules,
    run_times::PendingEnds,
    samples::Samples,
    seen_versions::Seen,
    sequences::Sequences,
    starts::Starts,
    test_times::PendingTimes,
    timers::Timers,
    unknown_machines::UnknownMachines,
    uploads::Uploads,
    usage::Usage,
    vanished_writes::VanishedWrites,
    webhooks::Webhooks,
};

/// More submits at once gain nothing: their jobs wait in the same batches.
const SUBMITS_MAX: usize = 256;

/// Hosts, and what keeps jobs off them.
#[derive(Debug, Default)]
pub(crate) struct Lab {
    pub(crate) hosts: Hosts,
    pub(crate) instances: Instances,
    /// Which shapes of jobs some host could run.
    pub(crate) feasibility: Feasibility,
    /// Hosts that get no new job.
    pub(crate) cordons: Cordons,
    /// Hosts that are kept for some accounts.
    pub(crate) reservations: Reservations,
    /// Machines that asked what to boot and are not registered.
    pub(crate) unknown: UnknownMachines,
    /// Pools of machines that come and go.
    pub(crate) pools: Pools,
    pub(crate) host_turns: HostTurns,
    pub(crate) renewals: Renewals,
    /// Hosts that this replica found lost.
    pub(crate) lost: LostHosts,
}

/// Jobs that testboxes hold, and versions of jobs that were seen.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    pub(crate) live: LiveJobs,
    pub(crate) changes: Changes,
    /// Which changes of the store are known here.
    pub(crate) feed: Feed,
    /// Versions of jobs that were seen lately.
    pub(crate) seen: Seen,
    /// What the store seems not to have of those.
    pub(crate) vanished_writes: VanishedWrites,
    /// Logs that this replica appended to.
    pub(crate) log_sizes: LogSizes,
    /// Files that jobs uploaded here.
    pub(crate) uploads: Uploads,
    /// How much room there is for them.
    pub(crate) room: DataRoom,
    /// What ran lately, and is not written yet.
    pub(crate) samples: Samples,
    /// What the store's user lacks to delete old jobs, though they are to be deleted.
    pub(crate) undeletable: Mutex<Option<String>>,
}

/// Jobs that wait for other jobs, a turn, nodes or a time.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) dependants: Dependants,
    /// Sequences whose jobs wait for their turn.
    pub(crate) sequences: Sequences,
    /// Clusters to look at now.
    pub(crate) clusters: Clusters,
    /// Parents of shards that have not ended.
    pub(crate) parents: Parents,
    /// Results that others may take, and that are not written yet.
    pub(crate) results: Arc<PendingResults>,
    /// Ends of jobs whose times are not written yet.
    pub(crate) run_times: PendingEnds,
    /// Runs of tests that are not written yet.
    pub(crate) test_times: PendingTimes,
    /// Waiting jobs that must soon be looked at.
    pub(crate) alarms: Arc<Alarms>,
    /// Waiting jobs whose time has just come.
    pub(crate) starts: Starts,
    /// Webhooks that are soon due.
    pub(crate) webhooks: Webhooks,
    /// Timers that are soon due.
    pub(crate) timers: Timers,
}

/// Who asks, and what they may have.
#[derive(Debug)]
pub(crate) struct People {
    pub(crate) accounts: Accounts,
    pub(crate) queues: Queues,
    pub(crate) rules: Rules,
    /// Which jobs take results of others.
    pub(crate) reuse: ReuseRules,
    /// What those have that limits are set of.
    pub(crate) usage: Usage,
}

/// This replica among the others.
#[derive(Debug)]
pub(crate) struct Others {
    /// The way to other replicas.
    pub(crate) peers: Arc<dyn PeerLink>,
    /// Where they reach this one.
    pub(crate) url: String,
    /// One run of this replica: its name and a random word.
    pub(crate) run: String,
    pub(crate) replicas: Replicas,
    /// What the other replicas are told.
    pub(crate) outbox: Outbox,
    /// One looks at the number at a time.
    pub(crate) numbering: tokio::sync::Mutex<()>,
}

/// Requests that are worked on, and their bounds.
#[derive(Debug)]
pub(crate) struct Requests {
    /// Requests that wait for an answer of the engine.
    pub(crate) waiters: Waiters,
    /// Submits that are worked on at one time.
    pub(crate) submits: Semaphore,
    /// Large submits and previews that are read at one time: half of the cores are left to everything else.
    pub(crate) readers: Arc<Semaphore>,
    /// What they have of what all share.
    pub(crate) budget: Budget,
    offers: AtomicU64,
}

/// One replica's shared state. No lock of it is held across an await.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) config: Config,
    pub(crate) clock: Clock,
    pub(crate) store: Arc<dyn JobStore>,
    /// Inputs and outputs.
    pub(crate) content: ContentStore,
    /// What is remembered of them.
    pub(crate) known_content: KnownContent,
    /// Who makes and ends the machines of pools.
    pub(crate) providers: Arc<dyn Providers>,
    pub(crate) writer: Writer,
    pub(crate) reader: Reader,
    pub(crate) docs: SmallDocs,
    pub(crate) engine: Mailbox,
    pub(crate) metrics: Metrics,
    pub(crate) sealer: Sealer,
    pub(crate) tasks: Tasks,
    /// Cancelled first: waiting requests are answered, no new work is taken.
    pub(crate) draining: CancellationToken,
    /// Cancelled when the clock was off for too long: whoever runs this replica stops it.
    pub(crate) gave_up: CancellationToken,
    ids: Mutex<IdMaker>,
    pub(crate) lab: Lab,
    pub(crate) jobs: Jobs,
    pub(crate) waiting: Waiting,
    pub(crate) people: People,
    pub(crate) others: Others,
    pub(crate) requests: Requests,
    /// What people look at.
    pub(crate) board: Board,
}

impl Waiting {
    fn new(clock: &Clock, metrics: &Metrics) -> Self {
        Self {
            dependants: Dependants::default(),
            sequences: Sequences::new(Controller::new(&SEQUENCES, clock, metrics)),
            clusters: Clusters {
                looks: Controller::new(&CLUSTERS, clock, metrics),
                partial: PartialClusters::default(),
            },
            parents: Parents::new(Controller::new(&PARENTS, clock, metrics)),
            results: Controller::new(&RESULTS, clock, metrics),
            run_times: PendingEnds::default(),
            test_times: PendingTimes::default(),
            alarms: Controller::new(&ALARMS, clock, metrics),
            starts: Starts::default(),
            webhooks: Webhooks {
                looks: Controller::new(&WEBHOOKS, clock, metrics),
                places: Arc::default(),
            },
            timers: Timers::new(Controller::new(&TIMERS, clock, metrics)),
        }
    }
}

impl People {
    fn of(accounts: Accounts) -> Self {
        Self {
            accounts,
            queues: Queues::default(),
            rules: Rules::default(),
            reuse: ReuseRules::default(),
            usage: Usage::default(),
        }
    }
}

impl Requests {
    fn within(budget: Budget) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            waiters: Waiters::default(),
            submits: Semaphore::new(SUBMITS_MAX),
            readers: Arc::new(Semaphore::new((cores / 2).max(1))),
            budget,
            offers: AtomicU64::new(1),
        }
    }
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
            content,
            providers,
            run,
        } = parts;
        let run = format!("{}.{run}", config.replica);
        let tasks = Tasks::default();
        let metrics = Metrics::default();
        let times = metrics.times.store.clone();
        let store: Arc<dyn JobStore> = Arc::new(TimedStore::new(store, times, clock.clone()));
        let writer = Writer::start(&store, &clock, stop, &tasks);
        let reader = Reader::start(&store, &clock, stop, &tasks);
        let unread = metrics.unreadable_documents.clone();
        let docs = SmallDocs::new(Arc::clone(&store), Some(writer.clone()), unread);
        let waiting = Waiting::new(&clock, &metrics);
        let budget = Budget::new(&config.limits);
        let accounts = Accounts::new(config.access.clone(), config.admin.as_ref(), clock.clone());
        Self {
            ids: Mutex::new(IdMaker::new(0, clock.wall_s())),
            config,
            clock,
            store,
            content,
            known_content: KnownContent::default(),
            providers,
            writer,
            reader,
            docs,
            engine: Mailbox::default(),
            metrics,
            sealer,
            draining: tasks.draining.clone(),
            tasks,
            gave_up: CancellationToken::new(),
            lab: Lab::default(),
            jobs: Jobs::default(),
            waiting,
            people: People::of(accounts),
            others: Others {
                peers,
                url,
                run,
                replicas: Replicas::default(),
                outbox: Outbox::default(),
                numbering: tokio::sync::Mutex::default(),
            },
            requests: Requests::within(budget),
            board: Board::default(),
        }
    }

    /// From now on ids are made by `ids`.
    pub(crate) fn number_ids(&self, ids: IdMaker) {
        *self.ids.lock() = ids;
    }

    /// A new job's id.
    pub(crate) fn next_id(&self) -> JobId {
        self.next_ids(1)
    }

    /// The second of new ids. While nobody has looked whether this replica still has its number, it is the last second
    /// in which it surely had it.
    fn id_second(&self) -> u64 {
        let wall_s = self.clock.wall_s();
        let number = self.others.replicas.numbered();
        number.map_or(wall_s, |number| wall_s.min(number.until_s()))
    }

    /// The first of a block of ids: of a parent and its shards, or of one job.
    pub(crate) fn next_ids(&self, many: u16) -> JobId {
        let now_s = self.id_second();
        self.ids.lock().block(now_s, u32::from(many))
    }

    /// How many replicas come before this one for a job.
    pub(crate) fn turn_for(&self, id: JobId) -> usize {
        let now = self.clock.now();
        self.others.replicas.rank(id, &self.others.run, now)
    }

    /// A new offer's key.
    pub(crate) fn next_offer(&self) -> OfferKey {
        OfferKey(self.requests.offers.fetch_add(1, Ordering::Relaxed))
    }

    /// Reads the hosts that are stored.
    pub(crate) async fn load_hosts(&self) -> Result<(), fairlead_store::StoreError> {
        let gone_ms = self
            .clock
            .wall_ms()
            .saturating_sub(fairlead_known::hosts::GONE_MS);
        self.lab.hosts.load(&self.docs, gone_ms).await
    }

    /// A place among the waiting requests, free again when dropped; a refusal when there is none for this identity.
    pub(crate) fn wait_place(&self, whose: Identity) -> Result<Charge, Refusal> {
        Ok(self.requests.budget.places.take(whose, 1)?)
    }

    /// How this replica is now.
    pub(crate) fn vitals(&self) -> Vitals {
        let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        Vitals {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            lag_ms: self.lag_ms(),
            inbox: count(self.engine.depth()),
            held: count(self.jobs.live.count()),
            store_requests: self.metrics.times.store.all_in_flight(),
        }
    }

    /// How long ago all changes of the store were known here, ms.
    pub(crate) fn lag_ms(&self) -> u64 {
        let now = self.clock.now();
        let lag_ms = self.jobs.feed.lag_ms(now);
        lag_ms.unwrap_or_else(|| self.clock.age_ms())
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
