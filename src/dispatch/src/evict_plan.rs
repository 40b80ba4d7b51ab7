//! A plan of the next evictions, valid for a bounded number of them.

use crate::ids::{BucketId, MemberId, Place};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// A plan is good for one eviction for so many accounts and groups of jobs that were looked at for it.
pub(crate) const LOOKS_PER_EVICTION: usize = 16;

/// Whom to evict next.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Accounts in queues by how many jobs of theirs were here, most first.
    pub longest: BinaryHeap<(u64, Reverse<MemberId>)>,
    /// Of those with many groups of jobs the last job of each, deepest first.
    pub tails: BTreeMap<MemberId, BinaryHeap<(Place, BucketId)>>,
    /// For so many evictions it is good.
    pub left: usize,
    /// Whether the last job of a dimension stays.
    pub spares_last: bool,
    /// It found nobody: not made anew before there are so many jobs here.
    pub asleep_until: usize,
    /// Accounts and groups of jobs looked at so far, over all plans.
    pub looks: u64,
}

impl Plan {
    /// What the store counts has changed: what had to stay may go now.
    pub(crate) fn wake(&mut self) {
        self.asleep_until = 0;
    }

    pub(crate) fn looked_at(&mut self, n: usize) {
        self.looks = self.looks.saturating_add(n as u64);
        self.left = self.left.saturating_add(n / LOOKS_PER_EVICTION);
    }
}
