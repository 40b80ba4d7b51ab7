//! Parts of a job's state: its shards, and the test cases that it ran.

use std::collections::BTreeMap;

use fairlead_job::{Health, JobId};
use serde::{Deserialize, Serialize};

use crate::left_out::{is_false, is_no_number, is_unknown, is_zero};

/// The shards of a job that runs in parts. Such a job, a *parent*, is never dispatched. It stays in stage submit and is
/// not ready until all of its shards are over.
///
/// All fields are always stored that are not at their default, because a patch replaces the whole of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sharding {
    /// How many there are, 2 to 1,000. Their ids follow the parent's. Of a group: 1 to 1,000, and 0 until it is closed and
    /// its shards are counted.
    pub count: u16,
    /// Whether the first one that fails for good stops the others.
    #[serde(default, skip_serializing_if = "is_false")]
    pub fail_fast: bool,
    /// Whether they differ in more than their numbers, as the parent's body says.
    #[serde(default, skip_serializing_if = "is_false")]
    pub varied: bool,
    /// When they were released: the parent waits for nothing any more. UTC epoch ms; 0: it does.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub released_ms: u64,
    /// Whether all of them are in the store for sure.
    #[serde(default, skip_serializing_if = "is_false")]
    pub made: bool,
    /// How far behind the parent's id the job is that lists its tests; 0: its shards need no list.
    #[serde(default, skip_serializing_if = "is_no_number")]
    pub lister: u16,
    /// The digest of the plan: which tests each shard runs. Empty: there is none yet, or none is needed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub plan: String,
    /// The name of the group that jobs join one by one, each with a body of its own. Empty: it is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Since when no job may join the group, UTC epoch ms; 0: jobs may.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub closed_ms: u64,
    /// Once the parent has ended: how many ended with which health.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ends: BTreeMap<Health, u16>,
}

impl Sharding {
    /// Whether its tests are yet to be listed, and packed.
    pub fn is_unplanned(&self) -> bool {
        self.lister > 0 && self.plan.is_empty()
    }

    /// Whether it is a group, which jobs join one by one.
    pub fn is_group(&self) -> bool {
        !self.group.is_empty()
    }

    /// Whether jobs may join it.
    pub fn is_open(&self) -> bool {
        self.is_group() && self.closed_ms == 0
    }

    /// Whether it is a group, and nobody has counted its shards for good.
    pub fn is_uncounted(&self) -> bool {
        self.is_group() && self.count == 0
    }

    /// The ids of the shards of `parent`, in order.
    pub fn ids(&self, parent: JobId) -> impl Iterator<Item = JobId> + use<> {
        (1..=self.count).map(move |n| parent.behind(n))
    }
}

/// The place of a shard.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardPlace {
    /// Its parent.
    pub of: JobId,
    /// Its number, from 1; 0: it lists the tests of the others.
    pub n: u16,
    /// How many shards its parent has; 0: it joined a group, and runs what its own body says.
    pub total: u16,
}

impl ShardPlace {
    /// Whether it joined a group, and runs what its own body says.
    pub fn has_own_body(self) -> bool {
        self.total == 0
    }
}

/// The test cases of a job's last attempt; of a parent those of its shards.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaseCounts {
    /// Cases that passed.
    #[serde(default, skip_serializing_if = "is_unknown")]
    pub passed: u32,
    /// Cases that failed, errors included.
    #[serde(default, skip_serializing_if = "is_unknown")]
    pub failed: u32,
    /// Cases that were skipped.
    #[serde(default, skip_serializing_if = "is_unknown")]
    pub skipped: u32,
    /// The first three that failed, at most 100 bytes each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_failures: Vec<String>,
}

impl CaseCounts {
    /// Most failures that are named.
    pub const FAILURES_MAX: usize = 3;
    /// Longest name of one, bytes.
    pub const FAILURE_BYTES_MAX: usize = 100;

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds those of another job.
    pub fn add(&mut self, other: &Self) {
        self.passed = self.passed.saturating_add(other.passed);
        self.failed = self.failed.saturating_add(other.failed);
        self.skipped = self.skipped.saturating_add(other.skipped);
        let room = Self::FAILURES_MAX.saturating_sub(self.first_failures.len());
        let more = other.first_failures.iter().take(room).cloned();
        self.first_failures.extend(more);
    }
}
