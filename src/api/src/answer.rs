//! The answer of a job: what a CI waits for, of a job as a whole and of each of its shards.

use serde::{Deserialize, Serialize};

use crate::{HealthWord, StageWord};

/// How far the shards of a job are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ShardCounts {
    /// How many there are.
    pub count: u16,
    /// Those that testboxes have.
    #[serde(default)]
    pub running: u16,
    /// Those that have ended.
    #[serde(default)]
    pub over: u16,
    /// Those of them that did not succeed.
    #[serde(default)]
    pub failed: u16,
    /// Those of them that have results of earlier jobs: nothing ran for them. Only the answer of a job counts them.
    #[serde(default, skip_serializing_if = "is_none")]
    pub reused: u16,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_none(count: &u16) -> bool {
    *count == 0
}

impl ShardCounts {
    /// Whether a testbox had one of them.
    pub fn has_begun(&self) -> bool {
        self.running > 0 || self.over > 0
    }
}

/// How many test cases had which outcome, and the first that failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CaseTotals {
    /// Cases that passed.
    pub passed: u32,
    /// Cases that failed, errors included.
    pub failed: u32,
    /// Cases that were skipped.
    pub skipped: u32,
    /// The first three that failed, at most 100 bytes each; of a job with shards with the shard's number before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_failures: Vec<String>,
}

/// The history of a test in a group of hosts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TestHistory {
    /// Its whole name.
    pub test: String,
    /// The group of the hosts that it ran on; empty: they have none.
    pub group: String,
    /// How often it passed.
    pub passed: u64,
    /// How often it failed.
    pub failed: u64,
    /// How long it takes as of late, seconds; absent: not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// When it last ran, UTC epoch ms.
    pub last_ms: u64,
}

/// One shard in the answer of its job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ShardAnswer {
    /// Its number, from 1.
    pub shard: u16,
    /// The job that it is.
    pub job_id: String,
    /// How far; empty: it is not stored yet.
    pub job_stage: StageWord,
    /// How it ended.
    pub job_health: HealthWord,
    /// Which try.
    pub attempt: u16,
    /// The host that has or had it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// Why it is as it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The job whose result it has; absent: it runs or ran itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reused_from: String,
    /// Its test cases; absent: not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cases: Option<CaseTotals>,
    /// Where its results are.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub result_root: String,
}

/// The answer of a job, `GET /r/ID`. It is there before anything ran.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct JobAnswer {
    /// The job.
    pub job_id: String,
    /// Whether it has ended: nothing of this changes any more, but for results that come late.
    pub over: bool,
    /// How far.
    pub job_stage: StageWord,
    /// How it ended.
    pub job_health: HealthWord,
    /// Why it is as it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The job whose result it has; absent: it runs or ran itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reused_from: String,
    /// Its suite.
    pub suite: String,
    /// Who is charged.
    pub my_account: String,
    /// When submitted, UTC epoch ms.
    pub submit_ms: u64,
    /// When it ended, UTC epoch ms; absent: not yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_ms: Option<u64>,
    /// Its test cases, of all shards that have ended; absent: none is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cases: Option<CaseTotals>,
    /// The name of the group whose result this is; absent: it is of no group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Whether more jobs may join the group.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub open: bool,
    /// How far its shards are; absent: it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shards: Option<ShardCounts>,
    /// Its shards, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<ShardAnswer>,
    /// Where its results are.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub result_root: String,
}
