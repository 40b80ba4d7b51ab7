//! Keeps and walks entries in the order of virtual time.
//!
//! Virtual time never runs backwards between two events of a queue, so the value at its last event is a lower bound. A
//! walk takes entries until the least true value is surely below the rest. It notes anew whatever was too low. The cost
//! grows with the entries looked at, and not with all entries.

use crate::ids::CLASS_MAX;
use crate::meter::Pass;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, btree_set};
use std::iter::Peekable;

/// Initial capacity for ids looked at. Most walks need no more.
const READY_FROM: usize = 16;

/// Order of queues, or of the accounts of one queue: higher classes first, then those within their limits, then
/// virtual time. It is one number, because decisions compare little else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Standing(i128);

impl Standing {
    /// Bits of virtual time, far more than any value needs.
    const PASS_BITS: u32 = 120;
    /// Half of the range of virtual times, which lie around 0.
    const PASS_MAX: i128 = 1 << (Self::PASS_BITS - 1);

    pub(crate) fn new(class: u8, behind: bool, pass: Pass) -> Self {
        let step = i128::from(CLASS_MAX.saturating_sub(class)) * 2 + i128::from(behind);
        let pass = pass.clamp(-Self::PASS_MAX, Self::PASS_MAX - 1);
        Self((step << Self::PASS_BITS) + Self::PASS_MAX + pass)
    }

    pub(crate) fn class(self) -> u8 {
        let steps = self.0 >> (Self::PASS_BITS + 1);
        CLASS_MAX.saturating_sub(u8::try_from(steps).unwrap_or(CLASS_MAX))
    }
}

/// Visits ids in the order of their true ranks, given an order by lower bounds.
#[derive(Debug)]
pub(crate) struct Walk<'a, K, I, R> {
    noted: Peekable<btree_set::Iter<'a, (K, I)>>,
    ready: BinaryHeap<Reverse<R>>,
}

impl<'a, K: Copy + Ord, I: Copy + Ord, R: Ord> Walk<'a, K, I, R> {
    pub(crate) fn new(notes: &'a BTreeSet<(K, I)>) -> Self {
        Self {
            noted: notes.iter().peekable(),
            ready: BinaryHeap::with_capacity(READY_FROM),
        }
    }

    /// Returns the next id in order. `rank` returns the true rank of an id; `None` leaves the id out. `key` returns
    /// the noted part of a rank. `least` returns the lowest rank that is possible for a noted key, so that of many
    /// equal keys only the first is looked at. Ids that were noted too low are added to `stale`.
    pub(crate) fn next(
        &mut self,
        rank: impl Fn(I) -> Option<R>,
        key: impl Fn(&R) -> K,
        least: impl Fn(K, I) -> R,
        stale: &mut Vec<I>,
    ) -> Option<R> {
        loop {
            let next = self.noted.peek();
            let surely =
                |top: &Reverse<R>| next.is_none_or(|(noted, id)| top.0 < least(*noted, *id));
            if self.ready.peek().is_some_and(surely) {
                return self.ready.pop().map(|Reverse(rank)| rank);
            }
            let (noted, id) = self.noted.next()?;
            let Some(rank) = rank(*id) else { continue };
            if key(&rank) != *noted {
                stale.push(*id);
            }
            self.ready.push(Reverse(rank));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_stands_first_is_told_by_class_then_limits_then_virtual_time() {
        let mut order = Vec::new();
        for class in (0..=CLASS_MAX).rev() {
            for behind in [false, true] {
                for pass in [-1 << 119, -7, 0, 1 << 90, (1 << 119) - 1] {
                    let standing = Standing::new(class, behind, pass);
                    assert_eq!(standing.class(), class);
                    order.push(standing);
                }
            }
        }
        assert!(order.is_sorted_by(|a, b| a < b));
        // Beyond what there is, virtual times are all the same.
        let ends = |pass| Standing::new(3, true, pass);
        assert_eq!(ends(i128::MAX), ends((1 << 119) - 1));
        assert_eq!(ends(i128::MIN), ends(-1 << 119));
    }

    #[test]
    fn a_walk_follows_the_true_order_and_tells_what_was_noted_too_low() {
        let truth = |id: usize| [5, 9, 5, 7, 20_u32].get(id).copied();
        let notes = BTreeSet::from([(1, 0_usize), (2, 1), (5, 2), (7, 3), (20, 4)]);
        let mut walk = Walk::new(&notes);
        let mut stale = vec![];
        let mut next = || {
            let rank = |id| Some((truth(id)?, id)).filter(|_| id != 3);
            walk.next(rank, |rank| rank.0, |noted, id| (noted, id), &mut stale)
        };
        let order: Vec<usize> = std::iter::from_fn(&mut next).map(|(_, id)| id).collect();
        assert_eq!(order, [0, 2, 1, 4]);
        assert_eq!(stale, [0, 1]);
    }

    /// A flood of queues that all joined at the same moment was looked at whole for each job.
    #[test]
    fn of_many_at_the_same_place_only_the_first_is_looked_at() {
        let looked_at = std::cell::Cell::new(0);
        let notes: BTreeSet<(u32, usize)> = (0..1_000).map(|id| (7, id)).collect();
        let mut walk = Walk::new(&notes);
        let rank = |id| {
            looked_at.set(looked_at.get() + 1);
            Some((7, 0, id))
        };
        let least = |noted, id| (noted, 0, id);
        let first = walk.next(rank, |rank| rank.0, least, &mut Vec::new());
        assert_eq!((first, looked_at.get()), (Some((7, 0, 0)), 1));
    }
}
