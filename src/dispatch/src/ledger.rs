//! Queues, their accounts, and what they are charged: who is next (I4, I5).
//!
//! A queue's virtual time is its charge (share of a host × time × rate) over its weight; inside a class the queue that is least far is next, and
//! inside a queue the account that is least far. A job is charged from its claim with what was learned, from then
//! on with what it really takes. Never knows hosts or shapes.

use crate::atoms::{Atom, Atoms, Fixed, Numbers};
use crate::charges::{Charge, WHOLE};
use crate::event::JobKey;
use crate::idle::{Idle, Waiting};
use crate::labels::place_of;
use crate::learned::{Learned, UNKNOWN_MS};
use crate::limits::{LimitedAccounts, queue_admits};
use crate::meter::{Meter, PRICE_MAX, Pass};
use crate::order::Standing;
use crate::policy::{Allowance, Policy, QueuePolicy};
use indexmap::IndexMap;
use slotmap::{SlotMap, new_key_type};
use std::collections::{BTreeMap, BTreeSet};

new_key_type! {
    /// A queue that is known.
    pub(crate) struct QueueId;
    /// An account in a queue.
    pub(crate) struct MemberId;
    /// An account, over all queues.
    pub(crate) struct AccountId;
}

/// Highest class.
pub(crate) const CLASS_MAX: u8 = 9;

/// Who is charged for a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Owner {
    pub queue: QueueId,
    pub member: MemberId,
}

/// How many jobs there are, by where they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub waiting: u64,
    pub in_flight: u64,
    pub running: u64,
}

impl Tally {
    pub(crate) fn held(self) -> u64 {
        self.in_flight.saturating_add(self.running)
    }

    pub(crate) fn is_idle(self) -> bool {
        self == Self::default()
    }
}

/// One queue.
#[derive(Debug)]
pub(crate) struct Queue {
    pub name: Atom,
    pub policy: QueuePolicy,
    pub allowance: Allowance,
    pub meter: Meter,
    pub tally: Tally,
    /// Its accounts, or the labels of the one whose it is.
    pub members: BTreeMap<Atom, MemberId>,
    /// Those of them that have jobs in flight or on hosts.
    pub holding: BTreeSet<MemberId>,
    /// Virtual time of its largest recent job: no limit on lag may be smaller than one step.
    pub step: Pass,
    /// Where the account stood that was served last.
    pub last: Pass,
    /// Host share × ms, as `flat + rate × now`, in millionths.
    pub busy: (i128, i128),
    /// Accounts with waiting jobs, by lower bounds of their virtual time.
    pub order: BTreeSet<(Standing, MemberId)>,
    /// Its own place in the order of queues.
    pub noted: Option<Standing>,
    /// What it is owed of its share of dispatches, thousandths of one.
    pub credit: u32,
}

impl Queue {
    pub(crate) fn class(&self) -> u8 {
        self.policy.priority.min(CLASS_MAX)
    }

    /// Share of hosts × time that its jobs had until now, ms of a whole host.
    pub(crate) fn busy_ms(&self, now: u64) -> u64 {
        let total = self
            .busy
            .0
            .saturating_add(self.busy.1.saturating_mul(i128::from(now)));
        u64::try_from(total / i128::from(WHOLE)).unwrap_or(0)
    }
}

/// One account in one queue, or one label of it in its own.
#[derive(Debug)]
pub(crate) struct Member {
    pub account: Atom,
    /// Its name among those that take turns in its queue: the account's, or the label's.
    pub turn: Atom,
    /// The account over all queues.
    pub of: AccountId,
    /// Whether it is on the list of those that may be forgotten.
    pub is_listed: bool,
    pub meter: Meter,
    pub tally: Tally,
    /// Its place in the order of its queue.
    pub noted: Option<Standing>,
}

/// The order of queues: where they stand, those that have nothing yet, age.
pub(crate) type QueueRank = (Standing, u64, QueueId);

/// The order of accounts inside a queue.
pub(crate) type MemberRank = (Standing, u64, MemberId);

/// All queues and charges.
#[derive(Debug)]
pub(crate) struct Ledger {
    pub queues: SlotMap<QueueId, Queue>,
    pub members: SlotMap<MemberId, Member>,
    pub by_name: IndexMap<Atom, QueueId, Fixed>,
    /// Queues that have jobs in flight or on hosts.
    pub holding: BTreeSet<QueueId>,
    pub waiting: Waiting,
    pub idle: Idle,
    /// The place in `queues` where the next look for queues that lag too far behind begins.
    pub looked_at: usize,
    /// Queues with waiting jobs, by lower bounds of their virtual time.
    pub order: BTreeSet<(Standing, QueueId)>,
    pub charges: IndexMap<JobKey, Charge, Numbers>,
    pub learned: Learned,
    pub policy: Policy,
    /// Queues that have a share of dispatches.
    pub background: Vec<QueueId>,
    pub limited: LimitedAccounts,
    /// When running jobs will have run for as long as expected.
    pub overruns: BTreeSet<(u64, JobKey)>,
    /// Where the queue stood that was served last, by class.
    pub last: [Pass; CLASS_MAX as usize + 1],
    /// Present virtual time by class, computed at most once an event.
    present: [Option<Pass>; CLASS_MAX as usize + 1],
    lag_max_ms: u64,
}

impl Ledger {
    /// With room for so many queues and as many members: a table that grows later makes one event long.
    pub(crate) fn new(policy: Policy, lag_max_ms: u64, room: usize) -> Self {
        let mut new = Self {
            queues: SlotMap::with_capacity_and_key(room),
            members: SlotMap::with_capacity_and_key(room),
            by_name: IndexMap::default(),
            holding: BTreeSet::new(),
            waiting: Waiting::default(),
            idle: Idle::default(),
            looked_at: 0,
            order: BTreeSet::new(),
            charges: IndexMap::default(),
            learned: Learned::default(),
            policy,
            background: Vec::new(),
            limited: LimitedAccounts::default(),
            overruns: BTreeSet::new(),
            last: [0; CLASS_MAX as usize + 1],
            present: [None; CLASS_MAX as usize + 1],
            lag_max_ms,
        };
        new.set_limits();
        new
    }

    /// Time has passed: jobs that ran for as long as expected are charged by the millisecond from now on.
    pub(crate) fn advance(&mut self, now: u64) {
        self.present = [None; CLASS_MAX as usize + 1];
        while let Some((at, job)) = self.overruns.first().copied().filter(|(at, _)| *at <= now) {
            self.overruns.remove(&(at, job));
            self.retime(job, |charge| charge.overrun = true);
        }
    }

    /// Who is charged for jobs of this stored queue and account, made if they are new.
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

    /// The queue, and inside it who takes turns with others, of this account.
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

    /// Who is charged for jobs of this stored queue and account, if they are known.
    pub(crate) fn known_owner(&self, stored: &str, account: &str) -> Option<Owner> {
        let (queue, turn) = place_of(stored, account);
        let queue = *self.by_name.get(queue)?;
        let member = *self.queues.get(queue)?.members.get(turn)?;
        Some(Owner { queue, member })
    }

    /// The account that is charged.
    pub(crate) fn account(&self, owner: Owner) -> &str {
        let member = self.members.get(owner.member);
        member.map_or("", |member| &member.account)
    }

    fn add_queue(&mut self, name: &Atom, now: u64) -> QueueId {
        let policy = self.policy.queues.get(&**name).copied().unwrap_or_default();
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
        if policy.background_per_mille > 0 {
            self.background.push(id);
        }
        id
    }

    /// Present virtual time of a class: what the least far queue that has jobs both waiting and running has used,
    /// else where the one stood that was served last. Queues that wait for a host nobody has do not hold it back.
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

    /// A job of this owner waits from now on.
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

    /// A job of this owner waits no longer.
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

    /// What a job with this share of a host costs a millisecond in a host group.
    pub(crate) fn price(&self, share: u64, group: &str) -> i128 {
        let rate = self.policy.group_rates.get(group).copied().unwrap_or(1_000);
        i128::from(share)
            .saturating_mul(i128::from(rate))
            .min(PRICE_MAX)
    }

    /// How long a job of this suite will take on this group, as far as is known, ms.
    pub(crate) fn expect_ms(&self, suite: &str, group: &str) -> u64 {
        self.learned.expect_ms(suite, group).unwrap_or(UNKNOWN_MS)
    }

    /// Where a queue stands in the order of all, unless it is paused or at a limit.
    pub(crate) fn queue_rank(&self, id: QueueId, now: u64) -> Option<QueueRank> {
        let queue = self.queues.get(id).filter(|queue| !queue.policy.paused)?;
        queue_admits(queue).then(|| (self.queue_standing(queue, now), queue.tally.held(), id))
    }

    /// Where an account stands in the order of its queue, unless it is at a limit.
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

    /// New policies act from now on; what was charged stays. Answers who may have jobs
    /// dispatched that could not before.
    pub(crate) fn set_policy(&mut self, policy: Policy, now: u64) -> Vec<MemberId> {
        let held_back: Vec<Owner> = self.owners().filter(|o| !self.may_begin(*o)).collect();
        let before: Vec<Pass> = (0..=CLASS_MAX)
            .map(|class| self.present(class, now))
            .collect();
        let time_of = |class: u8| before.get(usize::from(class)).copied().unwrap_or(0);
        for queue in self.queues.values_mut() {
            let new = policy.queues.get(&*queue.name).copied().unwrap_or_default();
            if new.weight != queue.policy.weight {
                queue.meter.reweigh(new.weight, now);
            }
            let from = queue.class();
            queue.policy = new;
            if queue.class() != from {
                // How far it is ahead of or behind its class stays.
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

    fn owners(&self) -> impl Iterator<Item = Owner> {
        let queues = self.queues.iter();
        queues.flat_map(|(id, queue)| {
            let members = queue.members.values();
            members.map(move |member| Owner {
                queue: id,
                member: *member,
            })
        })
    }

    /// Whether another job of this owner may begin, some host given.
    pub(crate) fn may_begin(&self, owner: Owner) -> bool {
        let queue = self.queues.get(owner.queue);
        let member = self.members.get(owner.member);
        queue.is_some_and(|queue| !queue.policy.paused && queue_admits(queue))
            && member.is_none_or(|member| self.member_admits(member))
    }

    /// How far a queue is ahead of its class, ms of a whole host at weight 1 and the normal rate.
    pub(crate) fn lag_ms(&self, queue: &Queue, now: u64) -> i64 {
        let present = self.least_of(queue.class(), now);
        let unit = Meter::new(1, 0).cost(i128::from(WHOLE) * 1_000).max(1);
        let lag = queue.meter.pass(now).saturating_sub(present) / unit;
        i64::try_from(lag).unwrap_or(if lag < 0 { i64::MIN } else { i64::MAX })
    }
}

/// Keeps the list of who has jobs in flight or on hosts.
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
