//! Listeners: parts of a replica that follow the states of jobs.
//!
//! The flow of jobs knows none of them by name. It tells each one of every state once, in the order of its list. The
//! engine, waiting requests, parents of shards and hints to peers are not in that list: they depend on the order in which
//! they hear of several jobs, so [`JobFlow`](super::JobFlow) tells them itself.

use std::fmt;

use fairlead_job::{Health, JobId};
use fairlead_store::JobState;

/// A part of a replica that follows the states of jobs. Its methods run before the writer of a state is answered, so none
/// of them waits or reads the store.
pub(crate) trait Listener: fmt::Debug + Send + Sync {
    /// A state is newer than all that were seen of its job, whoever wrote it.
    fn seen(&self, _state: &JobState) {}

    /// The store acknowledged a change by this replica.
    fn changed(&self, _before: &JobState, _after: &JobState) {}

    /// The store acknowledged a job that this replica created. Its result is not taken from another job.
    fn created(&self, _state: &JobState) {}

    /// This replica wrote the end of an attempt. `end_ms`: the end, UTC epoch ms.
    fn attempt_ended(&self, _before: &JobState, _health: Health, _end_ms: u64) {}

    /// A host got a job for the first time in its attempt.
    fn delivered(&self, _state: &JobState) {}

    /// The first shard of this parent failed.
    fn failing(&self, _parent: JobId) {}
}
