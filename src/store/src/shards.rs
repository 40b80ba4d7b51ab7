//! Parts of a job's state: its shards, and the test cases that it ran.

use std::collections::BTreeMap;

use fairlead_job::{Health, JobId};
use serde::{Deserialize, Serialize};

use crate::left_out::{is_false, is_no_number, is_unknown, is_zero};

/// Shards of a job that runs in parts. Such a job, a *parent*, is never dispatched. It stays in stage submit and is
/// not ready until all of its shards are over.
///
/// All fields that differ from their default are always stored, because a patch replaces the whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sharding {
    /// Number of shards, 2 to 1,000. Their ids follow the parent's. A group has 1 to 1,000, and 0 until it is closed
    /// and its shards are counted.
    pub count: u16,
    /// True if the first shard that finally fails stops the others.
    #[serde(default, skip_serializing_if = "is_false")]
    pub fail_fast: bool,
    /// True if the shards differ in more than their numbers, as the parent's body says.
    #[serde(default, skip_serializing_if = "is_false")]
    pub varied: bool,
    /// Time of their release, UTC epoch ms; 0: the parent still waits.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub released_ms: u64,
    /// True if all shards are certainly in the store.
    #[serde(default, skip_serializing_if = "is_false")]
    pub made: bool,
    /// Distance from the parent's id to the job that lists its tests; 0: its shards need no list.
    #[serde(default, skip_serializing_if = "is_no_number")]
    pub lister: u16,
    /// Digest of the plan, which assigns tests to shards. Empty: there is none yet, or none is needed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub plan: String,
    /// Name of the group that jobs join one by one, each with its own body. Empty: no group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Time since which no job may join the group, UTC epoch ms; 0: jobs may.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub closed_ms: u64,
    /// Number of ended shards by health, once the parent has ended.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ends: BTreeMap<Health, u16>,
}

impl Sharding {
    /// Returns true if its tests are yet to be listed, and packed.
    pub fn is_unplanned(&self) -> bool {
        self.lister > 0 && self.plan.is_empty()
    }

    /// Returns true if it is a group, which jobs join one by one.
    pub fn is_group(&self) -> bool {
        !self.group.is_empty()
    }

    /// Returns true if jobs may join it.
    pub fn is_open(&self) -> bool {
        self.is_group() && self.closed_ms == 0
    }

    /// Returns true if it is a group whose shards are not finally counted.
    pub fn is_uncounted(&self) -> bool {
        self.is_group() && self.count == 0
    }

    /// Returns the ids of the shards of `parent`, in order.
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
    /// Number of shards of its parent; 0: it joined a group, and runs its own body.
    pub total: u16,
}

impl ShardPlace {
    /// Returns true if it joined a group, and runs its own body.
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
    /// Names of the first three that failed, at most 100 bytes each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_failures: Vec<String>,
}

impl CaseCounts {
    /// Maximum number of named failures.
    pub const FAILURES_MAX: usize = 3;
    /// Longest name of a failure, bytes.
    pub const FAILURE_BYTES_MAX: usize = 100;

    /// Returns true if there is none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds the counts of another job.
    pub fn add(&mut self, other: &Self) {
        self.passed = self.passed.saturating_add(other.passed);
        self.failed = self.failed.saturating_add(other.failed);
        self.skipped = self.skipped.saturating_add(other.skipped);
        let room = Self::FAILURES_MAX.saturating_sub(self.first_failures.len());
        let more = other.first_failures.iter().take(room).cloned();
        self.first_failures.extend(more);
    }
}
