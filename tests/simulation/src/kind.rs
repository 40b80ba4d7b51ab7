//! Kinds of simulated labs, and which seeds have which.

use std::ops::Range;

/// Kind of a lab. Each has everything that the previous kinds have, and one more feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Replicas, hosts, users, admins and faults.
    Plain,
    /// Newer fields of jobs, and replicas of an older version.
    Younger,
    /// Jobs that run in parts.
    Shards,
    /// Jobs that join groups.
    Groups,
    /// Two jobs of a sequence that run at the same time.
    Pairs,
    /// Jobs that reuse results of others.
    Reuse,
    /// A pool of machines that come and go.
    Pools,
    /// Jobs that need others of their submit, and jobs that take a whole host.
    Needs,
}

/// Fresh seeds, which no list names. Their labs are of each kind in turn.
pub const FRESH: Range<u64> = 500_000_000..1_000_000_000;

/// Range of fresh seeds in earlier versions. They keep their labs.
const EARLIER_FRESH: Range<u64> = 1_000_000..500_000_000;
const EARLIER_KINDS: u64 = 7;

/// Number of listed seeds of each kind. Larger seeds have labs with pools.
const LISTED: u64 = 20_000;

impl Kind {
    /// All kinds, in order.
    pub const ALL: [Self; 8] = [
        Self::Plain,
        Self::Younger,
        Self::Shards,
        Self::Groups,
        Self::Pairs,
        Self::Reuse,
        Self::Pools,
        Self::Needs,
    ];

    /// Returns the kind of a seed's lab.
    pub fn of(seed: u64) -> Self {
        let many = Self::ALL.len() as u64;
        let place = if FRESH.contains(&seed) {
            seed % many
        } else if EARLIER_FRESH.contains(&seed) {
            seed % EARLIER_KINDS
        } else {
            seed.saturating_sub(1) / LISTED
        };
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        Self::ALL.get(place).copied().unwrap_or(Self::Pools)
    }

    /// Returns its first listed seed. The others follow it.
    pub fn first_seed(self) -> u64 {
        self as u64 * LISTED + 1
    }

    /// Returns listed seeds without end, of each kind in turn, beginning with the first of each.
    pub fn listed_seeds() -> impl Iterator<Item = u64> + Send {
        let rounds = 0..LISTED;
        rounds.flat_map(|round| Self::ALL.map(|kind| kind.first_seed() + round))
    }
}

/// Returns the start of a run of at most a million fresh seeds, derived from `number`.
pub fn fresh_from(number: u64) -> u64 {
    let room = FRESH.end - FRESH.start - 1_000_000;
    FRESH.start + number % room
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_and_fresh_seeds_are_of_all_kinds() {
        for kind in Kind::ALL {
            let first = kind.first_seed();
            assert_eq!(Kind::of(first), kind);
            assert_eq!(Kind::of(first + LISTED - 1), kind);
        }
        let listed: Vec<_> = Kind::listed_seeds().take(10).collect();
        assert_eq!(listed[6..], [120_001, 140_001, 2, 20_002]);
        let from = fresh_from(u64::MAX);
        let kinds: Vec<_> = (from..from + 8).map(Kind::of).collect();
        assert!(Kind::ALL.iter().all(|kind| kinds.contains(kind)));
        // Random seeds of earlier versions keep their labs.
        assert_eq!(Kind::of(FRESH.end), Kind::Pools);
        assert_eq!(Kind::of(309_155_460), Kind::Reuse);
        assert_eq!(Kind::of(0), Kind::Plain);
    }
}
