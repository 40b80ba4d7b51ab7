//! Noted virtual times of queues and accounts, for walks in order. Part of [`Ledger`].
//!
//! Virtual time never runs backwards between two events of a queue, so the value at its last event is a lower bound. A
//! walk takes entries until the least true value is surely below the rest. It notes anew whatever was too low. The cost
//! grows with the entries looked at, and not with all entries.

use crate::ids::{MemberId, Owner, QueueId};
use crate::ledger::state::{Ledger, Member, Queue};
use std::collections::BTreeSet;

impl Ledger {
    /// Notes anew the places of a queue and of one of its accounts. Must follow each change that moves them back, and
    /// the first and the last waiting job.
    pub(crate) fn note(&mut self, owner: Owner, now: u64) {
        self.note_queue(owner.queue, now);
        self.note_member(owner.queue, owner.member, now);
    }

    pub(crate) fn note_queue(&mut self, id: QueueId, now: u64) {
        let waiting = |queue: &&Queue| queue.tally.waiting > 0;
        let key = self.queues.get(id).filter(waiting);
        let key = key.map(|queue| self.queue_standing(queue, now));
        let Some(queue) = self.queues.get_mut(id) else {
            return;
        };
        if key == queue.noted {
            return;
        }
        if let Some(before) = std::mem::replace(&mut queue.noted, key) {
            self.order.remove(&(before, id));
        }
        self.order.extend(key.map(|key| (key, id)));
    }

    pub(crate) fn note_member(&mut self, queue: QueueId, id: MemberId, now: u64) {
        let waiting = |member: &&Member| member.tally.waiting > 0;
        let key = self.members.get(id).filter(waiting);
        let key = key.map(|member| self.member_standing(member, now));
        let (Some(queue), Some(member)) = (self.queues.get_mut(queue), self.members.get_mut(id))
        else {
            return;
        };
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
                    key <= self.queue_standing(queue, now),
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
                let place = self.member_standing(member, now);
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
