//! Health of a replica's store, from the outcomes of its calls, like that of the real stores.

use std::time::Duration;

use fairlead_store::{Condition, StoreHealth};
use parking_lot::{Mutex, MutexGuard};

/// Health of the store's reads and writes, as one replica knows it.
#[derive(Debug, Default)]
pub(super) struct Health(Mutex<Sides>);

#[derive(Debug, Default)]
struct Sides {
    reads: Side,
    writes: Side,
}

#[derive(Debug, Default)]
struct Side {
    problem: &'static str,
    /// True if the problem is that nobody answers. Any answer disproves it.
    is_silence: bool,
    since_ms: u64,
}

impl Side {
    fn set(&mut self, problem: &'static str, is_silence: bool, now_ms: u64) {
        if self.problem.is_empty() != problem.is_empty() {
            self.since_ms = now_ms;
        }
        self.problem = problem;
        self.is_silence = is_silence;
    }

    fn answered(&mut self, now_ms: u64) {
        if self.is_silence {
            self.set("", false, now_ms);
        }
    }

    fn condition(&self, now_ms: u64) -> Condition {
        Condition {
            problem: self.problem.to_owned(),
            lasts: Duration::from_millis(now_ms.saturating_sub(self.since_ms)),
        }
    }
}

impl Health {
    fn sides(&self) -> MutexGuard<'_, Sides> {
        self.0.lock()
    }

    pub(super) fn read(&self, well: bool, now_ms: u64) {
        let mut sides = self.sides();
        sides.writes.answered(now_ms);
        let problem = if well { "" } else { "a read failed" };
        sides.reads.set(problem, false, now_ms);
    }

    pub(super) fn wrote(&self, taken: bool, now_ms: u64) {
        let mut sides = self.sides();
        sides.reads.answered(now_ms);
        let problem = if taken { "" } else { "a write was not taken" };
        sides.writes.set(problem, false, now_ms);
    }

    pub(super) fn silence(&self, now_ms: u64) {
        let mut sides = self.sides();
        sides.reads.set("nobody answers", true, now_ms);
        sides.writes.set("nobody answers", true, now_ms);
    }

    pub(super) fn report(&self, now_ms: u64) -> StoreHealth {
        let sides = self.sides();
        StoreHealth {
            name: "simulated".to_owned(),
            reads: sides.reads.condition(now_ms),
            writes: sides.writes.condition(now_ms),
        }
    }
}
