//! An even pace: the time at which each of many jobs is due, and parts of a wanted mean size.

use std::{
    ops::Range,
    time::{Duration, Instant},
};

use fairlead_cluster::clock::{now, pause};

/// Even pace, in jobs a second.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace(f64);

impl Pace {
    pub(super) const fn new(jobs_a_second: f64) -> Self {
        Self(jobs_a_second)
    }

    /// Returns a share (0 to 1) of the pace.
    pub(super) fn share(self, share: f64) -> Self {
        Self(self.0 * share)
    }

    /// Returns the due time of the nth job, from 0.
    fn due(self, nth: usize) -> Duration {
        let nth = f64::from(u32::try_from(nth).unwrap_or(u32::MAX));
        Duration::try_from_secs_f64(nth / self.0).unwrap_or(Duration::MAX)
    }

    /// Waits until the nth job is due. Returns at once if it is late.
    pub(super) async fn wait(self, begin: Instant, nth: usize) {
        let left = self.due(nth).saturating_sub(now() - begin);
        if !left.is_zero() {
            pause(left).await;
        }
    }
}

/// Splits the first `count` numbers into ranges of `all / parts` numbers on average, at least one each.
pub(super) fn cut(count: usize, all: u64, parts: u64) -> Vec<Range<usize>> {
    let all = all.max(parts).max(1);
    let parts = parts.max(1);
    let mut cut = Vec::new();
    let (mut from, mut nth) = (0, 0);
    while from < count {
        nth += 1;
        let to = usize::try_from(nth * all / parts).unwrap_or(count);
        cut.push(from..to.min(count));
        from = to;
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_due_evenly() {
        let pace = Pace::new(2_000.0);
        assert_eq!(pace.due(0), Duration::ZERO);
        assert_eq!(pace.due(1), Duration::from_micros(500));
        assert_eq!(pace.due(4_000), Duration::from_secs(2));
        assert_eq!(pace.share(0.5).due(4_000), Duration::from_secs(4));
        assert_eq!(Pace::new(0.0).due(1), Duration::MAX);
    }

    #[test]
    fn parts_have_the_mean_size_and_all_the_numbers() {
        let sizes = |count, all, parts| -> Vec<usize> {
            let cut = cut(count, all, parts);
            let ends = cut.iter().map(|part| part.start).skip(1).chain([count]);
            assert!(cut.iter().map(|part| part.end).eq(ends));
            cut.into_iter().map(|part| part.len()).collect()
        };
        assert_eq!(sizes(10, 5, 2), [2, 3, 2, 3]);
        assert_eq!(sizes(7, 300, 100), [3, 3, 1]);
        assert_eq!(sizes(2, 1, 4), [1, 1]);
        assert_eq!(sizes(2, 0, 0), [1, 1]);
        assert!(cut(0, 3, 1).is_empty());
    }
}
