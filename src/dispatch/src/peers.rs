//! Which replica begins with which job, so that claims of several replicas seldom meet.
//!
//! Each job is some live replica's own by rendezvous hashing, and another's in the second place. A replica takes,
//! of the first jobs that are alike, its own first, and then those that it comes next for: submit order still
//! means something, and a job whose replica has no host for it is not left behind. Correctness never depends on it.

use crate::event::JobKey;

/// So many jobs that are alike are looked at for one that is this replica's own.
pub(crate) const WINDOW: usize = 64;

/// The live replicas, each by a number that all replicas derive alike.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Peers {
    /// This one.
    pub own: u64,
    /// The others, in any order. Empty: this replica is alone, and takes jobs in submit order.
    pub others: Vec<u64>,
}

impl Peers {
    /// How many replicas come before this one for a job; 0: it is its own.
    pub fn rank(&self, job: JobKey) -> usize {
        let own = (weight(self.own, job), self.own);
        let before = |other: &&u64| (weight(**other, job), **other) > own;
        self.others.iter().filter(before).count()
    }
}

/// A mix of both numbers in which each bit depends on all (the finalizer of splitmix64).
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
