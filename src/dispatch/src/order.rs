//! Order by virtual time, kept and walked.
//!
//! Virtual time never runs backwards between two events of a queue, so what was noted at its last event is a lower
//! bound: a walk takes from the notes until the least true value is surely below the rest, and whoever was noted
//! too low is noted anew. Cost follows how many are looked at, not how many there are.

use crate::ledger::{Ledger, MemberId, MemberRank, Owner, QueueId, QueueRank};
use crate::meter::Pass;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, btree_set};
use std::iter::Peekable;

/// Room for so many looked at is made at once: most walks need no more.
const READY_FROM: usize = 16;

/// What orders queues: class, those within their limits, virtual time.
pub(crate) type QueueKey = (Reverse<u8>, bool, Pass);

/// What orders the accounts of a queue: those within their limits, virtual time.
pub(crate) type MemberKey = (bool, Pass);

/// Visits ids in the order of their true ranks, given an order by lower bounds.
#[derive(Debug)]
pub(crate) struct Walk<'a, K, I, R> {
    noted: Peekable<btree_set::Iter<'a, (K, I)>>,
    ready: BinaryHeap<Reverse<R>>,
}

impl<'a, K: Ord, I: Copy + Ord, R: Ord> Walk<'a, K, I, R> {
    pub(crate) fn new(notes: &'a BTreeSet<(K, I)>) -> Self {
        Self {
            noted: notes.iter().peekable(),
            ready: BinaryHeap::with_capacity(READY_FROM),
        }
    }

    /// The next in order. `rank` is the true rank of an id, none for those to be left out; `key` is what of a rank
    /// is noted. Ids that were noted too low are added to `stale`.
    pub(crate) fn next(
        &mut self,
        rank: impl Fn(I) -> Option<R>,
        key: impl Fn(&R) -> K,
        stale: &mut Vec<I>,
    ) -> Option<R> {
        loop {
            let next = self.noted.peek();
            let surely = |top: &Reverse<R>| next.is_none_or(|(noted, _)| key(&top.0) < *noted);
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

/// What of a queue's rank is noted.
pub(crate) fn queue_key(rank: &QueueRank) -> QueueKey {
    (rank.0, rank.1, rank.2)
}

/// What of an account's rank is noted.
pub(crate) fn member_key(rank: &MemberRank) -> MemberKey {
    (rank.0, rank.1)
}

impl Ledger {
    /// Notes anew where a queue and one of its accounts stand. Must follow whatever moves them back, and the first
    /// and the last waiting job.
    pub(crate) fn note(&mut self, owner: Owner, now: u64) {
        self.note_queue(owner.queue, now);
        self.note_member(owner.queue, owner.member, now);
    }

    pub(crate) fn note_queue(&mut self, id: QueueId, now: u64) {
        let Some(behind) = self.queues.get(id).map(|queue| self.is_queue_behind(queue)) else {
            return;
        };
        let Some(queue) = self.queues.get_mut(id) else {
            return;
        };
        let place = (Reverse(queue.class()), behind, queue.meter.pass(now));
        let key = (queue.tally.waiting > 0).then_some(place);
        if key == queue.noted {
            return;
        }
        if let Some(before) = std::mem::replace(&mut queue.noted, key) {
            self.order.remove(&(before, id));
        }
        self.order.extend(key.map(|key| (key, id)));
    }

    pub(crate) fn note_member(&mut self, queue: QueueId, id: MemberId, now: u64) {
        let behind = self.is_member_behind(id);
        let (Some(queue), Some(member)) = (self.queues.get_mut(queue), self.members.get_mut(id))
        else {
            return;
        };
        let key = (member.tally.waiting > 0).then(|| (behind, member.meter.pass(now)));
        if key == member.noted {
            return;
        }
        if let Some(before) = std::mem::replace(&mut member.noted, key) {
            queue.order.remove(&(before, id));
        }
        queue.order.extend(key.map(|key| (key, id)));
    }

    /// Panics if a note is above the true value, or one is missing. For tests and simulation.
    pub(crate) fn check_notes(&self, now: u64) {
        for (id, queue) in &self.queues {
            assert_eq!(
                queue.noted.is_some(),
                queue.tally.waiting > 0,
                "{}",
                queue.name
            );
            if let Some(key) = queue.noted {
                assert!(
                    key <= (
                        Reverse(queue.class()),
                        self.is_queue_behind(queue),
                        queue.meter.pass(now)
                    ),
                    "{} noted too high",
                    queue.name
                );
                assert!(self.order.contains(&(key, id)));
            }
            let members = queue
                .members
                .values()
                .filter_map(|id| Some((*id, self.members.get(*id)?)));
            let noted = members.filter_map(|(id, member)| {
                assert_eq!(
                    member.noted.is_some(),
                    member.tally.waiting > 0,
                    "{}",
                    member.account
                );
                let place = (self.is_member_behind(id), member.meter.pass(now));
                assert!(
                    member.noted.is_none_or(|key| key <= place),
                    "{} too high",
                    member.account
                );
                Some((member.noted?, id))
            });
            assert_eq!(noted.collect::<BTreeSet<_>>(), queue.order);
        }
        assert_eq!(
            self.order.len(),
            self.queues
                .values()
                .filter(|queue| queue.noted.is_some())
                .count()
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_follows_the_true_order_and_tells_what_was_noted_too_low() {
        let truth = |id: usize| [5, 9, 5, 7, 20_u32].get(id).copied();
        let notes = BTreeSet::from([(1, 0_usize), (2, 1), (5, 2), (7, 3), (20, 4)]);
        let mut walk = Walk::new(&notes);
        let mut stale = vec![];
        let mut next = || {
            let rank = |id| Some((truth(id)?, id)).filter(|_| id != 3);
            walk.next(rank, |rank| rank.0, &mut stale)
        };
        let order: Vec<usize> = std::iter::from_fn(&mut next).map(|(_, id)| id).collect();
        assert_eq!(order, [0, 2, 1, 4]);
        assert_eq!(stale, [0, 1]);
    }
}
