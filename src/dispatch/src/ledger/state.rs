//! State of the ledger: queues and their accounts.

use crate::ids::{AccountId, CLASS_MAX, JobKey, MemberId, QueueId};
use crate::interner::{Atom, Fixed, Numbers};
use crate::ledger::charge::{Charge, WHOLE};
use crate::ledger::idle_names::{Idle, Waiting};
use crate::ledger::limited::LimitedAccounts;
use crate::meter::{Meter, Pass};
use crate::order::Standing;
use crate::policy::{Allowance, Policy, QueuePolicy};
use crate::run_times::RunTimes;
use indexmap::IndexMap;
use slotmap::SlotMap;
use std::collections::{BTreeMap, BTreeSet};

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

/// Whether the limits of a queue let another job of it begin.
pub(crate) fn queue_admits(queue: &Queue) -> bool {
    queue.allowance.admits(queue.tally.held())
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
    pub run_times: RunTimes,
    pub policy: Policy,
    /// Queues that have a share of dispatches.
    pub background: Vec<QueueId>,
    pub limited: LimitedAccounts,
    /// When running jobs will have run for as long as expected.
    pub overruns: BTreeSet<(u64, JobKey)>,
    /// Where the queue stood that was served last, by class.
    pub last: [Pass; CLASS_MAX as usize + 1],
    /// Present virtual time by class, computed at most once an event.
    pub present: [Option<Pass>; CLASS_MAX as usize + 1],
    pub lag_max_ms: u64,
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
            run_times: RunTimes::default(),
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
}
