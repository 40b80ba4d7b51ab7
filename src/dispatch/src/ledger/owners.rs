//! Owners of charges: queues and the accounts in them, created on first use. Part of [`Ledger`].

use crate::ids::{CLASS_MAX, MemberId, Owner, QueueId};
use crate::interner::{Atom, Atoms};
use crate::labels::{SLOTS, is_label, place_of, queue_of, slots_of};
use crate::ledger::state::{Ledger, Member, Queue, Tally};
use crate::meter::Meter;
use std::collections::{BTreeMap, BTreeSet};

impl Ledger {
    /// Returns the owner of jobs of this stored queue and account. Creates it if it is new.
    pub(crate) fn owner_of(
        &mut self,
        atoms: &mut Atoms,
        (stored, account): (&str, &str),
        now: u64,
    ) -> Owner {
        let (queue, turn) = place_of(stored, account);
        let names = [queue, turn, account].map(|name| atoms.get(name));
        self.owner(&names, now)
    }

    /// Returns the queue and its member of this account. Creates them if they are new.
    fn owner(&mut self, [queue, turn, account]: &[Atom; 3], now: u64) -> Owner {
        let queue_id = self
            .by_name
            .get(queue)
            .copied()
            .unwrap_or_else(|| self.add_queue(queue, now));
        let known = self
            .queues
            .get(queue_id)
            .and_then(|queue| queue.members.get(turn))
            .copied();
        let member = known.unwrap_or_else(|| {
            let at = self.present_in(queue_id, now);
            let of = self.waiting.join(account);
            let member = self.members.insert(Member {
                account: Atom::clone(account),
                turn: Atom::clone(turn),
                of,
                is_listed: false,
                meter: Meter::new(1, at),
                tally: Tally::default(),
                noted: None,
            });
            if let Some(queue) = self.queues.get_mut(queue_id) {
                queue.members.insert(Atom::clone(turn), member);
            }
            self.limit_member(Owner {
                queue: queue_id,
                member,
            });
            member
        });
        Owner {
            queue: queue_id,
            member,
        }
    }

    /// Returns the owner of jobs of this stored queue and account, if it is known.
    pub(crate) fn known_owner(&self, stored: &str, account: &str) -> Option<Owner> {
        let (queue, turn) = place_of(stored, account);
        let queue = *self.by_name.get(queue)?;
        let member = *self.queues.get(queue)?.members.get(turn)?;
        Some(Owner { queue, member })
    }

    /// Returns the account that is charged.
    pub(crate) fn account(&self, owner: Owner) -> &str {
        let member = self.members.get(owner.member);
        member.map_or("", |member| &member.account)
    }

    fn add_queue(&mut self, name: &Atom, now: u64) -> QueueId {
        let policy = self.policy.of_queue(name);
        let allowance = self.policy.queue_limits.get(&**name);
        let allowance = allowance.copied().unwrap_or_default();
        let at = self.present(policy.priority.min(CLASS_MAX), now);
        let id = self.queues.insert(Queue {
            name: Atom::clone(name),
            policy,
            allowance,
            meter: Meter::new(policy.weight, at),
            tally: Tally::default(),
            members: BTreeMap::new(),
            holding: BTreeSet::new(),
            step: 0,
            last: 0,
            busy: (0, 0),
            order: BTreeSet::new(),
            noted: None,
            credit: 0,
        });
        self.by_name.insert(Atom::clone(name), id);
        if policy.background_permille > 0 {
            self.background.push(id);
        }
        id
    }

    pub(crate) fn owners(&self) -> impl Iterator<Item = Owner> {
        let queues = self.queues.iter();
        queues.flat_map(|(id, queue)| {
            let members = queue.members.values();
            members.map(move |member| Owner {
                queue: id,
                member: *member,
            })
        })
    }

    /// Returns the number of jobs of this stored queue in memory. A label counts its own jobs, a queue those without
    /// a label.
    pub(crate) fn waiting_in(&self, stored: &str) -> u64 {
        let Some(queue) = self.by_name.get(queue_of(stored)) else {
            return 0;
        };
        let Some(queue) = self.queues.get(*queue) else {
            return 0;
        };
        let waiting = |id: &MemberId| self.members.get(*id).map_or(0, |one| one.tally.waiting);
        let of = |name: &str| queue.members.get(name).map_or(0, waiting);
        if is_label(stored) {
            return of(stored);
        }
        // The smaller set is walked, because each queue is looked at with each count.
        let labelled: u64 = if queue.members.len() <= usize::from(SLOTS) {
            let labels = queue.members.iter().filter(|(turn, _)| is_label(turn));
            labels.map(|(_, id)| waiting(id)).sum()
        } else {
            slots_of(stored).map(|slot| of(&slot)).sum()
        };
        queue.tally.waiting.saturating_sub(labelled)
    }
}
