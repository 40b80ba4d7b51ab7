//! Gives each replica an order of jobs, so that claims of several replicas seldom meet.
//!
//! Rendezvous hashing gives each job an order of live replicas. Of the first equal jobs, a replica takes its own first,
//! and then those for which it comes next. So submit order still matters, and a job whose replica has no host for it is
//! not left behind. Each replica takes at most [`OVERTAKES_MAX`] later jobs before an equal earlier one (I13).
//! Correctness never depends on this order.

use crate::ids::{JobKey, Place};

/// Number of equal jobs among which a replica looks for one of its own.
pub(crate) const WINDOW: usize = 64;

/// Number of later equal jobs that a replica takes before one that waits here (I13).
pub const OVERTAKES_MAX: usize = 64;

/// Number of overtakes from which the jobs behind them wait until the first job is taken. The last jobs of the window
/// are then taken in the order of rank, so that not all replicas claim the same one.
const OVERTAKES_CLOSE: usize = 32;

/// Maximum number of remembered jobs that went elsewhere before others. Used only for explanations.
const ELSEWHERE_MAX: usize = 256;

/// Live replicas, each by a number that all replicas derive in the same way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Peers {
    /// This replica.
    pub own: u64,
    /// Other replicas, in any order. Empty: this replica is alone, and takes jobs in submit order.
    pub others: Vec<u64>,
}

impl Peers {
    /// Returns the number of replicas that come before this one for a job; 0: the job is its own.
    pub fn rank(&self, job: JobKey) -> usize {
        let own = (weight(self.own, job), self.own);
        let before = |other: &&u64| (weight(**other, job), **other) > own;
        self.others.iter().filter(before).count()
    }
}

/// The jobs of a bucket that went before others which still wait.
#[derive(Debug, Default)]
pub(crate) struct Overtakers {
    /// Jobs taken by this replica. At most [`OVERTAKES_MAX`].
    here: Vec<Place>,
    /// Jobs taken by others, as far as is known. At most [`ELSEWHERE_MAX`].
    elsewhere: Vec<Place>,
}

impl Overtakers {
    /// Returns the last job that this replica may take while `first` waits; `None`: no bound.
    pub(crate) fn reach(&self, first: Place) -> Option<Place> {
        let before = self.here.iter().filter(|place| is_behind(**place, first));
        match before.clone().count() {
            0..OVERTAKES_CLOSE => None,
            OVERTAKES_CLOSE..OVERTAKES_MAX => before.max().copied(),
            _ => Some(first),
        }
    }

    /// Notes a job that is taken while `first` waits, by this replica or by another one.
    pub(crate) fn note(&mut self, taken: Place, first: Place, is_here: bool) {
        let (places, most) = if is_here {
            (&mut self.here, OVERTAKES_MAX)
        } else {
            (&mut self.elsewhere, ELSEWHERE_MAX)
        };
        if taken <= first {
            return;
        }
        places.retain(|place| *place > first);
        if places.len() < most {
            places.push(taken);
        }
    }

    /// Returns the number of later jobs of its priority that went before a job.
    pub(crate) fn before(&self, job: Place) -> u64 {
        let all = self.here.iter().chain(&self.elsewhere);
        all.filter(|place| is_behind(**place, job)).count() as u64
    }
}

/// Returns true if `place` has the same priority and comes later.
fn is_behind(place: Place, first: Place) -> bool {
    place.0 == first.0 && place > first
}

/// Mixes both numbers so that each bit depends on all (the finalizer of splitmix64).
fn weight(replica: u64, job: JobKey) -> u64 {
    let mut mixed = replica ^ job.0.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_job_has_one_owner_and_owners_have_equal_parts() {
        let all = [11_u64, 22, 33];
        let peers = all.map(|own| Peers {
            own,
            others: all.into_iter().filter(|other| *other != own).collect(),
        });
        let mut owned = [0; 3];
        for job in (0..3_000).map(JobKey) {
            let mut ranks = peers.clone().map(|peers| peers.rank(job));
            let owner = ranks.iter().position(|rank| *rank == 0).unwrap();
            if let Some(count) = owned.get_mut(owner) {
                *count += 1;
            }
            ranks.sort_unstable();
            assert_eq!(ranks, [0, 1, 2]);
        }
        assert!(
            owned.iter().all(|jobs| (900..1_100).contains(jobs)),
            "{owned:?}"
        );
    }
}
