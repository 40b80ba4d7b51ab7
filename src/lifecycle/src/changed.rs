//! A change of a job: its stored state before and after.

use fairlead_job::Health;
use fairlead_store::{JobState, StoredJob};

/// What a change came to.
#[derive(Debug, Clone)]
pub struct Changed {
    /// The state before.
    pub before: StoredJob,
    /// The state after; the same when nothing had to change.
    pub after: StoredJob,
}

impl Changed {
    /// Whether anything was written.
    pub fn is_change(&self) -> bool {
        self.before.version != self.after.version
    }
}

/// How the attempt that a testbox had ended by a change, if it did.
pub fn attempt_ended(before: &JobState, after: &JobState) -> Option<Health> {
    let health = if after.attempt > before.attempt {
        after.attempts.last().map(|last| last.health)
    } else {
        after.stage.is_terminal().then_some(after.health)
    };
    health.filter(|_| before.stage.is_held())
}
