//! The use of the lab.

use serde::{Deserialize, Serialize};

/// What ran between two times.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UsageReport {
    /// What the rows are: `account`, `queue`, `host`, `suite` or `class`.
    pub by: String,
    /// Begin, UTC epoch ms; of long times rounded down to the hour.
    pub since_ms: u64,
    /// End, UTC epoch ms.
    pub until_ms: u64,
    /// Most busy first. Of each minute, the names with the fewest jobs are summed up as `(others)`.
    pub rows: Vec<UsageRow>,
}

/// What ran of one name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UsageRow {
    /// The name.
    pub name: String,
    /// Jobs that hosts got.
    pub dispatched: u64,
    /// Attempts that ended.
    pub ended: u64,
    /// Those of them that did not succeed.
    pub failed: u64,
    /// How long hosts had those that ended, ms.
    pub busy_ms: u64,
    /// Its part of the busy time of all rows, thousandths.
    pub share_permille: u32,
    /// Half of the jobs waited less than this, seconds, a power of two; absent: hosts got none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_p50_s: Option<u64>,
    /// 95 of 100 jobs waited less than this, seconds, a power of two; absent: hosts got none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_p95_s: Option<u64>,
}
