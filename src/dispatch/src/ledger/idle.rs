//! Forgets unused names, and counts the waiting jobs of each account. Part of [`Ledger`].
//!
//! Anybody can invent names, so memory by name is bounded (I7). Accounts in queues without waiting or running jobs are
//! forgotten, a few per event, longest idle first. Accounts that owe time are kept as long as there is room.

use crate::ids::{CLASS_MAX, MemberId, Owner};
use crate::ledger::state::Ledger;
use crate::meter::Pass;
use std::collections::{BTreeMap, BTreeSet};

/// Number of idle accounts in queues that are kept. Beyond it, those without debt are forgotten, and beyond twice as
/// many also those with debt.
pub(crate) const IDLE_MAX: usize = 10_000;

/// Idle accounts looked at in one event. More are looked at only beyond twice [`IDLE_MAX`].
const IDLE_LOOKED_AT: usize = 512;

/// Consecutive idle accounts with debt that are looked at before the rest is left to the next event.
const IN_DEBT_LOOKED_AT: usize = 16;

/// Queues checked for too much lag in one tidying. Beyond it, the queues take turns.
const LAGS_LOOKED_AT: usize = 4_096;

impl Ledger {
    /// Lists an owner without waiting or running jobs as idle.
    pub(crate) fn list_idle(&mut self, owner: Owner) {
        let member = self.members.get_mut(owner.member);
        if let Some(member) = member.filter(|member| !member.is_listed) {
            member.is_listed = true;
            self.idle.push_back(owner);
        }
    }

    /// Forgets idle owners beyond the number that is kept.
    pub(crate) fn forget_idle(&mut self, now: u64) {
        let mut in_debt = 0;
        let mut looked_at = 0;
        while self.idle.len() > IDLE_MAX && in_debt < IN_DEBT_LOOKED_AT {
            let is_full = self.idle.len() > 2 * IDLE_MAX;
            looked_at += 1;
            if looked_at > IDLE_LOOKED_AT && !is_full {
                return;
            }
            let Some(owner) = self.idle.pop_front() else {
                return;
            };
            let Some(member) = self.members.get_mut(owner.member) else {
                continue;
            };
            member.is_listed = false;
            if !member.tally.is_idle() {
                continue;
            }
            if !is_full && self.owes(owner, now) {
                in_debt += 1;
                self.list_idle(owner);
            } else {
                self.forget(owner);
            }
        }
    }

    /// Returns true if an idle owner has had more than others: its account in its queue, or its queue.
    fn owes(&mut self, owner: Owner, now: u64) -> bool {
        let Some(queue) = self.queues.get(owner.queue) else {
            return false;
        };
        let (class, pass) = (queue.class(), queue.meter.pass(now));
        let is_last = queue.members.len() <= 1 && queue.tally.is_idle();
        if is_last && pass > self.present(class, now) {
            return true;
        }
        let member = self.members.get(owner.member);
        let pass = member.map_or(Pass::MIN, |member| member.meter.pass(now));
        pass > self.present_in(owner.queue, now)
    }

    fn forget(&mut self, owner: Owner) {
        let Some(member) = self.members.remove(owner.member) else {
            return;
        };
        self.waiting.leave(&member.account, member.of);
        if let Some(limited) = self.limited.get_mut(&member.account) {
            limited.leave(owner);
        }
        let Some(queue) = self.queues.get_mut(owner.queue) else {
            return;
        };
        queue.members.remove(&member.turn);
        if !queue.members.is_empty() || !queue.tally.is_idle() {
            return;
        }
        if let Some(queue) = self.queues.remove(owner.queue) {
            self.by_name.swap_remove(&queue.name);
            self.background.retain(|id| *id != owner.queue);
        }
    }

    /// Limits the lag of waiting queues and accounts. Called once a second.
    pub(crate) fn tidy(&mut self, now: u64) {
        let lag = self.lag_charge();
        let mut of_class = [(0, 0); CLASS_MAX as usize + 1];
        for (class, of_class) in (0..=CLASS_MAX).zip(&mut of_class) {
            of_class.0 = self.present(class, now);
        }
        for queue in self.holding.iter().filter_map(|id| self.queues.get(*id)) {
            if let Some((_, step)) = of_class.get_mut(usize::from(queue.class())) {
                *step = queue.step.max(*step);
            }
        }
        let known = self.by_name.len();
        for _ in 0..known.min(LAGS_LOOKED_AT) {
            self.looked_at = (self.looked_at + 1) % known;
            let id = self.by_name.get_index(self.looked_at).map(|(_, id)| *id);
            let queue = id.and_then(|id| self.queues.get_mut(id));
            let Some(queue) = queue.filter(|queue| queue.tally.waiting > 0) else {
                continue;
            };
            let of_class = of_class.get(usize::from(queue.class()));
            let (present, step) = of_class.copied().unwrap_or_default();
            let limit = queue
                .meter
                .cost(lag)
                .saturating_add(step)
                .saturating_add(queue.step);
            let floor = present.saturating_sub(limit);
            if queue.meter.pass(now) < floor {
                queue.meter.move_to(floor, now);
            }
        }
    }

    /// Panics if a sum disagrees with its parts. For tests and simulation.
    pub(crate) fn check_idle(&self) {
        let listed = self.members.values().filter(|member| member.is_listed);
        assert_eq!(listed.count(), self.idle.len());
        let mut sums: BTreeMap<&str, (u64, u32)> = BTreeMap::new();
        for member in self.members.values() {
            assert!(
                member.is_listed || !member.tally.is_idle(),
                "{} is idle and is never forgotten",
                member.account
            );
            let (waiting, queues) = sums.entry(&*member.account).or_default();
            (*waiting, *queues) = (*waiting + member.tally.waiting, *queues + 1);
        }
        assert_eq!(sums.len(), self.waiting.len());
        for (name, sum) in sums {
            let id = self.waiting.by_name.get(name);
            let account = id.and_then(|id| self.waiting.accounts.get(*id));
            assert_eq!(
                account.map(|of| (of.waiting, of.queues)),
                Some(sum),
                "{name}"
            );
        }
        let waiting = self.waiting.accounts.values();
        let waiting = waiting.filter(|account| account.waiting > 0);
        assert_eq!(waiting.count(), self.waiting.count);
        let holding = self
            .queues
            .iter()
            .filter(|(_, queue)| queue.tally.held() > 0);
        let holding: BTreeSet<_> = holding.map(|(id, _)| id).collect();
        assert_eq!(holding, self.holding);
        for queue in self.queues.values() {
            let holds = |id: &MemberId| {
                let member = self.members.get(*id);
                member.is_some_and(|member| member.tally.held() > 0)
            };
            let members = queue.members.values().copied();
            let holding: BTreeSet<_> = members.filter(holds).collect();
            assert_eq!(holding, queue.holding);
        }
    }
}
