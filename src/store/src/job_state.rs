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

/// Which state of a document is meant. Later states are greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Version {
    /// Elasticsearch's `_primary_term`; 1 in the embedded store.
    pub primary_term: u64,
    /// Elasticsearch's `_seq_no`; a counter in the embedded store.
    pub seq_no: u64,
}

/// The state of a job: what matching and people's searches need, at most 1 KB of it typical.
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
    /// How far it is.
    pub stage: Stage,
    /// How it ended.
    pub health: Health,
    /// Whether its results are in.
    pub data_readiness: DataReadiness,
    /// Whether it may run now (it waits for no time, parent or sequence). Counts, pulls and finds see only
    /// jobs with `stage == submit && ready`.
    pub ready: bool,
    /// When it became ready; after a requeue with back-off possibly in the future of `submit_ms`.
    pub ready_ms: u64,
    /// Who is charged.
    pub account: String,
    /// Who submitted it (may act for an account).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub principal: String,
    /// Its queue, never empty; with a slash and a slot: a label inside its account's own queue.
    pub queue: String,
    /// The name that was asked for, where that is no queue but a label. People see it; it decides nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub queue_label: String,
    /// Class of the queue when it was submitted, 0 to 9: orders pulls; the policy decides at dispatch.
    pub class: u8,
    /// Priority inside the account.
    pub priority: i16,
    /// When it was submitted.
    pub submit_ms: u64,
    /// One `submit` call.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub submit_id: String,
    /// A set of jobs for comparing.
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
    /// Words `key=value` that searches find it by, at most 64 of 256 bytes each. States of versions that did not know them
    /// have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kv: Vec<String>,
    /// Who holds it back; empty: nobody. A held job is not ready.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub held_by: String,
    /// New values of fields that were changed while it waited, by their names in job files; none: nobody changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edits: Option<Box<Spec>>,
    /// The testbox asked for.
    pub testbox: String,
    /// Its group.
    pub tbox_group: String,
    /// Its kind.
    pub tbox_type: TboxType,
    /// The architecture needed; empty: any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub arch: String,
    /// Host keys, one of which a host must offer.
    pub host_keys: Vec<String>,
    /// Memory needed, MB.
    pub memory_mb: u32,
    /// Of a vm job, the part of it that the guest gets, MB; 0: it has no guest, or an older version made the state.
    #[serde(default, skip_serializing_if = "is_unknown")]
    pub guest_memory_mb: u32,
    /// CPUs needed, at least 1. States of versions that did not know it need one.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub cpus: u32,
    /// Tags that the host must have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// How many tags: a `terms_set` search never finds documents without any.
    pub tags_n: u16,
    /// Tags that the host must not have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_tags: Vec<String>,
    /// Alternatives, of which the host must meet one; none: nothing more is asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "alternatives")]
    pub any_of: Vec<Alternative>,
    /// One more alternative, once it has waited for a while.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "else")]
    pub otherwise: Option<Box<Otherwise>>,
    /// Tags of hosts that it likes best.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prefer: Vec<String>,
    /// Devices that the host must have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<String>,
    /// How many devices.
    pub devices_n: u16,
    /// Cache directories it would like to find.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cache_dirs: Vec<String>,
    /// Time limit of stage running, seconds.
    pub timeout_s: u64,
    /// Limits of other stages that are not the usual ones, seconds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stage_limits_s: BTreeMap<Stage, u64>,
    /// How long it may be ready and yet wait for a testbox, seconds; 0: for ever.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub queue_timeout_s: u64,
    /// It is not ready before: a time of its own, or a pause after an attempt. 0: there is none, or it has passed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub start_ms: u64,
    /// By when it must be over, however far it is; 0: no such time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub finish_by_ms: u64,
    /// When it must be looked at while it is in stage submit; 0: never. Derived, see [`JobState::set_alarm`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub alarm_ms: u64,
    /// Which try this is, from 1.
    pub attempt: u16,
    /// How often it may still be tried again after a lost lease.
    pub retry_lost_left: u16,
    /// How often it may still be tried again after a failure of its own.
    pub retry_fail_left: u16,
    /// After which of its own failures; empty: after all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retry_on: Vec<Cause>,
    /// Pauses between tries that are not the usual ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Backoff>,
    /// Whether it is tried again on another host than those on which it failed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub retry_elsewhere: bool,
    /// Hosts that must not have it, for at most [`JobState::ELSEWHERE_MS`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_on: Vec<String>,
    /// Whether the agent must stop it when cut off from every replica.
    #[serde(default)]
    pub stop_when_cut_off: bool,
    /// The host that has (or had) this attempt.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// That host's group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host_group: String,
    /// Memory of the whole host, MB: what a hw job is charged for.
    #[serde(default)]
    pub host_memory_mb: u32,
    /// CPUs of the whole host; 0: it did not say.
    #[serde(default, skip_serializing_if = "is_unknown")]
    pub host_cpus: u32,
    /// What kind of machine it was at the claim, as JSON: processor, kernel, firmware, and others that a result may depend
    /// on. Empty: it did not say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host_class: String,
    /// The session of the host's agent that asked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub session: String,
    /// The number of the request that got it.
    #[serde(default)]
    pub request: u64,
    /// Unique to the claim: whose write is in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub claim_token: String,
    /// Raised by each write that only makes sure of what is there.
    #[serde(default)]
    pub claim_seq: u32,
    /// The replica that claimed it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub replica: String,
    /// When the attempt's stages began.
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
    /// When the attempt ended (finish, cancel or an abort).
    #[serde(default)]
    pub end_ms: u64,
    /// When the running attempt must be over; renewals move it.
    #[serde(default)]
    pub deadline_ms: u64,
    /// The last stage it was in before it ended badly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_success_stage: Option<Stage>,
    /// Exit code of its script, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Why it is as it is, in words for people, at most 300 bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The title of the kernel crash that it printed, at most 256 bytes: equal for equal crashes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub crash_signature: String,
    /// The most memory that it had at one time, MB; 0: not known.
    #[serde(default, skip_serializing_if = "is_unknown")]
    pub peak_memory_mb: u32,
    /// CPU time of all of its processes, milliseconds, at most some 49 days; 0: not known.
    #[serde(default, skip_serializing_if = "is_unknown")]
    pub cpu_ms: u32,
    /// Bytes of the files that it has uploaded, as far as the replica that heard of its end knows.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub result_bytes: u64,
    /// Whether it was asked to stop while it runs: told to the agent at its next heartbeat.
    #[serde(default)]
    pub stop_asked: bool,
    /// When that was.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stop_ms: u64,
    /// The health that it then ends with; none: `terminate`, a person asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_health: Option<Health>,
    /// How long its script then has after the polite signal, seconds; none: the usual time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_grace_s: Option<u32>,
    /// What it gets as its inputs, in the order of its spec: ids of 64 digits. `job:` and a job's id stand for the outputs
    /// of that job, which it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<String>,
    /// Words of the chunks of its inputs, at most 16: hosts that hold most of them get it first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub input_words: Vec<String>,
    /// The id of its outputs; empty: it has none, or not yet.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub outputs: String,
    /// Folder of its results, `/result/…`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub result_root: String,
    /// How long testboxes had it, over all its attempts that are over, ms.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub used_ms: u64,
    /// When the last of them was over.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub used_at_ms: u64,
    /// The same for jobs that run the same thing with the same parameters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fingerprint: String,
    /// Milestones reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub milestones: Vec<String>,
    /// What it waits for; none: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Waits>,
    /// The sequence that it belongs to, 0 to 256 bytes: of the jobs of one account and sequence a limited number runs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sequence: String,
    /// Whether it runs on the host of the one before it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub sequence_same_host: bool,
    /// It gets its turn only while fewer than so many others of its sequence have theirs, up to 500; 0: one.
    #[serde(default, skip_serializing_if = "is_no_number")]
    pub sequence_limit: u16,
    /// It gets its turn only if fewer than so many others began within a minute, 1 to 1,000; 0: whenever.
    #[serde(default, skip_serializing_if = "is_no_number")]
    pub sequence_per_minute: u16,
    /// Which older jobs of its sequence it replaces; none: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence_replace: Option<Replace>,
    /// Whether it has its turn in its sequence.
    #[serde(default, skip_serializing_if = "is_false")]
    pub sequence_turn: bool,
    /// Its place in a cluster of several nodes; none: it runs by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterPlace>,
    /// Of a parent: its shards. None: it is no parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shards: Option<Box<Sharding>>,
    /// Of a shard: its place. None: it is no shard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<ShardPlace>,
    /// Which of its events somebody asked to be told; none: nobody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback: Option<CallbackEvents>,
    /// The same of its notice, which people get; none: nobody gets one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<CallbackEvents>,
    /// Test cases of its last attempt that has ended; none: it has none, or they are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cases: Option<Box<CaseCounts>>,
    /// The job whose result this is: nothing ran for this one. None: it runs or ran itself, or has not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reused_from: Option<JobId>,
    /// What it has to do with results of other jobs; none: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reuse: Option<Box<Reusing>>,
    /// Where it may run from: the lab, project and labels of the submitter's choosing.
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
    /// The layout that this version writes.
    pub const FORMAT: u16 = 1;

    /// How long a ready job waits for another host than those on which it failed, ms: an hour.
    pub const ELSEWHERE_MS: u64 = 3_600_000;

    /// Before the id of a job among the inputs: they are what that job leaves.
    pub const INPUT_FROM: &'static str = "job:";

    /// The ids of all content that it names.
    pub fn content(&self) -> impl Iterator<Item = &str> {
        let known = |id: &&str| !id.is_empty() && !id.starts_with(Self::INPUT_FROM);
        let outputs = std::iter::once(self.outputs.as_str());
        let inputs = self.inputs.iter().map(String::as_str);
        inputs.chain(outputs).filter(known)
    }

    /// The jobs whose outputs it waits for, in the order of its inputs.
    pub fn inputs_from(&self) -> impl Iterator<Item = JobId> {
        let from = |input: &String| input.strip_prefix(Self::INPUT_FROM)?.parse().ok();
        self.inputs.iter().filter_map(from)
    }

    /// A job that was just born and of which nothing else is known: first attempt, not ready, no retries.
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

/// An alternative of a job from some time on; without tags it is met by every host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Otherwise {
    /// How long the job must be ready and wait, seconds.
    pub after_s: u64,
    /// Tags that the host must have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Tags that the host must not have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_tags: Vec<String>,
}

/// The place of a job among the jobs of its cluster, one a node, which begin together or not at all.
///
/// They try it in *rounds*: when one of them goes back, all go on to the next round. All fields are always stored,
/// because a patch replaces the whole of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterPlace {
    /// All its jobs, this one among them, 2 to 32. The first is its *head*, whose id names the cluster and whose state
    /// decides when all begin.
    pub jobs: Vec<JobId>,
    /// What this node does, words with blanks between.
    pub roles: String,
    /// Which round this job is in, from 1; the greatest of them all is the cluster's.
    pub round: u32,
    /// The round in which this job was let through to run, since it got its testbox; the head's is everybody's leave to
    /// be. 0: it was not.
    pub met: u32,
    /// Of the head: the last round that was given up because some had no testbox. 0: none.
    pub given_up: u32,
    /// How long nodes that have a testbox wait for those that have none, seconds.
    pub wait_s: u64,
    /// The address under which its peers reach this node's testbox; empty: not said yet.
    pub address: String,
}

impl ClusterPlace {
    /// The job whose state decides; `None` of a place that names no job.
    pub fn head(&self) -> Option<JobId> {
        self.jobs.first().copied()
    }

    /// Whether this job may run, or does.
    pub fn is_through(&self) -> bool {
        self.met > 0
    }

    /// Whether it runs a round that is over.
    pub fn is_left_behind(&self) -> bool {
        self.is_through() && self.met < self.round
    }
}

/// One earlier attempt, on record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Its number, from 1.
    pub attempt: u16,
    /// Where it ran.
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
    /// How it ended.
    pub health: Health,
    /// When it was dispatched.
    pub dispatch_ms: u64,
    /// When it ended.
    pub end_ms: u64,
    /// Why, in words.
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
    /// Whether it is created as a job that has ended: it counts as none that waits or runs.
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
