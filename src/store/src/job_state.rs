//! The state of a job: the small, typed document that changes. The body is a second document, written once.

use std::{collections::BTreeMap, sync::Arc};

use fairlead_job::{
    Alternative, Backoff, CallbackEvents, Cause, DataReadiness, Health, JobId, Replace, Spec,
    Stage, TboxType, Waits,
};
use serde::{Deserialize, Serialize};

use crate::{
    CaseCounts, Reusing, ShardPlace, Sharding, alternatives,
    left_out::{is_false, is_no_number, is_one, is_unknown, is_zero, one},
};

/// Version of a document's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Version {
    /// Elasticsearch's `_primary_term`; 1 in the embedded store.
    pub primary_term: u64,
    /// Elasticsearch's `_seq_no`; a counter in the embedded store.
    pub seq_no: u64,
}

/// State of a job: facts for matching and searches, typically at most 1 KB.
///
/// Times are UTC epoch milliseconds, 0 when it has not happened. Empty strings and lists are left out
/// of the stored document. Stored documents may hold fields this version does not know: writers only
/// send patches of named fields, so those are never dropped.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and a stored field"
)]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobState {
    /// Version of this layout; a reader accepts its own and its neighbours.
    pub format: u16,
    /// The job.
    pub job_id: JobId,
    /// Stage of the job.
    pub stage: Stage,
    /// Health at its end.
    pub health: Health,
    /// Readiness of its results.
    pub data_readiness: DataReadiness,
    /// True if it may run now (it waits for no time, parent or sequence). Counts, pulls and finds see only jobs with
    /// `stage == submit && ready`.
    pub ready: bool,
    /// Time at which it became ready. After a requeue with back-off it may lie after `submit_ms`.
    pub ready_ms: u64,
    /// Account that is charged.
    pub account: String,
    /// Person or account that submitted it (may act for an account).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub principal: String,
    /// Its queue, never empty; with a slash and a slot: a label inside its account's own queue.
    pub queue: String,
    /// Requested name that is a label and not a queue. People see it; no decision depends on it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub queue_label: String,
    /// Class of the queue when it was submitted, 0 to 9: orders pulls; the policy decides at dispatch.
    pub class: u8,
    /// Priority inside the account.
    pub priority: i16,
    /// Time of the submit.
    pub submit_ms: u64,
    /// Id of the `submit` call.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub submit_id: String,
    /// Id of a set of jobs for comparing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group_id: String,
    /// Test suite.
    pub suite: String,
    /// Kind of test.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub category: String,
    /// Short parameters for tables, `k=v k=v`, at most 200 bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub params: String,
    /// Words `key=value` by which searches find it, at most 64 of 256 bytes each. States of older versions have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kv: Vec<String>,
    /// Account that holds it back; empty: none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub held_by: String,
    /// New values of fields that were changed while it waited, by their names in job files; `None`: no change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edits: Option<Box<Spec>>,
    /// Requested testbox.
    pub testbox: String,
    /// Its group.
    pub tbox_group: String,
    /// Its kind.
    pub tbox_type: TboxType,
    /// Required architecture; empty: any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub arch: String,
    /// Host keys, one of which a host must offer.
    pub host_keys: Vec<String>,
    /// Memory needed, MB.
    pub memory_mb: u32,
    /// Memory of the guest of a vm job, MB; 0: it has no guest, or an older version made the state.
    #[serde(default, skip_serializing_if = "is_unknown")]
    pub guest_memory_mb: u32,
    /// Needed CPUs, at least 1. States of older versions need one.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub cpus: u32,
    /// Tags that the host must have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Number of tags. A `terms_set` search never finds documents without any.
    pub tags_n: u16,
    /// Tags that the host must not have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_tags: Vec<String>,
    /// Alternatives, of which the host must meet one; none: nothing more is asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "alternatives")]
    pub any_of: Vec<Alternative>,
    /// One more alternative, valid after a wait.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "else")]
    pub otherwise: Option<Box<Otherwise>>,
    /// Tags of preferred hosts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prefer: Vec<String>,
    /// Devices that the host must have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<String>,
    /// Number of devices.
    pub devices_n: u16,
    /// Preferred cache directories.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cache_dirs: Vec<String>,
    /// Time limit of stage running, seconds.
    pub timeout_s: u64,
    /// Limits of other stages that differ from the defaults, seconds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stage_limits_s: BTreeMap<Stage, u64>,
    /// Maximum time that it may be ready and wait for a testbox, seconds; 0: no limit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub queue_timeout_s: u64,
    /// Earliest time at which it is ready: its own start time, or a pause after an attempt. 0: none, or it has
    /// passed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub start_ms: u64,
    /// Time by which it must be over in any stage; 0: no such time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub finish_by_ms: u64,
    /// Time at which it must be looked at while it is in stage submit; 0: never. Derived, see
    /// [`JobState::set_alarm`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub alarm_ms: u64,
    /// Number of this attempt, from 1.
    pub attempt: u16,
    /// Remaining retries after a lost lease.
    pub retry_lost_left: u16,
    /// Remaining retries after a failure of its own.
    pub retry_fail_left: u16,
    /// Own failures after which it is retried; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retry_on: Vec<Cause>,
    /// Pauses between attempts that differ from the defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Backoff>,
    /// True if it is retried on hosts other than those on which it failed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub retry_elsewhere: bool,
    /// Hosts that must not run it, for at most [`JobState::ELSEWHERE_MS`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_on: Vec<String>,
    /// True if the agent must stop it when cut off from every replica.
    #[serde(default)]
    pub stop_when_cut_off: bool,
    /// Host that has (or had) this attempt.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// Group of that host.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host_group: String,
    /// Memory of the whole host, MB: the charge of a hw job.
    #[serde(default)]
    pub host_memory_mb: u32,
    /// CPUs of the whole host; 0: it did not say.
    #[serde(default, skip_serializing_if = "is_unknown")]
    pub host_cpus: u32,
    /// Class of the machine at the claim, as JSON: processor, kernel, firmware, and other facts that a result may
    /// depend on. Empty: the host did not say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host_class: String,
    /// Session of the host's agent that asked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub session: String,
    /// Number of the request that got it.
    #[serde(default)]
    pub request: u64,
    /// Unique token of the claim. It tells whose write was stored.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub claim_token: String,
    /// Counter raised by each write that only confirms the stored state.
    #[serde(default)]
    pub claim_seq: u32,
    /// The replica that claimed it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub replica: String,
    /// Begin of the attempt's stages.
    #[serde(default)]
    pub dispatch_ms: u64,
    /// See `dispatch_ms`.
    #[serde(default)]
    pub boot_ms: u64,
    /// See `dispatch_ms`.
    #[serde(default)]
    pub setup_ms: u64,
    /// See `dispatch_ms`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub wait_peer_ms: u64,
    /// See `dispatch_ms`.
    #[serde(default)]
    pub running_ms: u64,
    /// See `dispatch_ms`.
    #[serde(default)]
    pub post_run_ms: u64,
    /// See `dispatch_ms`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub manual_check_ms: u64,
    /// End of the attempt (finish, cancel or an abort).
    #[serde(default)]
    pub end_ms: u64,
    /// Time by which the running attempt must be over. Renewals move it.
    #[serde(default)]
    pub deadline_ms: u64,
    /// Last stage before a bad end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_success_stage: Option<Stage>,
    /// Exit code of its script, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Reason of its state as text, at most 300 bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Title of the kernel crash that it printed, at most 256 bytes. Equal crashes have equal titles.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub crash_signature: String,
    /// Peak memory, MB; 0: not known.
    #[serde(default, skip_serializing_if = "is_unknown")]
    pub peak_memory_mb: u32,
    /// CPU time of all of its processes, milliseconds, at most some 49 days; 0: not known.
    #[serde(default, skip_serializing_if = "is_unknown")]
    pub cpu_ms: u32,
    /// Bytes of its uploaded files, as far as the replica knows that noted its end.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub result_bytes: u64,
    /// True if it was asked to stop while it runs: told to the agent at its next heartbeat.
    #[serde(default)]
    pub stop_asked: bool,
    /// Time of that request.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stop_ms: u64,
    /// Health for that end; `None`: `terminate`, a person asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_health: Option<Health>,
    /// Time that its script then has after SIGTERM, seconds; `None`: the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_grace_s: Option<u32>,
    /// Inputs in the order of its spec: ids of 64 digits. `job:` and a job's id stand for the outputs of that job,
    /// which it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<String>,
    /// Sketch words of its inputs' chunks, at most 16. Hosts that hold most of them get the job first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub input_words: Vec<String>,
    /// Id of its outputs; empty: none, or not yet.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub outputs: String,
    /// Folder of its results, `/result/…`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub result_root: String,
    /// Total time of testboxes over all its ended attempts, ms.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub used_ms: u64,
    /// End of the last of these attempts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub used_at_ms: u64,
    /// Fingerprint, equal for jobs that run the same test with the same parameters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fingerprint: String,
    /// Milestones reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub milestones: Vec<String>,
    /// Conditions that it waits for; `None`: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Waits>,
    /// Sequence of the job, 0 to 256 bytes. A limited number of jobs of one account and sequence runs at a time.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sequence: String,
    /// True if it runs on the host of the job before it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub sequence_same_host: bool,
    /// Number of other jobs of its sequence with a turn below which it gets its own, up to 500; 0: one.
    #[serde(default, skip_serializing_if = "is_no_number")]
    pub sequence_limit: u16,
    /// Number of other jobs begun within a minute below which it gets its turn, 1 to 1,000; 0: no limit.
    #[serde(default, skip_serializing_if = "is_no_number")]
    pub sequence_per_minute: u16,
    /// Older jobs of its sequence that it replaces; `None`: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence_replace: Option<Replace>,
    /// True if it has its turn in its sequence.
    #[serde(default, skip_serializing_if = "is_false")]
    pub sequence_turn: bool,
    /// Place in a cluster of several nodes; `None`: it runs by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterPlace>,
    /// Shards of a parent. `None`: it is no parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shards: Option<Box<Sharding>>,
    /// Place of a shard. `None`: it is no shard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<ShardPlace>,
    /// Events for its callback; `None`: it has no callback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback: Option<CallbackEvents>,
    /// Events for its notice, which people get; `None`: it has no notice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<CallbackEvents>,
    /// Test cases of its last ended attempt; `None`: none, or they are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cases: Option<Box<CaseCounts>>,
    /// Job whose result it reuses: this job did not run. `None`: it runs or ran itself, or has not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reused_from: Option<JobId>,
    /// Relation to results of other jobs; `None`: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reuse: Option<Box<Reusing>>,
    /// Origin of the job: the lab, project and labels that the submitter chose.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub lab: String,
    /// See `lab`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub project: String,
    /// See `lab`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Earlier attempts, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
}

impl JobState {
    /// Layout that this version writes.
    pub const FORMAT: u16 = 1;

    /// Time that a ready job waits for a host other than those on which it failed, ms: an hour.
    pub const ELSEWHERE_MS: u64 = 3_600_000;

    /// Prefix of a job's id among the inputs: they are the outputs of that job.
    pub const INPUT_FROM: &'static str = "job:";

    /// Returns the ids of all content that it names.
    pub fn content(&self) -> impl Iterator<Item = &str> {
        let known = |id: &&str| !id.is_empty() && !id.starts_with(Self::INPUT_FROM);
        let outputs = std::iter::once(self.outputs.as_str());
        let inputs = self.inputs.iter().map(String::as_str);
        inputs.chain(outputs).filter(known)
    }

    /// Returns the jobs whose outputs it waits for, in the order of its inputs.
    pub fn inputs_from(&self) -> impl Iterator<Item = JobId> {
        let from = |input: &String| input.strip_prefix(Self::INPUT_FROM)?.parse().ok();
        self.inputs.iter().filter_map(from)
    }

    /// Creates a new job with default values: first attempt, not ready, no retries.
    pub fn blank(job_id: JobId, tbox_type: TboxType) -> Self {
        Self {
            format: Self::FORMAT,
            job_id,
            tbox_type,
            attempt: 1,
            ..Self::default()
        }
    }
}

/// Alternative of a job that holds after a time. Without tags every host meets it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Otherwise {
    /// Time for which the job must be ready and wait, seconds.
    pub after_s: u64,
    /// Tags that the host must have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Tags that the host must not have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_tags: Vec<String>,
}

/// Place of a job among the jobs of its cluster, one per node. They begin together or not at all.
///
/// They try it in *rounds*: when one of them goes back, all go on to the next round. All fields are always stored,
/// because a patch replaces the whole place.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterPlace {
    /// All jobs of the cluster, including this one, 2 to 32. The first is its *head*: its id names the cluster, and
    /// its state decides when all begin.
    pub jobs: Vec<JobId>,
    /// Roles of this node, words separated by blanks.
    pub roles: String,
    /// Round of this job, from 1. The greatest round of all jobs is the cluster's.
    pub round: u32,
    /// Round in which this job was allowed to run, since it got its testbox. The head's value allows all jobs to run.
    /// 0: not allowed.
    pub met: u32,
    /// Last round that the head gave up because some nodes had no testbox. 0: none.
    pub given_up: u32,
    /// Time that nodes with a testbox wait for those without, seconds.
    pub wait_s: u64,
    /// Address under which its peers reach this node's testbox; empty: not reported yet.
    pub address: String,
}

impl ClusterPlace {
    /// Returns the job whose state decides; `None` if the place names no job.
    pub fn head(&self) -> Option<JobId> {
        self.jobs.first().copied()
    }

    /// Returns true if this job may run or runs.
    pub fn is_through(&self) -> bool {
        self.met > 0
    }

    /// Returns true if it runs a round that is over.
    pub fn is_left_behind(&self) -> bool {
        self.is_through() && self.met < self.round
    }
}

/// One earlier attempt, on record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Its number, from 1.
    pub attempt: u16,
    /// Host on which it ran.
    pub host: String,
    /// See [`JobState::host_class`]; empty also for jobs whose results are not reused.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host_class: String,
    /// The session of the host's agent.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub session: String,
    /// Its claim token.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub claim_token: String,
    /// The stage it had reached.
    pub stage: Stage,
    /// Health at its end.
    pub health: Health,
    /// Time of its dispatch.
    pub dispatch_ms: u64,
    /// Time of its end.
    pub end_ms: u64,
    /// Reason as text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// A job to submit: both its documents.
#[derive(Debug, Clone, PartialEq)]
pub struct NewJob {
    /// The state.
    pub state: JobState,
    /// The body: the spec as submitted (secrets sealed). Written once.
    pub body: Arc<Spec>,
}

impl NewJob {
    /// Returns true if it is created as an ended job. It counts neither as waiting nor as running.
    pub fn is_over(&self) -> bool {
        self.state.stage.is_terminal()
    }
}

/// A state as read, with the version to expect in the next patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredJob {
    /// The state.
    pub state: JobState,
    /// Its version.
    pub version: Version,
}
