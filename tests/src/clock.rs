//! Time for tests: deadlines, and waiting for a condition. No test sleeps.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::time::MissedTickBehavior;

/// Interval between checks of a condition. A check is a request on loopback, and a longer interval would only add
/// waiting time.
pub const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Returns the time of the monotonic clock.
#[expect(clippy::disallowed_methods, reason = "the tests' one clock")]
pub fn now() -> Instant {
    Instant::now()
}

/// Returns the UTC time, epoch milliseconds.
#[expect(clippy::disallowed_methods, reason = "the tests' one clock")]
pub fn now_ms() -> u128 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis())
}

/// Time limit of a condition that must become true, s, on any loaded machine. A condition that holds early costs no
/// time.
pub const PATIENCE_S: u64 = 120;

/// Calls `probe` repeatedly until it has a value, and returns the value.
///
/// # Panics
/// Panics after [`PATIENCE_S`], and names `what`.
pub async fn eventually<T>(what: &str, probe: impl AsyncFnMut() -> Option<T>) -> T {
    until(what, PATIENCE_S, probe).await
}

/// Does the same as [`eventually`], with another time limit.
///
/// # Panics
/// Panics after `limit_s` seconds, and names `what`.
pub async fn until<T>(what: &str, limit_s: u64, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = now() + Duration::from_secs(limit_s);
    let mut ticks = tokio::time::interval(LOOK_EVERY);
    // After a slow check there is one next check, and no burst of the missed ones.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Some(found) = probe().await {
            return found;
        }
        assert!(now() < deadline, "not within {limit_s} s: {what}");
    }
}

/// Returns a number that no other test of this machine has now, for names and prefixes.
pub fn unique() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let own = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{:x}-{:x}-{own}", std::process::id(), now_ms() & 0xff_ffff)
}
