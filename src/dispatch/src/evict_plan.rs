//! A plan of the next evictions, valid for a bounded number of them.

use crate::ids::{BucketId, MemberId, Place};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Accounts and groups of jobs that a plan may look at for each eviction that it provides.
pub(crate) const LOOKS_PER_EVICTION: usize = 16;

/// Plan of the next evictions.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Accounts in queues by how many jobs of theirs were here, most first.
    pub longest: BinaryHeap<(u64, Reverse<MemberId>)>,
    /// Last job of each group, deepest first, of accounts with many groups of jobs.
    pub tails: BTreeMap<MemberId, BinaryHeap<(Place, BucketId)>>,
    /// Number of evictions left in the plan.
    pub left: usize,
    /// True if the last job of a dimension stays.
    pub spares_last: bool,
    /// Number of jobs in memory below which no new plan is made, because the last plan found nothing to evict.
    pub asleep_until: usize,
    /// Accounts and groups of jobs looked at so far, over all plans.
    pub looks: u64,
}

impl Plan {
    /// Allows a new plan, because the store's counts have changed: jobs that had to stay may go now.
    pub(crate) fn wake(&mut self) {
        self.asleep_until = 0;
    }

    pub(crate) fn looked_at(&mut self, n: usize) {
        self.looks = self.looks.saturating_add(n as u64);
        self.left = self.left.saturating_add(n / LOOKS_PER_EVICTION);
    }
}
