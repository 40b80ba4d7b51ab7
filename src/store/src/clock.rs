//! The clock and the randomness of the stores. No other module asks for the time, waits, or draws random numbers.

use std::{
    hash::{BuildHasher, RandomState},
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// Monotonic time.
#[expect(clippy::disallowed_methods, reason = "the named clock module")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Returns UTC epoch milliseconds. They name the month's index and stamp documents for people; no decision depends on
/// them.
#[expect(clippy::disallowed_methods, reason = "the named clock module")]
pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}

/// Waits between two tries.
#[expect(clippy::disallowed_methods, reason = "the named timer module")]
pub(crate) async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}

/// Random numbers that keep replicas from trying again in step (xorshift; no secret depends on them).
#[derive(Debug)]
pub(crate) struct Chance(AtomicU64);

impl Chance {
    /// Creates a sequence that differs from process to process.
    pub(crate) fn new() -> Self {
        let seed = RandomState::new().hash_one(unix_ms());
        Self(AtomicU64::new(seed | 1))
    }

    /// Returns a random number.
    pub(crate) fn next(&self) -> u64 {
        let mut x = self.0.load(Ordering::Relaxed);
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.0.store(x, Ordering::Relaxed);
        x
    }

    /// Returns a random time between half of `time` and `time`.
    pub(crate) fn jitter(&self, time: Duration) -> Duration {
        let half = time / 2;
        let part = u32::try_from(self.next() % 1024).unwrap_or(0);
        half + half * part / 1024
    }
}
