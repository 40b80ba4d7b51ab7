//! Limits of accounts and queues: the number of their jobs on hosts, and the accounts that go last. Part of [`Ledger`].
//!
//! Jobs that other replicas dispatched count when this one hears of them. So the replicas of a lab together may exceed
//! a limit by the dispatches of that time.

use crate::explain::{Limited, Reason};
use crate::ids::{MemberId, Owner};
use crate::interner::Atom;
use crate::ledger::limited::LimitedAccount;
use crate::ledger::state::{Ledger, Member, Queue, queue_admits};
use crate::policy::Allowance;
use std::collections::BTreeSet;

impl Ledger {
    /// Returns true if a queue goes behind others of its class: by its own limits, or by those of its account.
    pub(crate) fn is_queue_behind(&self, queue: &Queue) -> bool {
        let own = self.limited.get(&queue.name);
        queue.allowance.is_behind(queue.tally.held()) || own.is_some_and(LimitedAccount::is_behind)
    }

    /// Returns true if an account goes behind others of its queue.
    pub(crate) fn is_member_behind(&self, member: &Member) -> bool {
        self.limits_of(member)
            .is_some_and(LimitedAccount::is_behind)
    }

    /// Returns true if the limits of an account let another job of it begin.
    pub(crate) fn member_admits(&self, member: &Member) -> bool {
        self.limits_of(member).is_none_or(LimitedAccount::admits)
    }

    /// Returns true if a queue takes its turn by its weight, because no limit is reached.
    pub(crate) fn is_unlimited(&self, queue: &Queue) -> bool {
        let own = self.limited.get(&queue.name);
        queue_admits(queue)
            && own.is_none_or(LimitedAccount::admits)
            && !self.is_queue_behind(queue)
    }

    fn limits_of(&self, member: &Member) -> Option<&LimitedAccount> {
        self.limited.get(&member.account)
    }

    /// Adds a new place of an account, or of a label of it, in a queue.
    pub(crate) fn limit_member(&mut self, owner: Owner) {
        let account = self.members.get(owner.member).map(|member| &member.account);
        if let Some(limited) = account.and_then(|name| self.limited.get_mut(name)) {
            limited.owners.insert(owner);
        }
    }

    /// Counts more or fewer jobs of an account in flight or on hosts.
    pub(crate) fn count_held(&mut self, id: MemberId, before: u64, after: u64) {
        let account = self.members.get(id).map(|member| &member.account);
        if let Some(limited) = account.and_then(|name| self.limited.get_mut(name)) {
            limited.held = limited.held.saturating_add(after).saturating_sub(before);
        }
    }

    /// Notes anew the places of all owners that this owner's number of jobs on hosts may move.
    pub(crate) fn note_held(&mut self, owner: Owner, now: u64) {
        self.note(owner, now);
        let member = self.members.get(owner.member);
        let Some(limited) = member.and_then(|member| self.limits_of(member)) else {
            return;
        };
        let owners: Vec<Owner> = limited.owners.iter().copied().collect();
        for owner in owners {
            self.note(owner, now);
        }
    }

    /// Returns the members whose jobs may begin again after a job of this owner has left its host.
    pub(crate) fn admitted_anew(&self, owner: Owner) -> Vec<MemberId> {
        let mut anew = Vec::new();
        let queue = self.queues.get(owner.queue);
        if let Some(queue) = queue.filter(|queue| queue.allowance.was_full(queue.tally.held())) {
            anew.extend(queue.members.values());
        }
        let member = self.members.get(owner.member);
        if let Some(limited) = member.and_then(|member| self.limits_of(member))
            && limited.allowance.was_full(limited.held)
        {
            anew.extend(limited.owners.iter().map(|owner| owner.member));
        }
        anew
    }

    /// Applies the limits of the present policy.
    pub(crate) fn set_limits(&mut self) {
        let Self {
            queues,
            members,
            limited,
            policy,
            ..
        } = self;
        limited.clear();
        for (id, queue) in queues {
            let allowance = policy.queue_limits.get(&*queue.name);
            queue.allowance = allowance.copied().unwrap_or_default();
            for member in queue.members.values() {
                let Some(known) = members.get(*member) else {
                    continue;
                };
                let Some(allowance) = policy.account_limits.get(&*known.account) else {
                    continue;
                };
                let account = limited.entry(Atom::clone(&known.account)).or_default();
                account.allowance = *allowance;
                account.held = account.held.saturating_add(known.tally.held());
                account.owners.insert(Owner {
                    queue: id,
                    member: *member,
                });
            }
        }
        // Those that have had no jobs yet.
        for (name, allowance) in &policy.account_limits {
            let account = limited.entry(Atom::from(name.as_str())).or_default();
            account.allowance = *allowance;
        }
    }

    /// Returns the limits that keep jobs of an account in a queue from hosts.
    pub(crate) fn limits_reached(&self, queue: &str, account: &str) -> Vec<Reason> {
        let each = self.limits(queue, account).into_iter();
        let reached = each.filter_map(|(of, held, allowance)| {
            if allowance.spent {
                return Some(Reason::Spent { of });
            }
            let limit = allowance.running_hard.filter(|most| held >= *most)?;
            Some(Reason::RunningLimit { of, held, limit })
        });
        reached.collect()
    }

    /// Returns the soft limits by which such jobs go behind others.
    pub(crate) fn limits_passed(&self, queue: &str, account: &str) -> Vec<Reason> {
        let each = self.limits(queue, account).into_iter();
        let passed = each.filter_map(|(of, held, allowance)| {
            if allowance.behind {
                return Some(Reason::Spent { of });
            }
            let limit = allowance.running_soft.filter(|most| held >= *most)?;
            Some(Reason::RunningLimit { of, held, limit })
        });
        passed.collect()
    }

    fn limits(&self, queue: &str, account: &str) -> Vec<(Limited, u64, Allowance)> {
        let known = self.by_name.get(queue).and_then(|id| self.queues.get(*id));
        let held = known.map_or(0, |queue| queue.tally.held());
        let of_queue = self.policy.queue_limits.get(queue);
        let of_queue =
            of_queue.map(|allowance| (Limited::Queue(queue.to_owned()), held, *allowance));
        let of_account = self.limited.get(account).map(|limited| {
            let name = Limited::Account(account.to_owned());
            (name, limited.held, limited.allowance)
        });
        of_account.into_iter().chain(of_queue).collect()
    }

    /// Panics if a count disagrees with its parts. For tests and simulation.
    pub(crate) fn check_limits(&self) {
        assert!(
            self.limited
                .keys()
                .map(|name| &**name)
                .eq(self.policy.account_limits.keys())
        );
        for (name, limited) in &self.limited {
            let its = self
                .members
                .iter()
                .filter(|(_, member)| member.account == *name);
            let ids: BTreeSet<MemberId> = its.clone().map(|(id, _)| id).collect();
            let known: BTreeSet<MemberId> = limited.owners.iter().map(|o| o.member).collect();
            assert_eq!(ids, known, "where {name} is");
            let held: u64 = its.map(|(_, member)| member.tally.held()).sum();
            assert_eq!(held, limited.held, "jobs of {name}");
        }
    }
}
