//! All flows of a replica, each made of what it names: the plan of the house in code.
//!
//! A flow stands below all that it is given to. Nothing but HTTP, the chores and the tests knows this struct.

use std::sync::{Arc, atomic::AtomicU64};

use fairlead_job::IdMaker;
use fairlead_store::JobStore;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::{
    Config, Parts,
    bulk::BulkFlow,
    content::ContentFlow,
    ctx::{Ctx, Lab},
    dashboard::DashboardFlow,
    dispatching::DispatchFlow,
    files::FileFlow,
    hosts::HostFlow,
    jobs::{JobFlow, listener::Listener},
    peers::PeerFlow,
    people::PeopleFlow,
    placement::PlacementFlow,
    reuse::{ReuseFlow, memory::EndsToLearn},
    samples::{SampleFlow, memory::SampleMemory},
    scaling::ScalingFlow,
    shards::ShardFlow,
    submission::SubmissionFlow,
    timers::TimerFlow,
    upkeep::UpkeepFlow,
    views::ViewFlow,
    waiting::{WaitingFlow, memory::WaitingMemory},
    webhooks::{WebhookFlow, memory::WebhookMemory},
};
use fairlead_base::{
    budget::Budget,
    mailbox::Mailbox,
    metrics::Metrics,
    peer_link::PeerLink,
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
    content::KnownContent,
    controllers::{ALARMS, PARENTS, RESULTS, TIMERS},
    outbox::Outbox,
    parents::Parents,
    replicas::Replicas,
    timers::Timers,
};

/// Most submits that are worked on at one time. More would gain nothing: their jobs wait in the same batches.
const SUBMITS_MAX: usize = 256;

/// All flows of a replica.
#[derive(Debug)]
pub(crate) struct Flows {
    pub(crate) ctx: Arc<Ctx>,
    pub(crate) people: Arc<PeopleFlow>,
    pub(crate) placement: Arc<PlacementFlow>,
    pub(crate) jobs: Arc<JobFlow>,
    pub(crate) peers: Arc<PeerFlow>,
    pub(crate) files: Arc<FileFlow>,
    pub(crate) content: Arc<ContentFlow>,
    pub(crate) reuse: Arc<ReuseFlow>,
    pub(crate) waiting: Arc<WaitingFlow>,
    pub(crate) submission: Arc<SubmissionFlow>,
    pub(crate) samples: Arc<SampleFlow>,
    pub(crate) shards: Arc<ShardFlow>,
    pub(crate) dispatching: Arc<DispatchFlow>,
    pub(crate) hosts: Arc<HostFlow>,
    pub(crate) scaling: Arc<ScalingFlow>,
    pub(crate) views: Arc<ViewFlow>,
    pub(crate) bulk: Arc<BulkFlow>,
    pub(crate) dashboard: Arc<DashboardFlow>,
    pub(crate) webhooks: Arc<WebhookFlow>,
    pub(crate) timers: Arc<TimerFlow>,
    pub(crate) upkeep: Arc<UpkeepFlow>,
}

/// The flows that all others stand on.
struct Foundation {
    people: Arc<PeopleFlow>,
    placement: Arc<PlacementFlow>,
    jobs: Arc<JobFlow>,
    peers: Arc<PeerFlow>,
    files: Arc<FileFlow>,
    content: Arc<ContentFlow>,
    reuse: Arc<ReuseFlow>,
    waiting: Arc<WaitingFlow>,
    submission: Arc<SubmissionFlow>,
}

/// The flows on the foundation on which others stand.
struct Storey {
    samples: Arc<SampleFlow>,
    shards: Arc<ShardFlow>,
    dispatching: Arc<DispatchFlow>,
    hosts: Arc<HostFlow>,
    scaling: Arc<ScalingFlow>,
    views: Arc<ViewFlow>,
}

/// Memories that follow the states of jobs, and that flows above the flow of jobs own.
struct Memories {
    waiting: Arc<WaitingMemory>,
    results: Arc<EndsToLearn>,
    samples: Arc<SampleMemory>,
    webhooks: Arc<WebhookMemory>,
}

/// A flow that is given some handles, by their names, then what it owns, then what it owns and begins empty.
macro_rules! flow {
    ($kind:ident { $($handle:ident),* $(; $($own:ident: $value:expr),* $(; $($empty:ident),*)?)? }) => {
        Arc::new($kind {
            $($handle: Arc::clone(&$handle),)*
            $($($own: $value,)* $($($empty: Default::default(),)*)?)?
        })
    };
}

impl Memories {
    fn new(ctx: &Arc<Ctx>) -> Self {
        let results = Controller::new(&RESULTS, &ctx.clock, &ctx.metrics);
        Self {
            waiting: Arc::new(WaitingMemory::new(ctx)),
            results: Arc::new(EndsToLearn(results)),
            samples: Arc::default(),
            webhooks: Arc::new(WebhookMemory::new(ctx)),
        }
    }

    /// In the order in which they are told.
    fn listeners(&self) -> Vec<Arc<dyn Listener>> {
        vec![
            Arc::clone(&self.waiting) as _,
            Arc::clone(&self.results) as _,
            Arc::clone(&self.samples) as _,
            Arc::clone(&self.webhooks) as _,
        ]
    }
}

impl Foundation {
    /// `stop` ends the writer and the reader of jobs.
    fn new(
        ctx: &Arc<Ctx>,
        lab: &Arc<Lab>,
        link: Arc<dyn PeerLink>,
        memories: &Memories,
        writer: Writer,
        stop: &CancellationToken,
    ) -> Self {
        let config = &ctx.config;
        let accounts = Accounts::new(
            config.access.clone(),
            config.admin.as_ref(),
            ctx.clock.clone(),
        );
        let people = flow!(PeopleFlow { ctx, lab;
            accounts: accounts; queues, rules, usage, undeletable });
        let placement = flow!(PlacementFlow { ctx, lab });
        let jobs = flow!(JobFlow { ctx, lab, people, placement;
            writer: writer, reader: Reader::start(&ctx.store, &ctx.clock, stop, &ctx.tasks),
            parents: Parents::new(Controller::new(&PARENTS, &ctx.clock, &ctx.metrics)),
            alarms: Controller::new(&ALARMS, &ctx.clock, &ctx.metrics), listeners: memories.listeners();
            live, changes, feed, seen, vanished_writes, uploads, starts, waiters });
        let peers = flow!(PeerFlow { ctx, jobs;
            link: link, ids: Mutex::new(IdMaker::new(0, ctx.clock.wall_s())); numbering });
        let files = flow!(FileFlow { ctx, people, jobs; ; log_sizes, room });
        let known = Arc::<KnownContent>::default();
        let known_content = Arc::clone(&known);
        let content = flow!(ContentFlow { ctx, people, known });
        let reuse = flow!(ReuseFlow { ctx, lab, people, placement, jobs, files;
            results: Arc::clone(&memories.results.0); rules });
        let waiting = flow!(WaitingFlow { ctx, jobs, reuse; known: Arc::clone(&memories.waiting) });
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let submission = flow!(SubmissionFlow { ctx, lab, people, placement, jobs, peers, reuse, waiting, known_content;
            submits: Semaphore::new(SUBMITS_MAX), readers: Arc::new(Semaphore::new((cores / 2).max(1))) });
        Self {
            people,
            placement,
            jobs,
            peers,
            files,
            content,
            reuse,
            waiting,
            submission,
        }
    }
}

impl Storey {
    fn new(
        foundation: &Foundation,
        ctx: &Arc<Ctx>,
        lab: &Arc<Lab>,
        memories: &Memories,
        providers: Arc<dyn Providers>,
    ) -> Self {
        let Foundation {
            people,
            placement,
            jobs,
            peers,
            files,
            reuse,
            waiting,
            submission,
            ..
        } = foundation;
        let samples = flow!(SampleFlow { ctx, people; known: Arc::clone(&memories.samples) });
        let shards = flow!(ShardFlow { ctx, jobs, peers, files, reuse, submission; ; test_times });
        let dispatching = flow!(DispatchFlow { ctx, lab, people, jobs, submission; });
        let hosts = flow!(HostFlow { ctx, lab, people, placement, jobs, peers, submission, dispatching;
            offers: AtomicU64::new(1); instances, host_turns, renewals, lost, unknown });
        let scaling = flow!(ScalingFlow { ctx, lab, placement, jobs, submission, hosts; providers: providers });
        let views = flow!(ViewFlow { ctx, lab, people, placement, jobs, waiting, submission, samples, hosts, scaling; });
        Self {
            samples,
            shards,
            dispatching,
            hosts,
            scaling,
            views,
        }
    }
}

impl Flows {
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
            peers: link,
            content,
            providers,
            run,
        } = parts;
        let tasks = Tasks::default();
        let metrics = Metrics::default();
        let times = metrics.times.store.clone();
        let store: Arc<dyn JobStore> = Arc::new(TimedStore::new(store, times, clock.clone()));
        let writer = Writer::start(&store, &clock, stop, &tasks);
        let unread = metrics.unreadable_documents.clone();
        let run = format!("{}.{run}", config.replica);
        let ctx = Arc::new(Ctx {
            docs: SmallDocs::new(Arc::clone(&store), Some(writer.clone()), unread),
            budget: Budget::new(&config.limits),
            replicas: Replicas::new(run, url),
            config,
            clock,
            store,
            content,
            metrics,
            sealer,
            tasks,
            engine: Mailbox::default(),
            outbox: Outbox::default(),
        });
        let lab = Arc::<Lab>::default();
        let memories = Memories::new(&ctx);
        let foundation = Foundation::new(&ctx, &lab, link, &memories, writer, stop);
        let storey = Storey::new(&foundation, &ctx, &lab, &memories, providers);
        Self::above(foundation, storey, ctx, &lab, &memories)
    }

    /// Puts all other flows on these.
    fn above(
        foundation: Foundation,
        storey: Storey,
        ctx: Arc<Ctx>,
        lab: &Arc<Lab>,
        memories: &Memories,
    ) -> Self {
        let Foundation {
            people,
            placement,
            jobs,
            peers,
            files,
            content,
            reuse,
            waiting,
            submission,
        } = foundation;
        let Storey {
            samples,
            shards,
            dispatching,
            hosts,
            scaling,
            views,
        } = storey;
        let bulk =
            flow!(BulkFlow { ctx, lab, people, placement, jobs, submission, shards, hosts; });
        let dashboard = flow!(DashboardFlow { ctx, lab, people, placement, jobs, peers, files, samples, views; });
        let webhooks =
            flow!(WebhookFlow { ctx, jobs, views; known: Arc::clone(&memories.webhooks) });
        let looks = Controller::new(&TIMERS, &ctx.clock, &ctx.metrics);
        let timers =
            flow!(TimerFlow { ctx, jobs, peers, reuse, submission; known: Timers::new(looks) });
        let upkeep = flow!(UpkeepFlow { ctx, people, placement, jobs, peers, files, waiting, submission, samples,
            dispatching, hosts, timers; gave_up: CancellationToken::new() });
        Self {
            ctx,
            people,
            placement,
            jobs,
            peers,
            files,
            content,
            reuse,
            waiting,
            submission,
            samples,
            shards,
            dispatching,
            hosts,
            scaling,
            views,
            bulk,
            dashboard,
            webhooks,
            timers,
            upkeep,
        }
    }
}
