//! Kinds of simulated labs, and which seeds have which.

use std::ops::Range;

/// A kind of lab. Each has all that the kinds before it have, and one thing more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Replicas, hosts, users, admins and faults.
    Plain,
    /// Younger fields of jobs, and replicas of an older version.
    Younger,
    /// Jobs that run in parts.
    Shards,
    /// Jobs that join groups.
    Groups,
    /// Two jobs of a sequence beside each other.
    Pairs,
    /// Jobs that take results of others.
    Reuse,
    /// A pool of machines that come and go.
    Pools,
    /// Jobs that need others of their submit, and jobs that take a whole host.
    Needs,
}

/// Fresh seeds: no list names them. Their labs are of each kind in turn.
pub const FRESH: Range<u64> = 500_000_000..1_000_000_000;

/// What fresh seeds were while there were so many kinds. They keep their labs.
const EARLIER_FRESH: Range<u64> = 1_000_000..500_000_000;
const EARLIER_KINDS: u64 = 7;

/// How many listed seeds each kind has. Those above have labs with pools.
const LISTED: u64 = 20_000;

impl Kind {
    /// All, in order.
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

    /// The kind of a seed's lab.
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

    /// Its first listed seed. The others follow it.
    pub fn first_seed(self) -> u64 {
        self as u64 * LISTED + 1
    }

    /// Listed seeds without end, of each kind in turn, the first of each first.
    pub fn listed_seeds() -> impl Iterator<Item = u64> + Send {
        let rounds = 0..LISTED;
        rounds.flat_map(|round| Self::ALL.map(|kind| kind.first_seed() + round))
    }
}

/// Where a run of at most a million fresh seeds begins, which follows from `number`.
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
        // What earlier versions ran at random stays what it was.
        assert_eq!(Kind::of(FRESH.end), Kind::Pools);
        assert_eq!(Kind::of(309_155_460), Kind::Reuse);
        assert_eq!(Kind::of(0), Kind::Plain);
    }
}
