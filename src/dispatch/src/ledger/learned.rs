//! Learned durations of a suite's jobs on a host group, from jobs that ended.

use crate::interner::{Atom, Fixed};
use indexmap::{Equivalent, IndexMap};

/// Most (suite, group) pairs remembered; beyond it an old one makes room.
const PAIRS_MAX: usize = 65_536;

/// What is expected of a job of which nothing is known, ms. Small: a long job is then charged as time passes,
/// and a short one has little to be given back.
pub(crate) const UNKNOWN_MS: u64 = 1_000;

/// Run times, as moving averages.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    mean_ms: IndexMap<(Atom, Atom), u64, Fixed>,
}

#[derive(Hash)]
struct Pair<'a>(&'a str, &'a str);

impl Equivalent<(Atom, Atom)> for Pair<'_> {
    fn equivalent(&self, key: &(Atom, Atom)) -> bool {
        self.0 == &*key.0 && self.1 == &*key.1
    }
}

impl Learned {
    /// How long jobs of `suite` take on `group`, ms, if any has ended there.
    pub(crate) fn expect_ms(&self, suite: &str, group: &str) -> Option<u64> {
        self.mean_ms.get(&Pair(suite, group)).copied()
    }

    /// A job of `suite` took this long on `group`.
    pub(crate) fn note(&mut self, suite: &Atom, group: &Atom, took_ms: u64) {
        if let Some(mean) = self.mean_ms.get_mut(&Pair(suite, group)) {
            // A quarter of the new one: settles within a dozen jobs, and one odd job does not swing it.
            *mean = mean.saturating_mul(3).saturating_add(took_ms) / 4;
            return;
        }
        if self.mean_ms.len() >= PAIRS_MAX {
            self.mean_ms.swap_remove_index(0);
        }
        self.mean_ms
            .insert((Atom::clone(suite), Atom::clone(group)), took_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settles_on_what_is_seen_and_stays_bounded() {
        let mut learned = Learned::default();
        let (suite, group) = (Atom::from("s"), Atom::from("g"));
        assert_eq!(learned.expect_ms("s", "g"), None);
        learned.note(&suite, &group, 1_000);
        assert_eq!(learned.expect_ms("s", "g"), Some(1_000));
        for _ in 0..30 {
            learned.note(&suite, &group, 300_000);
        }
        assert!(
            learned
                .expect_ms("s", "g")
                .is_some_and(|mean| mean.abs_diff(300_000) < 3_000)
        );
        for n in 0..PAIRS_MAX + 100 {
            learned.note(&Atom::from(n.to_string()), &group, 1);
        }
        assert!(learned.mean_ms.len() <= PAIRS_MAX);
    }
}
