//! Health of a store, from the outcomes of its calls.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::clock;

/// How the store is, as far as is known from what was asked of it last: nothing is asked for this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreHealth {
    /// `embedded` or `elasticsearch`, with version.
    pub name: String,
    /// Whether reads and searches are answered.
    pub reads: Condition,
    /// Whether writes are taken.
    pub writes: Condition,
}

impl StoreHealth {
    /// Nothing is wrong.
    pub fn is_well(&self) -> bool {
        self.reads.is_well() && self.writes.is_well()
    }
}

/// How one side of a store is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Condition {
    /// What is wrong, in words; empty when nothing is.
    pub problem: String,
    /// How long it has been well, or not well, on this machine's monotonic clock.
    pub lasts: Duration,
}

impl Condition {
    /// Nothing is wrong.
    pub fn is_well(&self) -> bool {
        self.problem.is_empty()
    }
}

/// Keeps what outcomes say. A store that nobody reaches is not well on both sides, and any answer
/// disproves that; what was answered with an error concerns its own side only.
#[derive(Debug)]
pub(crate) struct Watch(Mutex<Sides>);

#[derive(Debug)]
struct Sides {
    reads: Side,
    writes: Side,
}

#[derive(Debug)]
struct Side {
    problem: String,
    /// The problem is that nobody answers.
    is_silence: bool,
    since: Instant,
}

impl Side {
    fn new() -> Self {
        Self {
            problem: String::new(),
            is_silence: false,
            since: clock::now(),
        }
    }

    fn set(&mut self, problem: &str, is_silence: bool) {
        if self.problem.is_empty() != problem.is_empty() {
            self.since = clock::now();
        }
        problem.clone_into(&mut self.problem);
        self.is_silence = is_silence;
    }

    fn answered(&mut self) {
        if self.is_silence {
            self.set("", false);
        }
    }

    fn condition(&self) -> Condition {
        Condition {
            problem: self.problem.clone(),
            lasts: clock::now().saturating_duration_since(self.since),
        }
    }
}

impl Watch {
    /// All is well.
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Sides {
            reads: Side::new(),
            writes: Side::new(),
        }))
    }

    /// A read was answered.
    pub(crate) fn read(&self) {
        self.change(|sides| {
            sides.reads.set("", false);
            sides.writes.answered();
        });
    }

    /// A write was taken.
    pub(crate) fn wrote(&self) {
        self.change(|sides| {
            sides.reads.answered();
            sides.writes.set("", false);
        });
    }

    /// Something was answered that says nothing of the document side.
    pub(crate) fn answered(&self) {
        self.change(|sides| {
            sides.reads.answered();
            sides.writes.answered();
        });
    }

    /// A read failed.
    pub(crate) fn read_failed(&self, problem: &str) {
        self.change(|sides| {
            sides.writes.answered();
            sides.reads.set(problem, false);
        });
    }

    /// A write failed.
    pub(crate) fn write_failed(&self, problem: &str) {
        self.change(|sides| sides.writes.set(problem, false));
    }

    /// Nobody answers.
    pub(crate) fn silence(&self, problem: &str) {
        self.change(|sides| {
            sides.reads.set(problem, true);
            sides.writes.set(problem, true);
        });
    }

    /// What is known.
    pub(crate) fn report(&self, name: String) -> StoreHealth {
        let mut health = StoreHealth {
            name,
            reads: Condition::default(),
            writes: Condition::default(),
        };
        self.change(|sides| {
            health.reads = sides.reads.condition();
            health.writes = sides.writes.condition();
        });
        health
    }

    fn change(&self, change: impl FnOnce(&mut Sides)) {
        change(&mut self.0.lock());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(watch: &Watch) -> [String; 2] {
        let health = watch.report("x".to_owned());
        let is_well = health.is_well();
        let problems = [health.reads.problem, health.writes.problem];
        assert_eq!(is_well, problems.iter().all(String::is_empty));
        problems
    }

    #[test]
    fn an_answer_ends_silence_and_each_side_its_own_problem() {
        let watch = Watch::new();
        assert_eq!(problems(&watch), ["", ""]);
        watch.write_failed("full");
        watch.read();
        assert_eq!(problems(&watch), ["", "full"]);
        watch.silence("gone");
        assert_eq!(problems(&watch), ["gone", "gone"]);
        watch.read();
        assert_eq!(problems(&watch), ["", ""]);
        watch.silence("gone");
        watch.read_failed("red");
        assert_eq!(problems(&watch), ["red", ""]);
        watch.answered();
        watch.wrote();
        assert_eq!(problems(&watch), ["red", ""]);
        watch.read();
        assert_eq!(problems(&watch), ["", ""]);
    }

    #[test]
    fn a_condition_lasts_while_only_the_words_change() {
        let watch = Watch::new();
        watch.write_failed("one");
        let since = |watch: &Watch| {
            let mut since = None;
            watch.change(|sides| since = Some(sides.writes.since));
            since
        };
        let first = since(&watch);
        watch.write_failed("two");
        watch.silence("three");
        assert_eq!(since(&watch), first);
    }
}
