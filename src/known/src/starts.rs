//! Jobs of one start time go to hosts together, so that the best of them goes first.

use std::collections::BTreeMap;

use fairlead_dispatch::Millis;
use parking_lot::Mutex;

/// How long the first job that is ready waits for the others, ms: longer than replicas take to make them ready.
const TOGETHER_MS: u64 = 250;
/// How long a start time is remembered, ms: longer than until the last replica makes its jobs ready.
const KEPT_MS: u64 = 5_000;

/// Start times that have just come, UTC epoch ms, and from when on their jobs go to hosts.
#[derive(Debug, Default)]
pub struct Starts(Mutex<BTreeMap<u64, Millis>>);

impl Starts {
    /// From when on those jobs go to hosts that start at `start_ms` (UTC epoch ms), of which one is ready now.
    pub fn not_before(&self, start_ms: u64, now: Millis) -> Millis {
        let mut known = self.0.lock();
        known.retain(|_, from| from.0.saturating_add(KEPT_MS) > now.0);
        let from = Millis(now.0.saturating_add(TOGETHER_MS));
        *known.entry(start_ms).or_insert(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_of_one_time_go_at_the_same_moment() {
        let starts = Starts::default();
        let from = starts.not_before(7, Millis(1_000));
        assert_eq!(from, Millis(1_000 + TOGETHER_MS));
        assert_eq!(starts.not_before(7, Millis(1_100)), from);
        assert_ne!(starts.not_before(8, Millis(1_100)), from);
        // One that comes late waits for nobody.
        assert_eq!(starts.not_before(7, Millis(3_000)), from);
        let again = Millis(from.0 + KEPT_MS);
        assert_eq!(starts.not_before(7, again).0, again.0 + TOGETHER_MS);
    }
}
