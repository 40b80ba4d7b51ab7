//! Explanations: typed reasons for others to render; `explaining` makes them.

use crate::event::HostLoad;
use crate::ids::{JobKey, Millis, OfferKey};

/// Most hosts (of a job) or shapes (of a host) named in one explanation; more are only counted.
pub const EXPLAIN_LIST_MAX: usize = 50;

/// Counting stops here: beyond it [`Count::more`] is set.
pub const EXPLAIN_COUNT_MAX: u64 = 1_000;

/// A number that is exact up to [`EXPLAIN_COUNT_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// How many, at most [`EXPLAIN_COUNT_MAX`].
    pub counted: u64,
    /// Whether there are more than that.
    pub more: bool,
}

/// Where a job is, as far as the engine knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobState {
    /// It is not in memory here: explained by its facts alone.
    NotCached,
    /// It waits.
    Waiting,
    /// A claim of it for this host is not settled.
    InFlight {
        /// The host.
        host: String,
        /// The host's request.
        offer: OfferKey,
    },
    /// A host has it.
    Running {
        /// The host.
        host: String,
        /// Since when.
        since: Millis,
    },
}

/// Whose jobs a limit is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Limited {
    /// An account's, in all queues.
    Account(String),
    /// A queue's, of all accounts.
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
        /// What the job needs.
        needs: String,
        /// What the host has.
        has: String,
    },
    /// Too little memory is free (hw: the machine has too little).
    Memory {
        /// What the job needs, MB.
        needs_mb: u32,
        /// What jobs may take there now, MB (hw: of the whole machine).
        free_mb: u32,
        /// Memory of the whole host, MB: less than needed means never.
        total_mb: u32,
    },
    /// Too few CPUs are free (hw: the machine has too few).
    Cpus {
        /// What the job needs.
        needs: u32,
        /// What jobs may take there now (hw: of the whole machine).
        free: u32,
        /// CPUs of the whole host: less than needed means never.
        total: u32,
    },
    /// The host lacks these tags.
    Tags {
        /// Those it lacks.
        missing: Vec<String>,
    },
    /// The host has these tags, which the job avoids.
    AvoidedTags {
        /// Those it has.
        has: Vec<String>,
    },
    /// The host meets none of the job's alternatives.
    NoAlternative {
        /// Its tags.
        has: Vec<String>,
    },
    /// The host lacks these devices.
    Devices {
        /// Those it lacks.
        missing: Vec<String>,
    },
    /// Only jobs of these accounts get the host for now.
    KeptFor {
        /// Whose, sorted.
        accounts: Vec<String>,
    },
    /// An earlier attempt of the job failed there, and it is to be tried elsewhere.
    FailedThere,
    /// A hw job and other jobs never share a host, and it has jobs.
    BusyHw,
    /// It does not ask for work now.
    NotAsking {
        /// When it asked last; 0: never here.
        last_seen: Millis,
    },
    /// It is loaded, and gets jobs only if all hosts that could run them are.
    Loaded {
        /// Memory in use there, percent.
        memory_used_percent: u8,
    },
    /// All hosts that could run the job are loaded: the least loaded of them gets it then.
    AllLoaded {
        /// When.
        until: Millis,
    },
    /// It is kept for this job, and would not be free in time.
    ReservedFor(JobKey),
    /// As many of these jobs are on hosts, or on their way to one, as are allowed at one time.
    RunningLimit {
        /// Whose.
        of: Limited,
        /// How many there are.
        held: u64,
        /// How many are allowed.
        limit: u64,
    },
    /// They have had all that is allowed for now.
    Spent {
        /// Whose.
        of: Limited,
    },
    /// Nothing of the queue is dispatched for now.
    QueuePaused,
    /// The whole lab is paused.
    LabPaused,
    /// The job still waits for a host that holds its cache directories.
    WaitingForAffinity {
        /// Not longer than until then.
        until: Millis,
    },
    /// The store could not say who has the job: it is tried again then.
    WaitingForStore {
        /// When.
        until: Millis,
    },
}

/// The queue of a job, and what it may expect.
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
    /// Whether nothing of it is dispatched for now.
    pub paused: bool,
    /// The weight's part among the queues of its class that have jobs, in thousandths.
    pub share_permille: u32,
    /// Of the dispatches to hosts that could run its jobs, those that are kept for it, in thousandths.
    pub background_permille: u16,
}

/// What stands before a job.
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
    /// Whether all waiting jobs are in memory. Else jobs of queues are as the store counted them last, and those of
    /// accounts are the least that there are.
    pub is_exact: bool,
    /// Jobs like it that were submitted later and went first, as far as this replica knows: replicas begin with jobs
    /// of their own. Each lets at most [`crate::OVERTAKES_MAX`] go before one.
    pub overtaken_by: u64,
}

/// What one host lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostVerdict {
    /// The host.
    pub host: String,
    /// Whether it could run the job if nothing else ran there.
    pub able: bool,
    /// Everything that speaks against it now; empty: nothing but the order of jobs.
    pub reasons: Vec<Reason>,
}

/// Why a job is where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobExplanation {
    /// The job.
    pub job: JobKey,
    /// Where it is.
    pub state: JobState,
    /// Its queue.
    pub standing: QueueStanding,
    /// What stands before it.
    pub ahead: Ahead,
    /// What keeps it back whatever the host.
    pub reasons: Vec<Reason>,
    /// Soft limits by which it goes behind others.
    pub behind: Vec<Reason>,
    /// The host that is kept for it.
    pub reserved_host: Option<String>,
    /// Hosts that are known.
    pub hosts_known: u64,
    /// Hosts that could run it if nothing else ran there. 0: no host seen so far ever could.
    pub hosts_able: u64,
    /// Hosts that ask and lack nothing.
    pub hosts_ready: u64,
    /// The hosts that lack least, at most [`EXPLAIN_LIST_MAX`].
    pub hosts: Vec<HostVerdict>,
    /// How many hosts are not named.
    pub hosts_more: u64,
}

/// Jobs of one shape that a host does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShapeVerdict {
    /// How many waiting jobs have this shape.
    pub jobs: Count,
    /// One of them.
    pub example: JobKey,
    /// What speaks against them here; empty: nothing but paused queues or the order of jobs.
    pub reasons: Vec<Reason>,
}

/// Why a host is idle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostExplanation {
    /// The host.
    pub host: String,
    /// Its open request and since when, if it asks now.
    pub asking: Option<(OfferKey, Millis)>,
    /// When it asked last; 0: never here.
    pub last_seen: Millis,
    /// Jobs in flight to it and running on it.
    pub jobs: u64,
    /// Memory that jobs may take now, MB.
    pub free_memory_mb: u32,
    /// The job that it is kept for.
    pub reserved_for: Option<JobKey>,
    /// How loaded it is; none: it does not say.
    pub load: Option<HostLoad>,
    /// Waiting jobs under its keys that are in memory here (a job under two of its keys counts twice).
    pub jobs_under_keys: u64,
    /// What it lacks for them, by shape, at most [`EXPLAIN_LIST_MAX`]. Empty: nobody wants its keys.
    pub shapes: Vec<ShapeVerdict>,
    /// Whether there are shapes that are not named.
    pub shapes_more: bool,
}
