//! Growing delays, with jitter from a seed.

use std::time::Duration;

/// Pauses that double from `min` to `max`, each at random between its half and its whole.
#[derive(Debug)]
pub struct Backoff {
    next: Duration,
    min: Duration,
    max: Duration,
    chance: u64,
}

impl Backoff {
    /// Pauses whose chance comes from `seed`.
    pub fn new(min: Duration, max: Duration, seed: u64) -> Self {
        Self {
            next: min,
            min,
            max,
            chance: seed,
        }
    }

    /// For whatever goes on until it is answered: 0.2 s to 10 s, so that a scheduler that comes back
    /// is found soon and one that is away is not hammered.
    pub fn patient(seed: u64) -> Self {
        Self::new(Duration::from_millis(200), Duration::from_secs(10), seed)
    }

    /// Begins with the shortest pause again.
    pub fn reset(&mut self) {
        self.next = self.min;
    }

    /// The next pause.
    pub fn step(&mut self) -> Duration {
        let whole = self.next;
        self.next = (self.next * 2).min(self.max);
        let half = whole / 2;
        let nanos = u64::try_from(half.as_nanos()).unwrap_or(u64::MAX);
        self.chance = draw(self.chance);
        half + Duration::from_nanos(self.chance % nanos.saturating_add(1))
    }
}

/// The number after this one (`SplitMix64`, whose state is its last number).
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
