//! Events and decisions of the engine. Plain data without behaviour.

pub use crate::ids::{JobKey, Millis, OfferKey, Version};

use crate::peers::Peers;
use crate::policy::Policy;
use crate::requirement::Alternative;
#[cfg(doc)]
use crate::requirement::CPUS_UNCHECKED;
use crate::run_times::StoredTimes;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Kind of testbox that runs a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The whole host, alone.
    Hw,
    /// A virtual machine: takes memory of its host.
    Vm,
    /// A container: takes memory of its host.
    Dc,
}

/// Maximum number of hosts that a job avoids. The last ones count.
pub const NOT_ON_MAX: usize = 20;

/// Facts about a waiting job that matching and charging use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFacts {
    /// The job.
    pub key: JobKey,
    /// Version of the stored state that these facts were read from. Facts older than the known ones are ignored.
    pub version: Version,
    /// Account that is charged.
    pub account: String,
    /// Queue. An account's own queue bears the account's name.
    pub queue: String,
    /// Suite, used for run times.
    pub suite: String,
    /// Class of run times: equal for jobs that run the same test with the same parameters; 0: not known.
    pub class: u64,
    /// Priority inside the account, higher first.
    pub priority: i16,
    /// Kind of testbox.
    pub kind: Kind,
    /// Architecture that the host must have; empty: any.
    pub arch: String,
    /// Host keys, one of which the host must offer. Never empty.
    pub host_keys: Vec<String>,
    /// Memory that the job takes (vm, dc) or that the machine must have (hw), MB.
    pub memory_mb: u32,
    /// CPUs that the job takes (vm, dc) or that the machine must have (hw).
    pub cpus: u32,
    /// Tags that the host must have.
    pub tags: Vec<String>,
    /// Tags that the host must not have.
    pub not_tags: Vec<String>,
    /// Alternatives, of which the host must meet one; empty: nothing more is asked.
    pub any_of: Vec<Alternative<String>>,
    /// Devices that the host must have.
    pub devices: Vec<String>,
    /// Hosts that must not run the job, because earlier attempts failed there. At most [`NOT_ON_MAX`].
    pub not_on: Vec<String>,
    /// Cache directories that the job prefers. A preference, never a requirement.
    pub cache_dirs: Vec<String>,
    /// More names that the job prefers among the `cache_dirs` of a host. The job never waits for them.
    pub prefer: Vec<String>,
    /// Time limit of the job, seconds: the longest time it can run.
    pub timeout_s: u64,
    /// Time at which the job was submitted (or became ready), for waiting times.
    pub submitted: Millis,
    /// Time before which no host gets the job, because another replica may want it first. 0: at once.
    pub not_before: Millis,
}

/// Properties of a host. They rarely change between two of its offers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// Host group, used for rates, run times and reports.
    pub group: String,
    /// The host's architecture.
    pub arch: String,
    /// Host keys that the host offers, for example `hw@a66`, `hw.aarch64`, `vm.x86_64`, `vm.x86_64@a66`.
    pub keys: Vec<String>,
    /// Tags that the host has.
    pub tags: Vec<String>,
    /// Devices that the host has.
    pub devices: Vec<String>,
    /// Cache directories that the host holds.
    pub cache_dirs: Vec<String>,
    /// Accounts that alone may use the host; empty: all accounts.
    pub accounts: Vec<String>,
}

/// Load of a host of vm and dc jobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HostLoad {
    /// True if the host gets a job only if all hosts that could run the job are loaded.
    pub loaded: bool,
    /// Memory in use on the host, percent.
    pub memory_used_percent: u8,
    /// Part of the last seconds in which something waited for a CPU, percent. Of hosts with as many jobs, the one
    /// with less pressure gets the next.
    pub cpu_pressure_percent: u8,
}

/// Request of a host for work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Key of this request.
    pub key: OfferKey,
    /// Name of the host. A host has one open offer: a newer one replaces the older, which is answered empty.
    pub host: String,
    /// Properties of the host. Share the allocation of the last offer if nothing changed: the engine then need not
    /// read it again.
    pub about: Arc<About>,
    /// Memory that jobs may take now, MB (hw: all of the machine's).
    pub free_memory_mb: u32,
    /// Memory of the whole host, MB: the charge of a hw job. At least `free_memory_mb`.
    pub total_memory_mb: u32,
    /// CPUs that jobs may take now (hw: all of the machine's); [`CPUS_UNCHECKED`]: the host did not say.
    pub free_cpus: u32,
    /// CPUs of the whole host. At least `free_cpus`.
    pub total_cpus: u32,
    /// Jobs in earlier answers that the host had not read when it asked. Neither `free_memory_mb`, `free_cpus` nor
    /// `jobs_max` counts them. Jobs that are not on the host, as far as is known, are ignored.
    pub owed: Vec<JobKey>,
    /// Maximum number of jobs in this answer, at least 1; hw jobs: always 1.
    pub jobs_max: u32,
    /// Time by which the offer must be answered, empty if nothing was found.
    pub waits_until: Millis,
    /// Load of the host; `None`: the host did not say, or it offers hw.
    pub load: Option<HostLoad>,
    /// End of the last job on a machine of a pool, ms by a clock that all offers share; 0: no job yet. The pool
    /// machine that was used last gets the next job, so that the others fall idle. `None`: the host does not belong
    /// to a pool.
    pub used_last: Option<u64>,
}

/// Job that a host already has: restored from the store at start, or reported by another replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// The job.
    pub facts: JobFacts,
    /// The host that has it.
    pub host: String,
    /// Group of that host.
    pub group: String,
    /// Memory of the whole host, MB.
    pub total_memory_mb: u32,
    /// CPUs of the whole host; [`CPUS_UNCHECKED`]: the host did not say.
    pub total_cpus: u32,
    /// Time since which the host has it.
    pub since: Millis,
}

/// Reason why a claim was not committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The job was claimed by another replica, cancelled or deleted: forget it, try the next for the same offer.
    Gone,
    /// The stored job is at this newer version and still waits: keep it, try again at once.
    Moved(Version),
    /// The store could not decide: the job waits again from `until`; the offer is answered empty.
    Unavailable {
        /// Time before which no host gets the job.
        until: Millis,
    },
}

/// One way of grouping the waiting jobs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dimension {
    /// Everything that waits.
    All,
    /// Jobs of an account.
    Account(String),
    /// Jobs of a queue.
    Queue(String),
    /// Jobs under a host key.
    HostKey(String),
}

/// Number of waiting jobs in the store, by dimension. Exact, unless there are more accounts or queues than are
/// counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DimensionCounts {
    /// Number of all waiting jobs.
    pub total: u64,
    /// (dimension, jobs), in any order, zero counts left out; never [`Dimension::All`].
    pub by: Vec<(Dimension, u64)>,
    /// (queue, account, jobs), in any order, zero counts left out. Empty: not counted.
    pub pairs: Vec<(String, String, u64)>,
    /// True if accounts, queues or pairs were left out because there are too many.
    pub partial: bool,
    /// Host keys that were asked for; `None`: all were counted.
    pub host_keys: Option<Vec<String>>,
}

/// A job's place in the order of pages: class (high first), priority (high first), id (old first).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// Class of its queue, as the store has it.
    pub class: u8,
    /// Priority inside the account.
    pub priority: i16,
    /// The job.
    pub key: JobKey,
}

/// Place among the pairs of queue and account, in the store's own order.
pub type FindPlace = (String, String);

/// Extent of a page in one pair of queue and account. The page holds all stored jobs of the pair from its beginning
/// to this job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reached {
    /// The queue.
    pub queue: String,
    /// The account.
    pub account: String,
    /// Priority of the last job of the pair.
    pub priority: i16,
    /// The last job of the pair.
    pub key: JobKey,
}

/// Page that was pulled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PulledPage {
    /// Jobs of the page, without those of which newer facts are known.
    pub jobs: Vec<JobFacts>,
    /// Extent of the page in each of its pairs.
    pub reached: Vec<Reached>,
    /// Last job of the page; `None`: the page is empty.
    pub last: Option<Cursor>,
    /// True if the page was full and the store holds more.
    pub more: bool,
}

/// Recommended maximum number of jobs in one event. More jobs make several events, so that none takes long.
pub const EVENT_JOBS_MAX: usize = 64;

/// Event that the engine handles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Jobs that wait: submitted here, hinted by a peer, or found.
    JobsLearned(Vec<JobFacts>),
    /// A pull of this dimension has ended.
    PullEnded {
        /// Pulled dimension.
        dimension: Dimension,
        /// Pulled page; `None`: the store could not be asked.
        page: Option<PulledPage>,
    },
    /// A find for this offer has ended. Its jobs came in `JobsLearned` before it.
    FindEnded {
        /// Offer that the find was for.
        offer: OfferKey,
        /// Largest memory that a found job needs, MB. The found jobs are also best for hosts with less free memory
        /// than this offer, down to this value. `u32::MAX`: not known, for example because the store could not be
        /// asked.
        needs_mb: u32,
        /// Place where the next find continues; `None`: all pairs of queue and account were looked at.
        next: Option<FindPlace>,
    },
    /// At this version, a job does not wait to be dispatched (it has ended, or waits for something else). Ignored if
    /// older than the known version.
    JobGone(JobKey, Version),
    /// A host has this job although this engine did not dispatch it.
    JobHeld(Box<Running>),
    /// Counts of the store.
    CountsRefreshed(DimensionCounts),
    /// All jobs that changed in the store until a moment ago were reported.
    NewsRead,
    /// More jobs changed in the store than were reported: counts that stayed equal may hide changes.
    NewsMissed,
    /// A host asks for work.
    HostOffers(Offer),
    /// The host wants its answer now. The offer gets no more jobs and is answered when its claims are settled.
    OfferClosing(OfferKey),
    /// The host hung up: send no answer. Claims in flight for the offer still settle.
    OfferWithdrawn(OfferKey),
    /// A host is gone: its offer is dropped, and explain forgets it. Its running jobs end separately.
    HostLeft(String),
    /// A host reported its load between two offers. Ignored if the host recovers while an offer of it is open: the
    /// next offer says so.
    HostLoaded {
        /// The host.
        host: String,
        /// Load of the host.
        load: HostLoad,
    },
    /// Exactly these hosts get no jobs for now, and no job waits for them. Their requests are not reported to the
    /// engine.
    HostsClosed(BTreeSet<String>),
    /// The store committed the claim. The host has the job, which is charged from now on.
    ClaimCommitted {
        /// The job.
        job: JobKey,
        /// Offer that it was claimed for.
        offer: OfferKey,
        /// The job's new version.
        version: Version,
    },
    /// The store refused the claim or could not decide.
    ClaimRefused {
        /// The job.
        job: JobKey,
        /// Offer that it was claimed for.
        offer: OfferKey,
        /// Reason of the refusal.
        refusal: Refusal,
    },
    /// A held job is over for its host (ended, lost or given back): charging stops.
    JobEnded {
        /// The job.
        job: JobKey,
        /// Version of the state in which it is over. An end before the state that this engine claimed is no news.
        version: Version,
        /// True if its duration counts as a run time, because the job ran to an end of its own.
        ran: bool,
        /// Time at which the job ended, if that was a while ago: it is charged until then. A later time than now
        /// means now.
        at: Millis,
    },
    /// Queues, weights, priorities or rates changed.
    PolicyChanged(Policy),
    /// Stored run times. They count if they have more samples than those in memory.
    RunTimesRead(Vec<StoredTimes>),
    /// The set of live replicas changed.
    PeersChanged(Peers),
    /// Nothing happened, but time passed (a wake-up the engine asked for, or once a second).
    Tick,
}

/// Action for the caller. Actions are carried out in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Try to commit this job for this offer; report `ClaimCommitted` or `ClaimRefused`.
    Claim {
        /// The job.
        job: JobKey,
        /// The version to expect.
        version: Version,
        /// Offer that the claim is for.
        offer: OfferKey,
    },
    /// Answer the offer with these jobs now: all its claims are settled, or its time is up. Empty: nothing was found
    /// in time. The offer is closed.
    Answer {
        /// The offer.
        offer: OfferKey,
        /// The committed jobs, in the order of their dispatch.
        jobs: Vec<JobKey>,
    },
    /// Pull a page of this dimension from the store; report `PullEnded`.
    Pull {
        /// Dimension to pull.
        dimension: Dimension,
        /// Maximum number of jobs, 1 to 10,000.
        limit: u32,
        /// Last job before the page; `None`: from the beginning.
        after: Option<Cursor>,
    },
    /// Search the store with this offer's whole requirement; report `JobsLearned` and `FindEnded`.
    Find {
        /// The offer.
        offer: OfferKey,
        /// Maximum number of jobs of each account in a queue.
        limit: u32,
        /// Accounts whose jobs to find, all of which the offer serves; empty: all that it serves.
        accounts: Vec<String>,
        /// Maximum number of pairs of queue and account.
        pairs_max: u32,
        /// Pair behind which the find begins. It continues with the first pairs after the last one.
        after: Option<FindPlace>,
    },
    /// Send `Tick` at this time, if nothing comes before. Replaces earlier wake-ups.
    WakeAt(Millis),
}
