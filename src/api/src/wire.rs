//! Bodies of requests and answers. Units are in the names; times are UTC epoch milliseconds unless a
//! name says otherwise. Unknown fields are ignored on both sides, so old and new can talk.

use std::collections::BTreeMap;

use fairlead_job::Stage;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    ExecutorSaid, GrantInput, HealthWord, HostLoad, JobGroup, Outlook, RuleApplied, StageWord,
};

/// One item of the answer to a submit, in the order of the request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SubmitItem {
    /// The new job's id; `"0"` when it was refused; empty when a dry run accepts it.
    pub job_id: String,
    /// Empty when accepted; else why not.
    pub message: String,
    /// compass-ci's field: empty when accepted, else the code.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub errcode: String,
    /// The same, in our own name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub code: String,
    /// What to do about a refusal, or a warning about an accepted job (no known host can run it).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hint: String,
    /// Keys of the job that were probably meant to be fields, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The scheduler's version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// `submit` when accepted; `finish` of a job that has the result of another one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub job_state: String,
    /// Where its results will be.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub result_root: String,
    /// The submit it belongs to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub submit_id: String,
    /// The same for all nodes of a cluster, which one job of the request became; empty: it is one job.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cluster_id: String,
    /// The job that has the one result of the group that it joined; empty: it joined none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub shard_of: String,
    /// The job that it runs again; empty: it is new.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rerun_of: String,
    /// The job whose result it has: nothing runs for it. Empty: it runs itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reused_from: String,
    /// The job that runs the same thing, and for whose result it waits; empty: for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub joined: String,
    /// The submit rule that it met, also if it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<RuleApplied>,
    /// Of a dry run: what the job may expect. The first job of each kind has it, of at most 16 kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outlook: Option<Box<Outlook>>,
}

/// A job that an agent says it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HeldJob {
    /// The job.
    pub job_id: String,
    /// Which try.
    pub attempt: u16,
    /// From its grant.
    pub claim_token: String,
}

/// What an agent says when it asks for work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ConsumeRequest {
    /// A uuid, new at each start (or boot) of the agent. 1 to 64 characters.
    pub session: String,
    /// Counts the agent's requests in this session, from 1. A repeated number gets the same answer again,
    /// so an agent whose connection broke repeats the request until it has the answer.
    pub request: u64,
    /// The highest request number whose answer arrived. A job granted in an answer up to this number that
    /// is not in `running` was dropped and goes back. Absent: `request - 1`. An agent that sends a new
    /// request while an older one still waits (the older is answered empty, or with jobs that were just
    /// granted: it must read that answer) says here what it has really read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<u64>,
    /// Kinds of testbox that it offers: `hw` alone, or `vm` and/or `dc`.
    pub kinds: Vec<String>,
    /// Its architecture, for example `x86_64`.
    pub arch: String,
    /// Its group; empty: the host name up to `--`.
    #[serde(default)]
    pub group: String,
    /// Memory of the whole host, MB.
    pub memory_mb: u32,
    /// Memory that jobs may take now, MB.
    pub free_memory_mb: u32,
    /// CPUs of the whole host, 1 to 65,536. Absent: CPUs are not checked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    /// CPUs that jobs may take now, at most `cpus`. Absent: all of `cpus`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_cpus: Option<u32>,
    /// Tags that it has.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Devices that it has.
    #[serde(default)]
    pub devices: Vec<String>,
    /// Cache directories that it holds.
    #[serde(default)]
    pub cache_dirs: Vec<String>,
    /// How many jobs it takes at most now, 1 to 256. Default 64; a hw box gets one.
    #[serde(default = "default_jobs_max")]
    pub jobs_max: u32,
    /// How long it waits for work, seconds, 0 to 600. Default 30.
    #[serde(default = "default_wait_s")]
    pub wait_s: u32,
    /// Jobs that it still has: those that run, and those whose last report has not been answered yet. What
    /// the scheduler thinks it has and is not here goes back or is lost.
    #[serde(default)]
    pub running: Vec<HeldJob>,
    /// Which agent asks: an id that is kept in its work folder, and that of the machine's boot. At most 128
    /// characters. The same one takes over at once, another one when nothing is heard of the first. Empty: not said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub instance: String,
    /// How its jobs are kept apart: `users` (each under a user of its own) or `none`. Empty: not said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub isolation: String,
    /// What it can run jobs in. At most 8. Empty: not said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub executors: Vec<ExecutorSaid>,
    /// What the machine is: values by family, such as `pci` → `8086:1521`. Each is also the tag `pci:8086:1521`; a
    /// number of `nodes`, `disks` or `nics` is one tag for each number up to it, such as `nodes:2+`. At most 16
    /// families and 1,000 values of 1 to 95 bytes. Empty: not said.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, Vec<String>>,
    /// Words of the chunks that its cache holds (see `content` in docs/api.md), newest inputs first. At most 2,048, of 12
    /// hexadecimal digits; the first 512 are used. Hosts that hold most of a job's inputs get it first. Empty: its cache is
    /// empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<String>,
    /// How loaded the host is. Absent: not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<HostLoad>,
}

impl ConsumeRequest {
    /// The highest request number whose answer arrived: `seen`, or what its absence means.
    #[must_use]
    pub fn read_up_to(&self) -> u64 {
        self.seen.unwrap_or(self.request.saturating_sub(1))
    }
}

fn default_jobs_max() -> u32 {
    64
}

fn default_wait_s() -> u32 {
    30
}

/// One job handed to an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Grant {
    /// The job.
    pub job_id: String,
    /// Which try, from 1.
    pub attempt: u16,
    /// Names this grant: an update with another attempt's token is refused.
    pub claim_token: String,
    /// Allows updates of this job, uploads to its result folder and appends to its log.
    pub job_token: String,
    /// Kind of testbox: `hw`, `vm` or `dc`.
    pub tbox_type: String,
    /// Memory that it takes of the host, MB; hw: 0.
    pub memory_mb: u32,
    /// Of a vm job, the part of it that the guest gets, MB. Absent: not said, so all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest_memory_mb: Option<u32>,
    /// CPUs that it takes of the host; hw: 0.
    #[serde(default)]
    pub cpus: u32,
    /// Time limit of stage running, seconds.
    pub timeout_s: u64,
    /// Where its results go, `/result/…`.
    pub result_root: String,
    /// Whether to stop it when no replica could be reached for `lease_ms`.
    pub stop_when_cut_off: bool,
    /// The job itself.
    pub job: Map<String, Value>,
    /// How long output is collected before it is sent, unless 64 KiB come together, ms. Absent: 200, and 256 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_delay_ms: Option<u32>,
    /// Files that it finds in its `inputs` folder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<GrantInput>,
    /// Files and folders below its own that are put as its outputs when it has succeeded or failed by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<String>,
}

/// The answer to a request for work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ConsumeAnswer {
    /// How long a lease lasts without a heartbeat, ms.
    pub lease_ms: u64,
    /// How often to send heartbeats, ms.
    pub heartbeat_ms: u64,
    /// The jobs; empty when nothing came in time: ask again.
    pub jobs: Vec<Grant>,
    /// Jobs that the agent said it has and must stop.
    #[serde(default)]
    pub stop: Vec<StopOrder>,
}

/// What an agent says between requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HeartbeatRequest {
    /// The agent's session.
    pub session: String,
    /// All jobs that it has: those that run, and those whose last report has not been answered yet.
    #[serde(default)]
    pub running: Vec<HeldJob>,
    /// Memory that jobs may take now, MB.
    #[serde(default)]
    pub free_memory_mb: u32,
    /// CPUs that jobs may take now. Absent: CPUs are not checked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_cpus: Option<u32>,
    /// How loaded the host is. Absent: not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<HostLoad>,
}

/// The answer to a heartbeat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HeartbeatAnswer {
    /// How long a lease lasts without a heartbeat, ms.
    pub lease_ms: u64,
    /// How often to send heartbeats, ms.
    pub heartbeat_ms: u64,
    /// Jobs to stop.
    #[serde(default)]
    pub stop: Vec<StopOrder>,
    /// Jobs whose end was put off by a user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub renewed: Vec<Renewal>,
}

/// A job that may run longer than its grant says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Renewal {
    /// The job.
    pub job_id: String,
    /// Which try.
    pub attempt: u16,
    /// How long it may still run from now, seconds.
    pub left_s: u64,
}

/// An order to stop a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StopOrder {
    /// The job.
    pub job_id: String,
    /// Which try.
    pub attempt: u16,
    /// The health that it ends with (`terminate`, `timeout_running` …); empty: it is no longer this
    /// agent's, stop it and report nothing.
    pub health: String,
    /// Why, for the log.
    pub reason: String,
    /// How long it may take to end by itself after the polite signal, seconds.
    pub grace_s: u32,
}

/// A line of a list of jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct JobSummary {
    /// The job.
    pub job_id: String,
    /// How far.
    pub job_stage: StageWord,
    /// How it ended.
    pub job_health: HealthWord,
    /// Whether results are in.
    pub job_data_readiness: String,
    /// Who is charged.
    pub my_account: String,
    /// Its queue.
    pub queue: String,
    /// The label that it has inside that queue: the name that was asked for, which is no shared queue.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub queue_label: String,
    /// Its priority.
    pub priority: i16,
    /// Its suite.
    pub suite: String,
    /// Short parameters.
    #[serde(default)]
    pub params: String,
    /// The words `key=value` that it is found by, if `with_kv=true` asked for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kv: Vec<String>,
    /// Testbox asked for.
    pub testbox: String,
    /// Its group.
    pub tbox_group: String,
    /// The host that has or had it.
    #[serde(default)]
    pub host: String,
    /// Which try.
    pub attempt: u16,
    /// Which submit.
    #[serde(default)]
    pub submit_id: String,
    /// Memory, MB.
    pub memory_mb: u32,
    /// CPUs.
    #[serde(default)]
    pub cpus: u32,
    /// When submitted.
    pub submit_ms: u64,
    /// When it could run: since then it waits, or waited, for a host alone; absent: not yet, or an older scheduler says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_ms: Option<u64>,
    /// When dispatched; absent: not yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatch_ms: Option<u64>,
    /// When its script began; absent: not yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running_ms: Option<u64>,
    /// When it ended; absent: not yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_ms: Option<u64>,
    /// Exit code, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// What made it end badly: `infra` (the machine, the network), or the job's own `fail`, `timeout`, `oom`, `panic`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub failure: String,
    /// Why it is as it is.
    #[serde(default)]
    pub reason: String,
    /// Who holds it back while it waits; absent: nobody.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub held_by: String,
    /// The title of the kernel crash that it printed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub crash_signature: String,
    /// Of a job that runs in parts: how far its shards are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shards: Option<crate::ShardCounts>,
    /// Of a shard: its parent.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub shard_of: String,
    /// The job whose result it has; empty: it runs or ran itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reused_from: String,
    /// Where its results are.
    #[serde(default)]
    pub result_root: String,
}

impl JobSummary {
    /// Whether it has ended. In a stage that this version does not know it has if it has an end.
    pub fn is_over(&self) -> bool {
        let stage = self.job_stage.known();
        stage.map_or(self.end_ms.is_some(), Stage::is_terminal)
    }
}

/// A page of jobs. Query: `stage`, `health`, `account`, `queue`, `host`, `suite`, `submit_id`, `group_id`,
/// `tbox_group` (each a comma list), `signature` (`*` only at its end), `since_ms`, `until_ms`, `order` (`newest`|`oldest`), `after`, `limit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct JobList {
    /// The jobs.
    pub jobs: Vec<JobSummary>,
    /// With `group_by`: how many there are with each value, at most 1,000 values; no jobs are listed then. Most jobs come first; of submits:
    /// the newest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<JobGroup>,
    /// How many in all.
    pub total: u64,
    /// Of a search by `kv`: jobs that match all else and are not searched, because an older version stored them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsearched: Option<u64>,
    /// Give this as `after` for the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Keeps a host for some accounts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HostReserve {
    /// Accounts whose jobs alone it gets, 1 to 100.
    pub accounts: Vec<String>,
    /// Until when: `+2h` from now or a time such as `2026-11-22T05:00:00Z`; at most 366 days ahead.
    pub until: String,
    /// Why, for people, at most 300 characters.
    #[serde(default)]
    pub reason: String,
}

/// The result of a reset of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HostReset {
    /// The host.
    pub hostname: String,
    /// Which of its documents were malformed and are repaired: `lease`, `session`, `registration`. Empty: none was.
    pub repaired: Vec<String>,
}

/// Closes a host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HostClose {
    /// Why, for people, at most 300 characters.
    #[serde(default)]
    pub reason: String,
    /// Whether it is to be emptied; else it only gets no new job.
    #[serde(default)]
    pub drain: bool,
}

/// Cancels several waiting jobs: by their ids, or all that the filters name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CancelRequest {
    /// Which; with filters: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub job_ids: Vec<String>,
    /// Filters, as the query of a list of jobs has them: `submit_id`, `group_id`, `account`, `queue`, `suite`,
    /// `tbox_group`, each one value or a list; all must hold.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub filter: Map<String, Value>,
}

/// What became of one of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CancelItem {
    /// The job.
    pub job_id: String,
    /// `success`, or the code of the refusal.
    pub result: String,
    /// Why not.
    #[serde(default)]
    pub message: String,
}

/// How a replica and its store are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Version {
    /// Name of the program: `fairlead`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What clients may rely on.
    pub capabilities: Vec<String>,
    /// The replica's name.
    pub replica: String,
    /// The store: `embedded` or `elasticsearch`, with version.
    pub store: String,
    /// Its clock, UTC epoch ms; absent: it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
    /// How many files it may open; absent: it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_max: Option<u64>,
}
