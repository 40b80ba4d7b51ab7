//! One job as `GET jobs/ID` shows it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{CaseTotals, HealthWord, StageWord};

/// A job: the fields of the job file, and over them what the scheduler knows. Times in words are UTC.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct JobView {
    /// The job.
    pub job_id: String,
    /// compass-ci's name of `job_id`.
    pub id: String,
    /// How far: `submit`, `dispatch`, `boot`, `setup`, `wait_peer`, `running`, `post_run`, `manual_check`, `finish`,
    /// `cancel`, or an abort.
    pub job_stage: StageWord,
    /// compass-ci's name of `job_stage`.
    pub job_state: StageWord,
    /// The number of the stage, as compass-ci counts.
    pub istage: i64,
    /// How it ended: `success`, `fail`, …; `unknown`: it has not ended.
    pub job_health: HealthWord,
    /// Whether results are in: `NA`, `norun`, `uploaded`, `complete`, …
    pub job_data_readiness: String,
    /// Its number, as compass-ci counts.
    pub idata_readiness: i64,
    /// Who is charged.
    pub my_account: String,
    /// Its queue.
    pub queue: String,
    /// The name that was asked for, where that is a label inside the queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_label: Option<String>,
    /// Its priority.
    pub priority: i16,
    /// Its suite.
    pub suite: String,
    /// The kind of its test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Short parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub params: Option<String>,
    /// The testbox that it asked for.
    pub testbox: String,
    /// Its group of hosts.
    pub tbox_group: String,
    /// Its kind of testbox: `hw`, `vm` or `dc`.
    pub tbox_type: String,
    /// The architecture that it needs; absent: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arch: Option<String>,
    /// Memory, MB.
    pub memory_mb: u32,
    /// CPUs.
    pub cpus: u32,
    /// Names, one of which a host must offer.
    pub host_keys: Vec<String>,
    /// Its time limit in stage running, seconds.
    pub timeout_seconds: u64,
    /// Which try, from 1.
    pub attempt: u16,
    /// Its earlier tries, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<AttemptView>,
    /// The folder of its results.
    pub result_root: String,
    /// The submit that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submit_id: Option<String>,
    /// The group that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_id: Option<String>,
    /// The sequence that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence: Option<String>,
    /// Who holds it back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_by: Option<String>,
    /// Fields that were changed while it waited, each with `submitted` and `now`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub edits: BTreeMap<String, EditView>,
    /// The submit rule that it met, and what it changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submit_rule: Option<RuleApplied>,
    /// The job that it runs again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rerun_of: Option<String>,
    /// The job whose result it has: nothing ran for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reused_from: Option<String>,
    /// The job that ran the same thing when it was submitted, and for whose result it waits or waited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joined: Option<String>,
    /// The job whose result it could have had: it runs all the same, and both are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit_of: Option<String>,
    /// The host that has or had it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// compass-ci's name of `host`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_machine: Option<String>,
    /// Why it is as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What made it end badly: `infra`, `fail`, `timeout`, `oom` or `panic`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The last stage that it reached before it ended badly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_success_stage: Option<StageWord>,
    /// The exit code of its script.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The title of the kernel crash that it printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crash_signature: Option<String>,
    /// The most memory that it had at one time, MB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_memory_mb: Option<u32>,
    /// CPU time of all of its processes, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u32>,
    /// Bytes of the files that it uploaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_bytes: Option<u64>,
    /// The ids of its inputs, in the order of the job file; `job:ID` stands for the outputs of a job that it waits for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<String>,
    /// The id of its outputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outputs: Option<String>,
    /// `inputs` of the job file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub declared_inputs: Option<Value>,
    /// `outputs` of the job file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub declared_outputs: Option<Value>,
    /// Milestones that it reached.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub milestones: Vec<String>,
    /// Its test cases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cases: Option<CaseTotals>,
    /// What it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<Map<String, Value>>,
    /// Of a job that runs in parts: how many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shards_total: Option<u16>,
    /// How many of its shards ended with which health.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub shards_by_health: BTreeMap<String, u64>,
    /// Of a node of a cluster: the job that names the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// All nodes of the cluster.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cluster_jobs: Vec<String>,
    /// How often the cluster has begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_round: Option<u32>,
    /// What the node does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_roles: Option<String>,
    /// The addresses of the node's testbox.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub direct_ips: Vec<String>,
    /// When what happened.
    #[serde(flatten)]
    pub times: JobTimes,
    /// Fields of the job file, see docs/user-reference.md.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

/// When what happened to a job. Each is there once it has happened.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct JobTimes {
    /// When it was submitted, UTC epoch ms.
    pub submit_ms: u64,
    /// When a host got it, UTC epoch ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dispatch_ms: Option<u64>,
    /// When its script began, UTC epoch ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running_ms: Option<u64>,
    /// When it ended, UTC epoch ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_ms: Option<u64>,
    /// By when the running attempt must be over, UTC epoch ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// When it was submitted.
    pub submit_time: String,
    /// When a host got it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dispatch_time: Option<String>,
    /// When its testbox began to boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot_time: Option<String>,
    /// When its setup began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup_time: Option<String>,
    /// When it began to wait for the other nodes of its cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_peer_time: Option<String>,
    /// When its script began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running_time: Option<String>,
    /// When its script was over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub post_run_time: Option<String>,
    /// When it was held for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manual_check_time: Option<String>,
    /// When it ended in stage finish.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish_time: Option<String>,
    /// When it was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel_time: Option<String>,
    /// When it was aborted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abort_time: Option<String>,
    /// By when the running attempt must be over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_utc: Option<String>,
    /// It does not start before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<String>,
    /// By when it must be over, however far it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish_by_time: Option<String>,
    /// How long its script ran, seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_seconds: Option<u64>,
}

/// A field that was changed while the job waited.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct EditView {
    /// Its value as submitted; null: it was not said.
    pub submitted: Value,
    /// Its value now.
    pub now: Value,
}

/// The rule that a job met, and what it changed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RuleApplied {
    /// The name of the rule.
    pub rule: String,
    /// The fields that it changed; empty: the job had these values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub changes: BTreeMap<String, EditView>,
}

/// An earlier try of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct AttemptView {
    /// Which try, from 1.
    pub attempt: u16,
    /// The host that had it.
    pub host: String,
    /// compass-ci's name of `host`.
    pub host_machine: String,
    /// How far it came.
    pub job_stage: StageWord,
    /// How it ended.
    pub job_health: HealthWord,
    /// What made it end badly.
    pub failure: Option<String>,
    /// When a host got it, UTC epoch ms.
    pub dispatch_ms: u64,
    /// When it ended, UTC epoch ms.
    pub end_ms: u64,
    /// When a host got it.
    pub dispatch_time: String,
    /// When it ended.
    pub end_time: String,
    /// Why it ended so.
    pub reason: String,
}

/// A change of a job, in the stream of a submit's events.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct JobEvent {
    /// The job.
    pub job_id: String,
    /// How far it is now.
    pub job_stage: StageWord,
    /// How it ended; `unknown`: it has not ended.
    pub job_health: HealthWord,
    /// Which try.
    pub attempt: u16,
    /// When it changed, UTC epoch ms.
    pub at_ms: u64,
    /// Its suite.
    pub suite: String,
    /// Short parameters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub params: String,
    /// The host that has or had it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// Why it is as it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Where its results are.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub result_root: String,
}
