//! Explanations: why a job waits, what stands before it, what would help, and whether its host is at fault.

use serde::{Deserialize, Serialize};

use crate::StageWord;

/// Why a job waits, or where it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Explanation {
    /// The job.
    pub job_id: String,
    /// How far it is.
    pub job_stage: StageWord,
    /// The answer in one sentence.
    pub summary: String,
    /// What else is known, one sentence a line, most important first.
    pub reasons: Vec<String>,
    /// What stands before a job that waits for a host, over all queues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Before>,
    /// Constraints of a job that waits for a host, and what each costs: the most helpful to give up first, at most 8.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<ConstraintCost>,
    /// Of a job that has ended on a host: the same suite on other hosts, and other suites on this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared: Option<Compared>,
    /// For each host that was looked at: whether it could run the job, and what it lacks.
    pub hosts: Vec<HostVerdict>,
    /// How many more hosts there are than `hosts` shows.
    #[serde(default)]
    pub hosts_more: u64,
}

/// One host, as seen from one job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HostVerdict {
    /// The host.
    pub hostname: String,
    /// Whether it could ever run the job.
    pub could: bool,
    /// What it lacks or waits for, in words; empty: nothing.
    pub lacks: Vec<String>,
}

/// Jobs that wait before a job. Jobs of queues that are paused or at a limit do not count.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Before {
    /// Queues of higher priority that have waiting jobs.
    pub higher_queues: u64,
    /// Waiting jobs of these.
    pub higher_jobs: u64,
    /// Queues of the same priority whose turn comes first.
    pub queues: u64,
    /// Waiting jobs of these. Queues take turns, so not all of them go first.
    pub queues_jobs: u64,
    /// Accounts of its queue, or labels of its account, whose turn comes first.
    pub accounts: u64,
    /// Waiting jobs of these. They take turns, too.
    pub accounts_jobs: u64,
    /// Jobs of its own account in its queue that come first.
    pub own_jobs: u64,
    /// Whether the replica knows all waiting jobs. Else jobs of queues are as the store counted them last, and
    /// `accounts_jobs` is the least that there are.
    pub exact: bool,
    /// The same in one sentence.
    pub words: String,
}

/// A constraint of a job, and how many more known hosts there would be without it alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ConstraintCost {
    /// As a job file says it, such as `tags: [gpu]`.
    pub constraint: String,
    /// Hosts that could run the job only without it.
    pub more_able: u64,
    /// Hosts that could run the job now only without it.
    pub more_ready: u64,
    /// The same in one sentence.
    pub words: String,
}

/// How long jobs waited in the last hour, from when they could run to when a host got them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RecentWaits {
    /// Jobs that hosts got.
    pub jobs: u64,
    /// Half of them waited less than this, seconds, a power of two; absent: there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50_s: Option<u64>,
    /// 95 of 100 of them waited less than this, seconds, a power of two; absent: there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p95_s: Option<u64>,
}

/// What a job that is not submitted may expect.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Outlook {
    /// The queue that it would wait in.
    pub queue: String,
    /// The priority of that queue, 0 to 9.
    pub class: u8,
    /// Why it would wait, in one sentence.
    pub summary: String,
    /// Hosts that are known.
    pub hosts_known: u64,
    /// Hosts that could run it if nothing else ran there.
    pub hosts_able: u64,
    /// Hosts that ask for work and could run it now.
    pub hosts_ready: u64,
    /// What would stand before it.
    pub before: Before,
    /// Its constraints, and what each costs: the most helpful to give up first, at most 8.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<ConstraintCost>,
    /// How long jobs of its queue waited of late.
    pub queue_waits: RecentWaits,
    /// How long jobs of all queues of that priority waited of late.
    pub class_waits: RecentWaits,
}

/// How an ended job compares with others of the last days.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Compared {
    /// Jobs that ended and were submitted within so many days count.
    pub days: u32,
    /// The same suite on other hosts.
    pub suite_elsewhere: RunCount,
    /// The same suite on this host, without this job.
    pub suite_here: RunCount,
    /// Other suites on this host.
    pub others_here: RunCount,
    /// What that says, in one sentence.
    pub words: String,
}

/// Jobs that ran and ended by themselves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RunCount {
    /// Those that succeeded.
    pub passed: u64,
    /// Those that did not. Jobs that people stopped do not count.
    pub failed: u64,
}

impl RunCount {
    /// All of them.
    #[must_use]
    pub fn runs(&self) -> u64 {
        self.passed.saturating_add(self.failed)
    }
}
