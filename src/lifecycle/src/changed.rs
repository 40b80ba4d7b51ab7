//! A change of a job: its stored state before and after.

use fairlead_job::Health;
use fairlead_store::{JobState, StoredJob};

/// Result of a change.
#[derive(Debug, Clone)]
pub struct Changed {
    /// State before the change.
    pub before: StoredJob,
    /// State after the change. It equals the state before if nothing had to change.
    pub after: StoredJob,
}

impl Changed {
    /// Returns true if anything was written.
    pub fn is_change(&self) -> bool {
        self.before.version != self.after.version
    }
}

/// Returns the health of the testbox's attempt that a change ended, if it ended one.
pub fn attempt_ended(before: &JobState, after: &JobState) -> Option<Health> {
    let health = if after.attempt > before.attempt {
        after.attempts.last().map(|last| last.health)
    } else {
        after.stage.is_terminal().then_some(after.health)
    };
    health.filter(|_| before.stage.is_held())
}
