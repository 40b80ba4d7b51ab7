//! Derives from a state the columns by which waiting jobs are counted, pulled and found.

use std::collections::BTreeSet;

use fairlead_job::{Alternative, JobId, Stage};
use serde::{Deserialize, Serialize};

use crate::{
    Find, JobState, alternatives,
    left_out::{is_one, one},
};

/// Number of priorities in one class.
const PRIORITIES: i64 = 1 << 16;

/// Returns one number that sorts by class (high first), then priority (high first).
pub(super) fn rank(class: u8, priority: i16) -> i64 {
    (i64::from(u8::MAX) - i64::from(class)) * PRIORITIES
        + (i64::from(i16::MAX) - i64::from(priority))
}

/// Returns true if counts, pulls and finds see the job.
pub(super) fn is_waiting(state: &JobState) -> bool {
    state.stage == Stage::Submit && state.ready
}

/// Waiting job as the derived tables hold it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WaitRow {
    pub(super) job_id: JobId,
    pub(super) rank: i64,
    pub(super) account: String,
    pub(super) queue: String,
    pub(super) host_keys: BTreeSet<String>,
    pub(super) shape: Shape,
}

impl WaitRow {
    /// Returns the row of a job, or `None` if the job does not wait.
    pub(super) fn of(state: &JobState) -> Option<Self> {
        is_waiting(state).then(|| Self {
            job_id: state.job_id,
            rank: rank(state.class, state.priority),
            account: state.account.clone(),
            queue: state.queue.clone(),
            host_keys: state.host_keys.iter().cloned().collect(),
            shape: Shape {
                arch: state.arch.clone(),
                memory_mb: state.memory_mb,
                cpus: state.cpus,
                tags: state.tags.iter().cloned().collect(),
                not_tags: state.not_tags.iter().cloned().collect(),
                any_of: state.any_of.clone(),
                devices: state.devices.iter().cloned().collect(),
                not_on: state.not_on.iter().cloned().collect(),
            },
        })
    }
}

/// Requirements on a host besides the key. Jobs of equal shape are interchangeable for a find, so a shape is compared
/// with an offer once, not once per job.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Shape {
    arch: String,
    memory_mb: u32,
    /// Needed CPUs. Rows of versions without this field need one.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    cpus: u32,
    tags: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    not_tags: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "alternatives")]
    any_of: Vec<Alternative>,
    devices: BTreeSet<String>,
    /// Hosts that must not run the job.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    not_on: BTreeSet<String>,
}

impl Shape {
    /// Returns true if the offer meets all requirements.
    pub(super) fn fits(&self, offer: &Find) -> bool {
        (self.arch.is_empty() || self.arch == offer.arch)
            && self.memory_mb <= offer.free_memory_mb
            && offer.free_cpus.is_none_or(|free| self.cpus <= free)
            && self.tags.iter().all(|tag| offer.tags.contains(tag))
            && !self.not_tags.iter().any(|tag| offer.tags.contains(tag))
            && (self.any_of.is_empty() || self.any_of.iter().any(|one| meets(offer, one)))
            && !self.not_on.contains(&offer.host)
            && self.devices.iter().all(|d| offer.devices.contains(d))
    }
}

/// Returns true if the offer meets an alternative.
fn meets(offer: &Find, one: &Alternative) -> bool {
    one.tags.iter().all(|tag| offer.tags.contains(tag))
        && !one.not_tags.iter().any(|tag| offer.tags.contains(tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_sorts_by_class_then_priority_high_first() {
        let order = [
            (9, 5),
            (9, -5),
            (3, i16::MAX),
            (3, 0),
            (3, i16::MIN),
            (0, i16::MAX),
        ];
        for pair in order.windows(2) {
            assert!(
                rank(pair[0].0, pair[0].1) < rank(pair[1].0, pair[1].1),
                "{pair:?}"
            );
        }
    }
}
