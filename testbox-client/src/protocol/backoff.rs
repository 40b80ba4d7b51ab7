//! Growing delays, with jitter from a seed.

use std::time::Duration;

/// Pauses that double from `min` to `max`. Each one is random between half and all of it.
#[derive(Debug)]
pub struct Backoff {
    next: Duration,
    min: Duration,
    max: Duration,
    chance: u64,
}

impl Backoff {
    /// Returns pauses with random numbers from `seed`.
    pub fn new(min: Duration, max: Duration, seed: u64) -> Self {
        Self {
            next: min,
            min,
            max,
            chance: seed,
        }
    }

    /// Returns the pauses for endless retries: 0.2 s to 10 s. So a returning scheduler is found soon, and an
    /// unreachable one is not overloaded.
    pub fn patient(seed: u64) -> Self {
        Self::new(Duration::from_millis(200), Duration::from_secs(10), seed)
    }

    /// Starts again with the shortest pause.
    pub fn reset(&mut self) {
        self.next = self.min;
    }

    /// Returns the next pause.
    pub fn step(&mut self) -> Duration {
        let whole = self.next;
        self.next = (self.next * 2).min(self.max);
        let half = whole / 2;
        let nanos = u64::try_from(half.as_nanos()).unwrap_or(u64::MAX);
        self.chance = draw(self.chance);
        half + Duration::from_nanos(self.chance % nanos.saturating_add(1))
    }
}

/// Returns the random number after this one (`SplitMix64`, whose state is its last number).
pub(super) fn draw(last: u64) -> u64 {
    let mut mixed = last.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_their_limit_and_start_anew() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_millis(300), 7);
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
