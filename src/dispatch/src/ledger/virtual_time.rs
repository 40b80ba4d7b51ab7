//! Virtual time of queues and accounts: decides who is next (I4, I5). Part of [`Ledger`].
//!
//! A queue's virtual time is its charge (share of a host × time × rate) over its weight. Inside a class, the queue with
//! the least virtual time is next. Inside a queue, it is the account with the least. A job is charged with the expected
//! duration from its claim, and with the real one later. Knows no hosts or shapes.

use crate::ids::{CLASS_MAX, MemberId, Owner, QueueId};
use crate::ledger::charge::WHOLE;
use crate::ledger::state::{Ledger, Member, MemberRank, Queue, QueueRank, Tally, queue_admits};
use crate::meter::{Meter, PRICE_MAX, Pass};
use crate::order::Standing;
use crate::policy::Policy;
use crate::run_times::{JobKind, UNKNOWN_MS};
use std::collections::BTreeSet;

impl Ledger {
    /// Advances the time. Jobs that ran for as long as expected are charged by the millisecond from now on.
    pub(crate) fn advance(&mut self, now: u64) {
        self.present = [None; CLASS_MAX as usize + 1];
        while let Some((at, job)) = self.overruns.first().copied().filter(|(at, _)| *at <= now) {
            self.overruns.remove(&(at, job));
            self.retime(job, |charge| charge.overrun = true);
        }
    }

    /// Returns the present virtual time of a class. It is the least virtual time of its queues that have jobs both
    /// waiting and running. Without such a queue it is the time of the queue that was served last. Queues that wait
    /// for a missing host do not hold it back.
    pub(crate) fn present(&mut self, class: u8, now: u64) -> Pass {
        let at = usize::from(class.min(CLASS_MAX));
        if let Some(pass) = self.present.get(at).copied().flatten() {
            return pass;
        }
        let pass = self.least_of(class, now);
        if let Some(slot) = self.present.get_mut(at) {
            *slot = Some(pass);
        }
        pass
    }

    fn least_of(&self, class: u8, now: u64) -> Pass {
        let holding = self.holding.iter().filter_map(|id| self.queues.get(*id));
        let active = holding
            .filter(|queue| queue.class() == class && is_active(queue.tally))
            .filter(|queue| self.is_unlimited(queue));
        let least = active.map(|queue| queue.meter.reached(now)).min();
        let last = || self.last.get(usize::from(class)).copied();
        least.or_else(last).unwrap_or(0)
    }

    pub(crate) fn present_in(&self, queue: QueueId, now: u64) -> Pass {
        let Some(queue) = self.queues.get(queue) else {
            return 0;
        };
        let members = queue.holding.iter();
        let members = members.filter_map(|id| self.members.get(*id));
        let takes_turns = |m: &&Member| self.member_admits(m) && !self.is_member_behind(m);
        let active = members
            .filter(|member| is_active(member.tally))
            .filter(takes_turns)
            .map(|member| member.meter.reached(now));
        active.min().unwrap_or(queue.last)
    }

    /// Counts a new waiting job of this owner.
    pub(crate) fn job_waits(&mut self, owner: Owner, now: u64) {
        let queue_joins = self
            .queues
            .get(owner.queue)
            .is_some_and(|queue| queue.tally.waiting == 0);
        if queue_joins {
            self.join_class(owner.queue, now);
        }
        let joins = self
            .members
            .get(owner.member)
            .is_some_and(|member| member.tally.waiting == 0);
        if joins {
            self.join_queue(owner, now);
        }
        self.tally(owner, |tally| {
            tally.waiting = tally.waiting.saturating_add(1);
        });
        if joins {
            self.note(owner, now);
        }
    }

    /// Removes a waiting job of this owner from the counts.
    pub(crate) fn job_waits_no_more(&mut self, owner: Owner, now: u64) {
        self.tally(owner, |tally| {
            tally.waiting = tally.waiting.saturating_sub(1);
        });
        if self
            .members
            .get(owner.member)
            .is_some_and(|member| member.tally.waiting == 0)
        {
            self.note(owner, now);
        }
    }

    fn join_class(&mut self, id: QueueId, now: u64) {
        let Some(class) = self.queues.get(id).map(Queue::class) else {
            return;
        };
        let present = self.present(class, now);
        let lag = self.lag_charge();
        let Some(queue) = self.queues.get_mut(id) else {
            return;
        };
        let ahead_max = present
            .saturating_add(queue.meter.cost(lag))
            .saturating_add(queue.step);
        let own = queue.meter.pass(now);
        queue
            .meter
            .move_to(own.clamp(present, ahead_max.max(present)), now);
    }

    fn join_queue(&mut self, owner: Owner, now: u64) {
        // One account in its own queue has nobody to be compared with.
        if self
            .queues
            .get(owner.queue)
            .is_none_or(|queue| queue.members.len() < 2)
        {
            return;
        }
        let present = self.present_in(owner.queue, now);
        let lag = self.lag_charge();
        let Some(member) = self.members.get_mut(owner.member) else {
            return;
        };
        let own = member.meter.pass(now);
        let ahead_max = present.saturating_add(member.meter.cost(lag));
        member
            .meter
            .move_to(own.clamp(present, ahead_max.max(present)), now);
    }

    pub(crate) fn lag_charge(&self) -> i128 {
        // A thousand thousandths: the normal rate.
        i128::from(self.lag_max_ms).saturating_mul(i128::from(WHOLE) * 1_000)
    }

    pub(crate) fn tally(&mut self, owner: Owner, change: impl Fn(&mut Tally)) {
        if let Some(queue) = self.queues.get_mut(owner.queue) {
            let before = queue.tally.held();
            change(&mut queue.tally);
            let after = queue.tally.held();
            hold(&mut self.holding, owner.queue, before, after);
        }
        let Some(member) = self.members.get_mut(owner.member) else {
            return;
        };
        let before = member.tally;
        change(&mut member.tally);
        let after = member.tally;
        self.waiting.count(member.of, before.waiting, after.waiting);
        if before.held() != after.held() {
            if let Some(queue) = self.queues.get_mut(owner.queue) {
                hold(
                    &mut queue.holding,
                    owner.member,
                    before.held(),
                    after.held(),
                );
            }
            self.count_held(owner.member, before.held(), after.held());
        }
        if after.is_idle() {
            self.list_idle(owner);
        }
    }

    /// Returns the price per millisecond of a job with this share of a host in a host group.
    pub(crate) fn price(&self, share: u64, group: &str) -> i128 {
        let rate = self.policy.group_rates.get(group).copied().unwrap_or(1_000);
        i128::from(share)
            .saturating_mul(i128::from(rate))
            .min(PRICE_MAX)
    }

    /// Returns the expected run time of a job of this kind, ms.
    pub(crate) fn expect_ms(&self, kind: JobKind<'_>) -> u64 {
        self.run_times.expect_ms(kind).unwrap_or(UNKNOWN_MS)
    }

    /// Returns the rank of a queue among all. `None`: it is paused or at a limit.
    pub(crate) fn queue_rank(&self, id: QueueId, now: u64) -> Option<QueueRank> {
        let queue = self.queues.get(id).filter(|queue| !queue.policy.paused)?;
        queue_admits(queue).then(|| (self.queue_standing(queue, now), queue.tally.held(), id))
    }

    /// Returns the rank of an account in its queue. `None`: it is at a limit.
    pub(crate) fn member_rank(&self, id: MemberId, now: u64) -> Option<MemberRank> {
        let member = self.members.get(id)?;
        self.member_admits(member)
            .then(|| (self.member_standing(member, now), member.tally.held(), id))
    }

    pub(crate) fn queue_standing(&self, queue: &Queue, now: u64) -> Standing {
        let behind = self.is_queue_behind(queue);
        Standing::new(queue.class(), behind, queue.meter.pass(now))
    }

    pub(crate) fn member_standing(&self, member: &Member, now: u64) -> Standing {
        // All in one class: that of their queue.
        let behind = self.is_member_behind(member);
        Standing::new(CLASS_MAX, behind, member.meter.pass(now))
    }

    /// Applies a new policy from now on. Past charges stay. Returns the members whose jobs may be dispatched now and
    /// could not before.
    pub(crate) fn set_policy(&mut self, policy: Policy, now: u64) -> Vec<MemberId> {
        let held_back: Vec<Owner> = self.owners().filter(|o| !self.may_begin(*o)).collect();
        let before: Vec<Pass> = (0..=CLASS_MAX)
            .map(|class| self.present(class, now))
            .collect();
        let time_of = |class: u8| before.get(usize::from(class)).copied().unwrap_or(0);
        for queue in self.queues.values_mut() {
            let new = policy.of_queue(&queue.name);
            if new.weight != queue.policy.weight {
                queue.meter.reweigh(new.weight, now);
            }
            let from = queue.class();
            queue.policy = new;
            if queue.class() != from {
                // Its lead over its class, or its lag, stays.
                let ahead = queue.meter.pass(now).saturating_sub(time_of(from));
                queue
                    .meter
                    .move_to(time_of(queue.class()).saturating_add(ahead), now);
            }
        }
        self.policy = policy;
        self.list_background();
        self.set_limits();
        for owner in self.owners().collect::<Vec<_>>() {
            self.note(owner, now);
        }
        self.present = [None; CLASS_MAX as usize + 1];
        let resumed = held_back.into_iter().filter(|o| self.may_begin(*o));
        resumed.map(|owner| owner.member).collect()
    }

    /// Returns true if another job of this owner may begin on some host.
    pub(crate) fn may_begin(&self, owner: Owner) -> bool {
        let queue = self.queues.get(owner.queue);
        let member = self.members.get(owner.member);
        queue.is_some_and(|queue| !queue.policy.paused && queue_admits(queue))
            && member.is_none_or(|member| self.member_admits(member))
    }

    /// Returns the lead of a queue over its class, ms of a whole host at weight 1 and the normal rate.
    pub(crate) fn lag_ms(&self, queue: &Queue, now: u64) -> i64 {
        let present = self.least_of(queue.class(), now);
        let unit = Meter::new(1, 0).cost(i128::from(WHOLE) * 1_000).max(1);
        let lag = queue.meter.pass(now).saturating_sub(present) / unit;
        i64::try_from(lag).unwrap_or(if lag < 0 { i64::MIN } else { i64::MAX })
    }
}

/// Keeps the list of ids that have jobs in flight or on hosts.
fn hold<I: Ord>(holding: &mut BTreeSet<I>, id: I, before: u64, after: u64) {
    if before == 0 && after > 0 {
        holding.insert(id);
    } else if before > 0 && after == 0 {
        holding.remove(&id);
    }
}

fn is_active(tally: Tally) -> bool {
    tally.waiting > 0 && tally.held() > 0
}
