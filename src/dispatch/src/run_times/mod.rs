//! How long hosts are occupied by jobs, from dispatch to end: by suite, what it runs, and host group.
//!
//! Where nothing is known of one, the next wider kind is asked: the suite on the group, the suite anywhere.

mod histogram;

pub use histogram::{BUCKETS, Histogram};

use crate::interner::{Atom, Fixed};
use indexmap::{Equivalent, IndexMap};
use std::sync::Arc;

/// Maximum number of remembered (suite, group) pairs. Beyond it, a new pair replaces another.
const PAIRS_MAX: usize = 65_536;

/// Maximum number of remembered classes of all pairs.
const CLASSES_MAX: usize = 65_536;

/// Samples of a class below which those of its suite are used.
const CLASS_SAMPLES_MIN: u32 = 3;

/// Expected run time of an unknown job, ms. It is small: a long job is then charged as time passes, and a short one
/// has little to be given back.
pub(crate) const UNKNOWN_MS: u64 = 1_000;

/// Kind of a job, which determines its expected run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobKind<'a> {
    /// Its suite.
    pub suite: &'a str,
    /// Class of run times: equal for jobs that run the same test with the same parameters; 0: not known.
    pub class: u64,
    /// The group of the host; empty: any host.
    pub group: &'a str,
}

/// Stored run times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTimes {
    /// The suite.
    pub suite: String,
    /// The group of hosts.
    pub group: String,
    /// Times of all its jobs there.
    pub all: Histogram,
    /// Times of some of its classes.
    pub classes: Vec<(u64, Histogram)>,
}

/// Histograms of occupancy.
#[derive(Debug, Default)]
pub struct RunTimes {
    /// Histograms by suite and group. The empty group stands for all groups.
    pairs: IndexMap<(Atom, Atom), Histogram, Fixed>,
    classes: IndexMap<(Atom, Atom, u64), Histogram, Fixed>,
}

#[derive(Hash)]
struct Pair<'a>(&'a str, &'a str);

impl Equivalent<(Atom, Atom)> for Pair<'_> {
    fn equivalent(&self, key: &(Atom, Atom)) -> bool {
        self.0 == &*key.0 && self.1 == &*key.1
    }
}

#[derive(Hash)]
struct Class<'a>(&'a str, &'a str, u64);

impl Equivalent<(Atom, Atom, u64)> for Class<'_> {
    fn equivalent(&self, key: &(Atom, Atom, u64)) -> bool {
        self.0 == &*key.0 && self.1 == &*key.1 && self.2 == key.2
    }
}

impl RunTimes {
    /// Returns the times of the most specific kind that has any.
    pub fn of(&self, kind: JobKind<'_>) -> Option<&Histogram> {
        let JobKind {
            suite,
            class,
            group,
        } = kind;
        let exact = self.classes.get(&Class(suite, group, class));
        exact
            .filter(|times| times.samples() >= CLASS_SAMPLES_MIN)
            .or_else(|| self.pairs.get(&Pair(suite, group)))
            .or_else(|| self.pairs.get(&Pair(suite, "")))
    }

    /// Returns the expected run time of such a job, ms, if any is known.
    pub fn expect_ms(&self, kind: JobKind<'_>) -> Option<u64> {
        self.of(kind)?.mean_ms()
    }

    /// Adds the run time of a job.
    pub fn note(&mut self, suite: &Arc<str>, class: u64, group: &Arc<str>, took_ms: u64) {
        let mut new = Histogram::default();
        new.note(took_ms);
        let pair = (Atom::clone(suite), Atom::clone(group));
        add(&mut self.pairs, PAIRS_MAX, pair, &new);
        self.note_anywhere(suite, group, &new);
        if class != 0 {
            let key = (Atom::clone(suite), Atom::clone(group), class);
            add(&mut self.classes, CLASSES_MAX, key, &new);
        }
    }

    fn note_anywhere(&mut self, suite: &Atom, group: &Atom, new: &Histogram) {
        if !group.is_empty() {
            let anywhere = (Atom::clone(suite), Atom::from(""));
            add(&mut self.pairs, PAIRS_MAX, anywhere, new);
        }
    }

    /// Takes over stored times if they have more samples than those in memory.
    pub(crate) fn restore(&mut self, stored: StoredTimes) {
        let (suite, group) = (Atom::from(stored.suite), Atom::from(stored.group));
        let known = self.pairs.get(&Pair(&suite, &group));
        if known.is_none_or(|known| known.samples() < stored.all.samples()) {
            self.note_anywhere(&suite, &group, &stored.all);
            let pair = (Atom::clone(&suite), Atom::clone(&group));
            put(&mut self.pairs, PAIRS_MAX, pair, stored.all);
        }
        for (class, times) in stored.classes {
            let known = self.classes.get(&Class(&suite, &group, class));
            if known.is_none_or(|known| known.samples() < times.samples()) {
                let key = (Atom::clone(&suite), Atom::clone(&group), class);
                put(&mut self.classes, CLASSES_MAX, key, times);
            }
        }
    }
}

fn add<K: std::hash::Hash + Eq>(
    all: &mut IndexMap<K, Histogram, Fixed>,
    most: usize,
    key: K,
    new: &Histogram,
) {
    match all.get_mut(&key) {
        Some(known) => known.add(new),
        None => put(all, most, key, new.clone()),
    }
}

fn put<K: std::hash::Hash + Eq>(
    all: &mut IndexMap<K, Histogram, Fixed>,
    most: usize,
    key: K,
    times: Histogram,
) {
    if all.len() >= most && !all.contains_key(&key) {
        all.swap_remove_index(0);
    }
    all.insert(key, times);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind<'a>(suite: &'a str, class: u64, group: &'a str) -> JobKind<'a> {
        JobKind {
            suite,
            class,
            group,
        }
    }

    fn about(ms: u64) -> impl Fn(Option<u64>) -> bool {
        move |said| said.is_some_and(|said| said.abs_diff(ms) <= ms / 13)
    }

    #[test]
    fn the_nearest_kind_that_is_known_tells() {
        let mut times = RunTimes::default();
        let (suite, here, there) = (Atom::from("s"), Atom::from("g"), Atom::from("h"));
        assert_eq!(times.expect_ms(kind("s", 1, "g")), None);
        times.note(&suite, 1, &here, 10_000);
        for group in ["g", "other", ""] {
            let said = times.expect_ms(kind("s", 1, group));
            assert!(about(10_000)(said), "{group} {said:?}");
        }
        times.note(&suite, 2, &here, 90_000);
        times.note(&suite, 0, &there, 20_000);
        // One job of a class tells less than those of its suite.
        assert!(about(50_000)(times.expect_ms(kind("s", 1, "g"))));
        assert!(about(40_000)(times.expect_ms(kind("s", 1, "elsewhere"))));
        assert!(about(20_000)(times.expect_ms(kind("s", 1, "h"))));
        times.note(&suite, 1, &here, 10_000);
        times.note(&suite, 1, &here, 10_000);
        assert!(about(10_000)(times.expect_ms(kind("s", 1, "g"))));
        assert!(about(30_000)(times.expect_ms(kind("s", 2, "g"))));
    }

    #[test]
    fn what_was_stored_counts_where_more_is_known_of_it() {
        let stored = |ms: u64, many: usize| {
            let mut all = Histogram::default();
            for _ in 0..many {
                all.note(ms);
            }
            StoredTimes {
                suite: "s".to_owned(),
                group: "g".to_owned(),
                classes: vec![(7, all.clone())],
                all,
            }
        };
        let mut times = RunTimes::default();
        times.restore(stored(10_000, 3));
        for (class, group) in [(0, "g"), (7, "g"), (0, "elsewhere")] {
            assert!(about(10_000)(times.expect_ms(kind("s", class, group))));
        }
        let (suite, group) = (Atom::from("s"), Atom::from("g"));
        for _ in 0..10 {
            times.note(&suite, 7, &group, 50_000);
        }
        times.restore(stored(10_000, 3));
        let said = times.expect_ms(kind("s", 7, "g"));
        assert!(said.is_some_and(|ms| ms > 30_000), "{said:?}");
    }

    #[test]
    fn it_stays_bounded() {
        let mut times = RunTimes::default();
        let group = Atom::from("g");
        for n in 0..PAIRS_MAX + 100 {
            times.note(&Atom::from(n.to_string()), n as u64, &group, 1);
        }
        assert!(times.pairs.len() <= PAIRS_MAX && times.classes.len() <= CLASSES_MAX);
    }
}
