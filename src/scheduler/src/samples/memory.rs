//! Counts and times of attempts that are not written yet.

use fairlead_job::Health;
use fairlead_store::JobState;

use crate::jobs::listener::Listener;
use fairlead_known::{run_times::PendingEnds, samples::Samples};

/// Counts and times of attempts that are not written yet.
#[derive(Debug, Default)]
pub(crate) struct SampleMemory {
    pub(crate) samples: Samples,
    /// Ends of jobs whose times are not written yet.
    pub(crate) run_times: PendingEnds,
}

impl Listener for SampleMemory {
    fn changed(&self, before: &JobState, after: &JobState) {
        self.run_times.ended(before, after);
    }

    fn attempt_ended(&self, before: &JobState, health: Health, end_ms: u64) {
        self.samples.ended(before, health, end_ms);
    }

    fn delivered(&self, state: &JobState) {
        self.samples.dispatched(state);
    }
}
