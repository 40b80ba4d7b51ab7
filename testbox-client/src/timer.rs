//! The only place of the agent that sleeps: pauses, backoff with jitter.

use std::{
    hash::{BuildHasher, Hasher},
    time::Duration,
};

/// Waits.
#[expect(clippy::disallowed_methods, reason = "the agent's named timer module")]
pub(crate) async fn pause(duration: Duration) {
    tokio::time::sleep(duration).await;
}

/// Pauses that double from `min` to `max`, each at random between its half and its whole.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
    min: Duration,
    max: Duration,
}

impl Backoff {
    pub(crate) fn new(min: Duration, max: Duration) -> Self {
        Self {
            next: min,
            min,
            max,
        }
    }

    /// For whatever goes on until it is answered: 0.2 s to 10 s, so that a scheduler that comes back
    /// is found soon and one that is away is not hammered.
    pub(crate) fn patient() -> Self {
        Self::new(Duration::from_millis(200), Duration::from_secs(10))
    }

    pub(crate) fn reset(&mut self) {
        self.next = self.min;
    }

    /// The next pause.
    pub(crate) fn step(&mut self) -> Duration {
        let whole = self.next;
        self.next = (self.next * 2).min(self.max);
        let half = whole / 2;
        // Every hasher of the standard library is seeded at random.
        let random = std::hash::RandomState::new().build_hasher().finish();
        let nanos = u64::try_from(half.as_nanos()).unwrap_or(u64::MAX);
        half + Duration::from_nanos(random % nanos.saturating_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_their_limit_and_start_anew() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_millis(300));
        for whole in [100, 200, 300, 300] {
            let whole = Duration::from_millis(whole);
            let pause = backoff.step();
            assert!(
                pause >= whole / 2 && pause <= whole,
                "{pause:?} of {whole:?}"
            );
        }
        backoff.reset();
        assert!(backoff.step() <= Duration::from_millis(100));
    }
}
