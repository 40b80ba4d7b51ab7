//! Explanations: typed reasons for others to render; `explaining` makes them.

use crate::event::HostLoad;
use crate::ids::{JobKey, Millis, OfferKey};

/// Most hosts (of a job) or shapes (of a host) named in one explanation; more are only counted.
pub const EXPLAIN_LIST_MAX: usize = 50;

/// Counting stops here: beyond it [`Count::more`] is set.
pub const EXPLAIN_COUNT_MAX: u64 = 1_000;

/// Number that is exact up to [`EXPLAIN_COUNT_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// Counted number, at most [`EXPLAIN_COUNT_MAX`].
    pub counted: u64,
    /// True if there are more.
    pub more: bool,
}

/// State of a job, as far as the engine knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobState {
    /// The job is not in memory here: it is explained by its facts alone.
    NotCached,
    /// The job waits.
    Waiting,
    /// A claim of the job for this host is not settled.
    InFlight {
        /// The host.
        host: String,
        /// The host's request.
        offer: OfferKey,
    },
    /// A host has the job.
    Running {
        /// The host.
        host: String,
        /// Time since which the host has it.
        since: Millis,
    },
}

/// Owner of the jobs that a limit counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Limited {
    /// An account, in all queues.
    Account(String),
    /// A queue, of all accounts.
    Queue(String),
}

/// One reason why a job does not start on a host now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// The host offers none of these keys.
    MissingKey {
        /// The job's host keys.
        wants: Vec<String>,
    },
    /// The architecture differs.
    Arch {
        /// Architecture that the job needs.
        needs: String,
        /// Architecture of the host.
        has: String,
    },
    /// Too little memory is free (hw: the machine has too little).
    Memory {
        /// Memory that the job needs, MB.
        needs_mb: u32,
        /// Memory that jobs may take there now, MB (hw: of the whole machine).
        free_mb: u32,
        /// Memory of the whole host, MB. If it is less than needed, the host can never run the job.
        total_mb: u32,
    },
    /// Too few CPUs are free (hw: the machine has too few).
    Cpus {
        /// CPUs that the job needs.
        needs: u32,
        /// CPUs that jobs may take there now (hw: of the whole machine).
        free: u32,
        /// CPUs of the whole host. If they are fewer than needed, the host can never run the job.
        total: u32,
    },
    /// The host lacks these tags.
    Tags {
        /// Missing tags.
        missing: Vec<String>,
    },
    /// The host has these tags, which the job avoids.
    AvoidedTags {
        /// Avoided tags that the host has.
        has: Vec<String>,
    },
    /// The host meets none of the job's alternatives.
    NoAlternative {
        /// Tags of the host.
        has: Vec<String>,
    },
    /// The host lacks these devices.
    Devices {
        /// Missing devices.
        missing: Vec<String>,
    },
    /// The host runs only jobs of these accounts for now.
    KeptFor {
        /// Names of the accounts, sorted.
        accounts: Vec<String>,
    },
    /// An earlier attempt of the job failed there, and the job is to be tried elsewhere.
    FailedThere,
    /// The host has jobs, and a hw job never shares a host with other jobs.
    BusyHw,
    /// The host does not ask for work now.
    NotAsking {
        /// Time of its last request; 0: never here.
        last_seen: Millis,
    },
    /// The host is loaded, and gets a job only if all hosts that could run the job are loaded.
    Loaded {
        /// Memory in use there, percent.
        memory_used_percent: u8,
    },
    /// All hosts that could run the job are loaded. The least loaded of them gets it at `until`.
    AllLoaded {
        /// Time at which a loaded host gets the job.
        until: Millis,
    },
    /// The host is reserved for this job, and would not be free in time.
    ReservedFor(JobKey),
    /// The number of jobs on hosts, or on their way to one, has reached its limit.
    RunningLimit {
        /// Owner of these jobs.
        of: Limited,
        /// Number of these jobs.
        held: u64,
        /// Allowed number of jobs.
        limit: u64,
    },
    /// The owner has used all that is allowed for now.
    Spent {
        /// Account or queue that has used all.
        of: Limited,
    },
    /// Nothing of the queue is dispatched for now.
    QueuePaused,
    /// The whole lab is paused.
    LabPaused,
    /// The job still waits for a host that holds its cache directories.
    WaitingForAffinity {
        /// Time at which this wait ends at the latest.
        until: Millis,
    },
    /// The store could not tell which host has the job. The claim is tried again at `until`.
    WaitingForStore {
        /// Time of the next try.
        until: Millis,
    },
}

/// Queue of a job, with its share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueStanding {
    /// The queue's name.
    pub queue: String,
    /// The account that is charged.
    pub account: String,
    /// Class, 0 to 9, higher first.
    pub class: u8,
    /// Weight inside the class.
    pub weight: u32,
    /// True if no job of the queue is dispatched for now.
    pub paused: bool,
    /// The weight's part among the queues of its class that have jobs, in thousandths.
    pub share_permille: u32,
    /// Dispatches reserved for the queue while higher classes also wait, per mille of those to hosts that could run
    /// its jobs.
    pub background_permille: u16,
}

/// Jobs, accounts and queues that stand before a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ahead {
    /// Waiting jobs of its own account in its queue that come first, of those in memory.
    pub in_account: Count,
    /// Accounts of its queue, with waiting jobs, that are next before its own.
    pub accounts: u64,
    /// Labels of its account's own queue, with waiting jobs, that are next before its own.
    pub labels: u64,
    /// Waiting jobs of these accounts and labels, of those in memory.
    pub members_jobs: u64,
    /// Queues of its class, with waiting jobs, that are next before its own.
    pub queues: u64,
    /// Waiting jobs of these queues.
    pub queues_jobs: u64,
    /// Queues of higher classes with waiting jobs.
    pub higher_classes: u64,
    /// Waiting jobs of these queues.
    pub higher_jobs: u64,
    /// True if all waiting jobs are in memory. Otherwise the jobs of queues are as the store counted them last, and
    /// those of accounts are lower bounds.
    pub is_exact: bool,
    /// Equal jobs that were submitted later and went first, as far as this replica knows. Replicas begin with jobs of
    /// their own. Each lets at most [`crate::OVERTAKES_MAX`] go before one.
    pub overtaken_by: u64,
}

/// Requirements of a job that one host does not meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostVerdict {
    /// The host.
    pub host: String,
    /// True if the host could run the job on its own.
    pub able: bool,
    /// Reasons why the host does not get the job now; empty: only the order of jobs.
    pub reasons: Vec<Reason>,
}

/// Explanation of a job's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobExplanation {
    /// The job.
    pub job: JobKey,
    /// State of the job.
    pub state: JobState,
    /// Its queue.
    pub standing: QueueStanding,
    /// Jobs, accounts and queues that stand before it.
    pub ahead: Ahead,
    /// Reasons that hold the job back on any host.
    pub reasons: Vec<Reason>,
    /// Soft limits that put the job behind others.
    pub behind: Vec<Reason>,
    /// Host that is reserved for it.
    pub reserved_host: Option<String>,
    /// Hosts that are known.
    pub hosts_known: u64,
    /// Hosts that could run the job on their own. 0: no host seen so far ever could.
    pub hosts_able: u64,
    /// Hosts that ask for work and lack nothing.
    pub hosts_ready: u64,
    /// The hosts that lack least, at most [`EXPLAIN_LIST_MAX`].
    pub hosts: Vec<HostVerdict>,
    /// Number of hosts that are not named.
    pub hosts_more: u64,
}

/// Jobs of one shape that a host does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShapeVerdict {
    /// Number of waiting jobs of this shape.
    pub jobs: Count,
    /// One of these jobs.
    pub example: JobKey,
    /// Reasons why they do not start here; empty: only paused queues or the order of jobs.
    pub reasons: Vec<Reason>,
}

/// Explanation of an idle host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostExplanation {
    /// The host.
    pub host: String,
    /// Its open request and the time of it, if it asks now.
    pub asking: Option<(OfferKey, Millis)>,
    /// Time of its last request; 0: never here.
    pub last_seen: Millis,
    /// Jobs in flight to it and running on it.
    pub jobs: u64,
    /// Memory that jobs may take now, MB.
    pub free_memory_mb: u32,
    /// Job that the host is reserved for.
    pub reserved_for: Option<JobKey>,
    /// Load of the host; `None`: the host does not say.
    pub load: Option<HostLoad>,
    /// Waiting jobs under its keys that are in memory here (a job under two of its keys counts twice).
    pub jobs_under_keys: u64,
    /// Requirements of these jobs that the host does not meet, by shape, at most [`EXPLAIN_LIST_MAX`]. Empty: no job
    /// waits under its keys.
    pub shapes: Vec<ShapeVerdict>,
    /// True if some shapes are not named.
    pub shapes_more: bool,
}
