//! Jobs of one start time go to hosts together, so that the best of them goes first.

use std::collections::BTreeMap;

use fairlead_dispatch::Millis;
use parking_lot::Mutex;

/// Time for which the first ready job waits for the others, ms. Replicas need less to make them ready.
const TOGETHER_MS: u64 = 250;
/// Time for which a start time is remembered, ms. By then the last replica has made its jobs ready.
const KEPT_MS: u64 = 5_000;

/// Recent start times, UTC epoch ms, each with the time from which its jobs may go to hosts.
#[derive(Debug, Default)]
pub struct Starts(Mutex<BTreeMap<u64, Millis>>);

impl Starts {
    /// Returns the time from which jobs with this start time (UTC epoch ms) may go to hosts. One of them is ready now.
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
        // A late job does not wait for others.
        assert_eq!(starts.not_before(7, Millis(3_000)), from);
        let again = Millis(from.0 + KEPT_MS);
        assert_eq!(starts.not_before(7, again).0, again.0 + TOGETHER_MS);
    }
}
