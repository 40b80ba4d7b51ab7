//! Randomness from a seed. A simulation has no other source, so a seed determines it.

use std::ops::RangeInclusive;

/// A small random generator (`SplitMix64`). The same seed and stream always give the same numbers.
#[derive(Debug, Clone)]
pub struct Chance(u64);

impl Chance {
    /// Returns the generator of one stream of a seed. Streams are independent.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut chance = Self(seed ^ stream.wrapping_mul(0xd6e8_feb8_6659_fd93));
        chance.draw();
        chance
    }

    /// Returns the next 64-bit number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number in `range`, all equally likely.
    pub fn within(&mut self, range: RangeInclusive<u64>) -> u64 {
        let (low, high) = range.into_inner();
        let many = high.saturating_sub(low).saturating_add(1);
        low + self.draw() % many
    }

    /// Returns an index below `many`, which is at least 1.
    pub fn index(&mut self, many: usize) -> usize {
        let many = u64::try_from(many.max(1)).unwrap_or(u64::MAX);
        usize::try_from(self.draw() % many).unwrap_or(0)
    }

    /// Returns true with this probability, per mille.
    pub fn hits(&mut self, permille: u32) -> bool {
        self.draw() % 1000 < u64::from(permille)
    }

    /// Returns one of these, all equally likely, or `or` if there is none.
    pub fn one_of<T: Copy>(&mut self, all: &[T], or: T) -> T {
        all.get(self.index(all.len())).copied().unwrap_or(or)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_says_it_all_and_streams_differ() {
        let draw = |seed, stream| {
            let mut chance = Chance::new(seed, stream);
            (0..8).map(|_| chance.within(5..=9_000)).collect::<Vec<_>>()
        };
        assert_eq!(draw(7, 1), draw(7, 1));
        assert_ne!(draw(7, 1), draw(7, 2));
        assert_ne!(draw(7, 1), draw(8, 1));
        assert!(draw(7, 1).iter().all(|n| (5..=9_000).contains(n)));
    }
}
