//! Delays of the agent. No other module sleeps.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    time::Duration,
};

/// Waits for this duration.
#[expect(clippy::disallowed_methods, reason = "the agent's named timer module")]
pub(crate) async fn pause(duration: Duration) {
    tokio::time::sleep(duration).await;
}

/// Returns a random seed for pauses.
pub(crate) fn seed() -> u64 {
    // Every hasher of the standard library is seeded at random.
    RandomState::new().build_hasher().finish()
}
