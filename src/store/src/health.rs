//! Health of a store, from the outcomes of its calls.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use crate::clock;

/// Health of the store, from its last answers. It needs no request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreHealth {
    /// `embedded` or `elasticsearch`, with version.
    pub name: String,
    /// Condition of reads and searches.
    pub reads: Condition,
    /// Condition of writes.
    pub writes: Condition,
}

impl StoreHealth {
    /// Returns true if there is no problem.
    pub fn is_well(&self) -> bool {
        self.reads.is_well() && self.writes.is_well()
    }
}

/// Condition of one side of a store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Condition {
    /// Problem as text; empty: none.
    pub problem: String,
    /// Time since which the condition is well, or not well, by this machine's monotonic clock.
    pub lasts: Duration,
}

impl Condition {
    /// Returns true if there is no problem.
    pub fn is_well(&self) -> bool {
        self.problem.is_empty()
    }
}

/// Health derived from the outcomes of calls. An unreachable store is unwell on both sides, and any answer disproves
/// that. An error in an answer concerns its own side only. A place that took no write stays unwell until it takes
/// one; other places do not count.
#[derive(Debug)]
pub(crate) struct Watch(Mutex<Sides>);

#[derive(Debug)]
struct Sides {
    reads: Side,
    writes: Side,
}

#[derive(Debug)]
struct Side {
    /// Problem of the whole side; empty: none.
    problem: String,
    /// True if the problem is that no node answers.
    is_silence: bool,
    /// Problems of single places.
    places: BTreeMap<(Source, String), String>,
    since: Instant,
}

/// Source of a place's problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    /// The server reported its own parts.
    Look,
    /// A write was not taken.
    Write,
}

impl Side {
    fn new() -> Self {
        Self {
            problem: String::new(),
            is_silence: false,
            places: BTreeMap::new(),
            since: clock::now(),
        }
    }

    /// Returns the problem, of the whole side first; empty: none.
    fn told(&self) -> &str {
        if self.problem.is_empty() {
            self.places.values().next().map_or("", String::as_str)
        } else {
            &self.problem
        }
    }

    fn set(&mut self, problem: &str, is_silence: bool) {
        problem.clone_into(&mut self.problem);
        self.is_silence = is_silence;
    }

    fn answered(&mut self) {
        if self.is_silence {
            self.set("", false);
        }
    }

    /// Replaces the problems that the server reports of its parts.
    fn looked(&mut self, ill: &BTreeMap<String, String>) {
        self.places.retain(|(source, _), _| *source != Source::Look);
        let each = ill.iter();
        let each = each.map(|(place, problem)| ((Source::Look, place.clone()), problem.clone()));
        self.places.extend(each);
    }

    fn condition(&self) -> Condition {
        Condition {
            problem: self.told().to_owned(),
            lasts: clock::now().saturating_duration_since(self.since),
        }
    }
}

/// Outcomes of writes, by place. `None`: the place took one.
pub(crate) type Outcomes<'a> = BTreeMap<&'a str, Option<String>>;

impl Watch {
    /// Creates a watch without problems.
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Sides {
            reads: Side::new(),
            writes: Side::new(),
        }))
    }

    /// Notes an answered read.
    pub(crate) fn read(&self) {
        self.change(|sides| {
            sides.reads.set("", false);
            sides.writes.answered();
        });
    }

    /// Notes a successful write to a store that is one place.
    pub(crate) fn wrote(&self) {
        self.change(|sides| {
            sides.reads.answered();
            sides.writes.set("", false);
        });
    }

    /// Notes answered writes, with the present problem of each place.
    pub(crate) fn wrote_to(&self, outcomes: &Outcomes<'_>) {
        self.change(|sides| {
            sides.reads.answered();
            sides.writes.answered();
            for (place, problem) in outcomes {
                let key = (Source::Write, (*place).to_owned());
                if let Some(problem) = problem {
                    sides.writes.places.insert(key, problem.clone());
                } else {
                    sides.writes.places.remove(&key);
                    sides.writes.set("", false);
                }
            }
        });
    }

    /// Notes the server's report of its parts: those that are missing, and those that take no writes.
    pub(crate) fn looked(
        &self,
        gone: &BTreeMap<String, String>,
        closed: &BTreeMap<String, String>,
    ) {
        let all = gone.iter().chain(closed);
        let all = all.map(|(place, problem)| (place.clone(), problem.clone()));
        let unwritable = all.collect();
        self.change(|sides| {
            sides.reads.looked(gone);
            sides.writes.looked(&unwritable);
        });
    }

    /// Returns the places whose last write was not taken.
    pub(crate) fn doubted(&self) -> Vec<String> {
        let sides = self.0.lock();
        let places = sides.writes.places.keys();
        let doubted = places.filter(|(source, _)| *source == Source::Write);
        doubted.map(|(_, place)| place.clone()).collect()
    }

    /// Notes an answer that does not concern documents.
    pub(crate) fn answered(&self) {
        self.change(|sides| {
            sides.reads.answered();
            sides.writes.answered();
        });
    }

    /// Notes a failed read.
    pub(crate) fn read_failed(&self, problem: &str) {
        self.change(|sides| {
            sides.writes.answered();
            sides.reads.set(problem, false);
        });
    }

    /// Notes a failed write.
    pub(crate) fn write_failed(&self, problem: &str) {
        self.change(|sides| sides.writes.set(problem, false));
    }

    /// Notes that no node answers.
    pub(crate) fn silence(&self, problem: &str) {
        self.change(|sides| {
            sides.reads.set(problem, true);
            sides.writes.set(problem, true);
        });
    }

    /// Returns the known health.
    pub(crate) fn report(&self, name: String) -> StoreHealth {
        let sides = self.0.lock();
        StoreHealth {
            name,
            reads: sides.reads.condition(),
            writes: sides.writes.condition(),
        }
    }

    fn change(&self, change: impl FnOnce(&mut Sides)) {
        let mut sides = self.0.lock();
        let was_well = [&sides.reads, &sides.writes].map(|side| side.told().is_empty());
        change(&mut sides);
        let Sides { reads, writes } = &mut *sides;
        for (side, was_well) in [reads, writes].into_iter().zip(was_well) {
            if side.told().is_empty() != was_well {
                side.since = clock::now();
            }
        }
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

    #[test]
    fn a_place_that_took_no_write_is_ill_until_it_takes_one() {
        let watch = Watch::new();
        let ill = |place, problem: &str| [(place, Some(problem.to_owned()))].into();
        watch.wrote_to(&ill("jobs", "no shard"));
        // Others take writes and are read meanwhile.
        watch.wrote_to(&[("leases", None)].into());
        watch.read();
        assert_eq!(problems(&watch), ["", "no shard"]);
        assert_eq!(watch.doubted(), ["jobs"]);
        watch.silence("gone");
        watch.read();
        assert_eq!(problems(&watch), ["", "no shard"]);
        // Each place of a bulk counts by itself.
        watch.wrote_to(&[("jobs", None), ("leases", Some("full".to_owned()))].into());
        assert_eq!(problems(&watch), ["", "full"]);
        watch.wrote_to(&[("leases", None)].into());
        assert_eq!(problems(&watch), ["", ""]);
        assert!(watch.doubted().is_empty());
    }

    #[test]
    fn what_the_server_says_of_its_parts_holds_until_it_says_otherwise() {
        let watch = Watch::new();
        let said = |text: &str| [(text.to_owned(), format!("{text} is ill"))].into();
        let none = BTreeMap::new();
        watch.looked(&said("jobs"), &none);
        watch.read();
        watch.wrote_to(&[("jobs", None)].into());
        assert_eq!(problems(&watch), ["jobs is ill"; 2]);
        watch.looked(&none, &said("jobs"));
        assert_eq!(problems(&watch), ["", "jobs is ill"]);
        watch.looked(&none, &none);
        assert_eq!(problems(&watch), ["", ""]);
    }
}
