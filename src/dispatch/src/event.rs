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

/// What kind of testbox runs a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The whole host, alone.
    Hw,
    /// A virtual machine: takes memory of its host.
    Vm,
    /// A container: takes memory of its host.
    Dc,
}

/// Most hosts that a job is kept from; the last ones count.
pub const NOT_ON_MAX: usize = 20;

/// A waiting job, as far as matching and charging look at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFacts {
    /// The job.
    pub key: JobKey,
    /// The stored state these facts were read from. Older than what is known: ignored.
    pub version: Version,
    /// Who is charged.
    pub account: String,
    /// The queue; the account's own queue bears the account's name.
    pub queue: String,
    /// The suite, for run times.
    pub suite: String,
    /// The same for jobs that run the same thing with the same parameters, for run times; 0: not known.
    pub class: u64,
    /// Priority inside the account, higher first.
    pub priority: i16,
    /// Kind of testbox.
    pub kind: Kind,
    /// Architecture that the host must have; empty: any.
    pub arch: String,
    /// Host keys, one of which the host must offer. Never empty.
    pub host_keys: Vec<String>,
    /// Memory it takes (vm, dc) or that the machine must have (hw), MB.
    pub memory_mb: u32,
    /// CPUs it takes (vm, dc) or that the machine must have (hw).
    pub cpus: u32,
    /// Tags that the host must have.
    pub tags: Vec<String>,
    /// Tags that the host must not have.
    pub not_tags: Vec<String>,
    /// Alternatives, of which the host must meet one; empty: nothing more is asked.
    pub any_of: Vec<Alternative<String>>,
    /// Devices that the host must have.
    pub devices: Vec<String>,
    /// Hosts that must not have it: earlier attempts failed there. At most [`NOT_ON_MAX`].
    pub not_on: Vec<String>,
    /// Cache directories it would like to find. A preference, never a requirement.
    pub cache_dirs: Vec<String>,
    /// More that it would like to find among `cache_dirs` of a host; it never waits for that.
    pub prefer: Vec<String>,
    /// Its own time limit, seconds: the longest it can run.
    pub timeout_s: u64,
    /// When it was submitted (or became ready), for waiting times.
    pub submitted: Millis,
    /// Not given to anybody before this: another replica may want it first. 0: at once.
    pub not_before: Millis,
}

/// What a host is: the same from one of its offers to the next, mostly.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// The host group, for rates, run times and people.
    pub group: String,
    /// The host's architecture.
    pub arch: String,
    /// Host keys that it offers, for example `hw@a66`, `hw.aarch64`, `vm.x86_64`, `vm.x86_64@a66`.
    pub keys: Vec<String>,
    /// Tags that the host has.
    pub tags: Vec<String>,
    /// Devices that the host has.
    pub devices: Vec<String>,
    /// Cache directories that it holds.
    pub cache_dirs: Vec<String>,
    /// Accounts whose jobs alone it gets; empty: everybody's.
    pub accounts: Vec<String>,
}

/// How loaded a host of vm and dc jobs is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HostLoad {
    /// Whether it gets jobs only if all hosts that could run them are so.
    pub loaded: bool,
    /// Memory in use there, percent.
    pub memory_used_percent: u8,
    /// Part of the last seconds in which something waited for a CPU there, percent. Of hosts with as many jobs, the one
    /// with less gets the next.
    pub cpu_pressure_percent: u8,
}

/// What a host says when it asks for work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// This request.
    pub key: OfferKey,
    /// The host's name. One open offer a host: a newer one replaces the older, which is answered empty.
    pub host: String,
    /// What it is. An allocation that its last offer had need not be read again: share it where nothing changed.
    pub about: Arc<About>,
    /// Memory that jobs may take now, MB (hw: all of the machine's).
    pub free_memory_mb: u32,
    /// Memory of the whole host, MB: what a hw job is charged for. At least `free_memory_mb`.
    pub total_memory_mb: u32,
    /// CPUs that jobs may take now (hw: all of the machine's); [`CPUS_UNCHECKED`]: it did not say.
    pub free_cpus: u32,
    /// CPUs of the whole host. At least `free_cpus`.
    pub total_cpus: u32,
    /// Jobs that were handed to it in answers which it had not read when it asked: neither `free_memory_mb`,
    /// `free_cpus` nor `jobs_max` counts them. Those that are not on it, as far as is known, are passed over.
    pub owed: Vec<JobKey>,
    /// How many jobs it takes at most in this answer, at least 1; hw jobs: always 1.
    pub jobs_max: u32,
    /// When it must be answered, empty if nothing was found.
    pub waits_until: Millis,
    /// How loaded it is; none: it did not say, or it offers hw.
    pub load: Option<HostLoad>,
    /// Of a machine of a pool, when its last job ended, ms by a clock that all offers share; 0: it has had none. Of such
    /// machines, the one that was used last gets the next job, so that the others fall idle. None: it is always there.
    pub used_last: Option<u64>,
}

/// A job that a host already has: told at start (restored from the store) or by another replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// The job.
    pub facts: JobFacts,
    /// The host that has it.
    pub host: String,
    /// That host's group.
    pub group: String,
    /// Memory of the whole host, MB.
    pub total_memory_mb: u32,
    /// CPUs of the whole host; [`CPUS_UNCHECKED`]: it did not say.
    pub total_cpus: u32,
    /// Since when.
    pub since: Millis,
}

/// Why a claim was not committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The job is another's, cancelled or gone: forget it, try the next for the same offer.
    Gone,
    /// The stored job is at this newer version and still waits: keep it, try again at once.
    Moved(Version),
    /// The store could not say: the job waits again from `until`; the offer is answered empty.
    Unavailable {
        /// Not offered to anybody before this.
        until: Millis,
    },
}

/// One way of slicing the waiting jobs.
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

/// How many jobs wait in the store, by dimension: exact, unless there are more accounts or queues than are counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DimensionCounts {
    /// All of them.
    pub total: u64,
    /// (dimension, jobs), in any order, zero counts left out; never [`Dimension::All`].
    pub by: Vec<(Dimension, u64)>,
    /// (queue, account, jobs), in any order, zero counts left out. Empty: not counted.
    pub pairs: Vec<(String, String, u64)>,
    /// Whether some accounts, queues or pairs of them were left out, for there are too many.
    pub partial: bool,
    /// The host keys that were asked for; none: all were counted.
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

/// A place among the pairs of queue and account, in the store's own order.
pub type FindPlace = (String, String);

/// How far a page went in one pair of queue and account: nothing of the pair that the store had before this job,
/// and behind where the page began, is missing from it.
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

/// A page that was pulled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PulledPage {
    /// Its jobs, without those of which something newer is known.
    pub jobs: Vec<JobFacts>,
    /// How far it went, of each pair in it.
    pub reached: Vec<Reached>,
    /// Its last job; none: it is empty.
    pub last: Option<Cursor>,
    /// The page was full, the store holds more.
    pub more: bool,
}

/// Jobs that are best told of in one event: of more, several events are made, so that none takes long.
pub const EVENT_JOBS_MAX: usize = 64;

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Jobs that wait: submitted here, hinted by a peer, or found.
    JobsLearned(Vec<JobFacts>),
    /// A pull of this dimension has ended.
    PullEnded {
        /// What was asked for.
        dimension: Dimension,
        /// What it brought; none: the store could not be asked.
        page: Option<PulledPage>,
    },
    /// A find for this offer has ended; its jobs came in `JobsLearned` before it.
    FindEnded {
        /// Whom it was for.
        offer: OfferKey,
        /// The most memory that a job that was found needs, MB: what was found is best for hosts with less than this
        /// offer, too, down to that. `u32::MAX` if that is not known, as when the store could not be asked.
        needs_mb: u32,
        /// Where the next one goes on; none: all pairs of queue and account were looked at.
        next: Option<FindPlace>,
    },
    /// At this version, a job does not wait to be dispatched (it has ended, or waits for something else). Older than
    /// what is known: ignored.
    JobGone(JobKey, Version),
    /// A host has this job although this engine did not dispatch it.
    JobHeld(Box<Running>),
    /// What the store counts.
    CountsRefreshed(DimensionCounts),
    /// All jobs that changed in the store until a moment ago were told of.
    NewsRead,
    /// More jobs changed in the store than were told of: counts that stayed equal may hide news.
    NewsMissed,
    /// A host asks for work.
    HostOffers(Offer),
    /// The asker wants its answer now: no more jobs for it, and it is answered when its claims are settled.
    OfferClosing(OfferKey),
    /// The asker hung up: answer nothing. Claims in flight for it still settle.
    OfferWithdrawn(OfferKey),
    /// A host is gone: its offer is dropped, and explain forgets it. Its running jobs end separately.
    HostLeft(String),
    /// A host is as loaded as this, which it said between two offers. Ignored if it recovers while an offer of it is open:
    /// the next one says so.
    HostLoaded {
        /// The host.
        host: String,
        /// How loaded.
        load: HostLoad,
    },
    /// These hosts get no jobs for now, and no others: no job waits for them. What they ask is not told of.
    HostsClosed(BTreeSet<String>),
    /// The store said yes. The job is the host's and is charged from now on.
    ClaimCommitted {
        /// The job.
        job: JobKey,
        /// For which offer.
        offer: OfferKey,
        /// The job's new version.
        version: Version,
    },
    /// The store said no, or could not say.
    ClaimRefused {
        /// The job.
        job: JobKey,
        /// For which offer.
        offer: OfferKey,
        /// Why.
        refusal: Refusal,
    },
    /// A held job is over for its host (ended, lost or given back): charging stops. `ran` says whether
    /// the time it took may be learned from (it ran to an end of its own).
    JobEnded {
        /// The job.
        job: JobKey,
        /// Whether its duration tells how long such jobs take.
        ran: bool,
        /// When it ended, if that was a while ago: it is charged until then. Later than now means now.
        at: Millis,
    },
    /// Queues, weights, priorities or rates changed.
    PolicyChanged(Policy),
    /// Run times that were stored: they count where more of them is known than here.
    RunTimesRead(Vec<StoredTimes>),
    /// Which replicas live.
    PeersChanged(Peers),
    /// Nothing happened, but time passed (a wake-up the engine asked for, or once a second).
    Tick,
}

/// What to do now, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Try to commit this job for this offer; report `ClaimCommitted` or `ClaimRefused`.
    Claim {
        /// The job.
        job: JobKey,
        /// The version to expect.
        version: Version,
        /// For which offer.
        offer: OfferKey,
    },
    /// All claims of the offer are settled, or its time is up: answer it with these jobs, now. Empty:
    /// nothing was found in time. The offer is closed.
    Answer {
        /// The offer.
        offer: OfferKey,
        /// The committed jobs, in the order of their dispatch.
        jobs: Vec<JobKey>,
    },
    /// Pull a page of this dimension from the store; report `PullEnded`.
    Pull {
        /// What to pull.
        dimension: Dimension,
        /// How many jobs at most, 1 to 10,000.
        limit: u32,
        /// Only what comes behind this.
        after: Option<Cursor>,
    },
    /// Search the store with this offer's whole requirement; report `JobsLearned` and `FindEnded`.
    Find {
        /// The offer.
        offer: OfferKey,
        /// How many jobs of each account in a queue at most.
        limit: u32,
        /// Only jobs of these accounts, all of which the offer serves; empty: of all that it serves.
        accounts: Vec<String>,
        /// Of how many accounts in queues at most.
        pairs_max: u32,
        /// Those behind this one come first, and the first ones after the last.
        after: Option<FindPlace>,
    },
    /// Send `Tick` at this time, if nothing comes before. Replaces earlier wake-ups.
    WakeAt(Millis),
}
