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

/// Number of jobs by state.
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
    /// Its accounts, or the labels of its account.
    pub members: BTreeMap<Atom, MemberId>,
    /// Its members that have jobs in flight or on hosts.
    pub holding: BTreeSet<MemberId>,
    /// Virtual time of its largest recent job. A limit on lag is at least one such step.
    pub step: Pass,
    /// Virtual time of the account that was served last.
    pub last: Pass,
    /// Host share × ms, as `flat + rate × now`, in millionths.
    pub busy: (i128, i128),
    /// Accounts with waiting jobs, by lower bounds of their virtual time.
    pub order: BTreeSet<(Standing, MemberId)>,
    /// Its own place in the order of queues.
    pub noted: Option<Standing>,
    /// Credit of its share of dispatches, in thousandths of a dispatch.
    pub credit: u32,
}

impl Queue {
    pub(crate) fn class(&self) -> u8 {
        self.policy.priority.min(CLASS_MAX)
    }

    /// Returns the share of hosts × time that its jobs had until now, ms of a whole host.
    pub(crate) fn busy_ms(&self, now: u64) -> u64 {
        let total = self
            .busy
            .0
            .saturating_add(self.busy.1.saturating_mul(i128::from(now)));
        u64::try_from(total / i128::from(WHOLE)).unwrap_or(0)
    }
}

/// Returns true if the limits of a queue let another job of it begin.
pub(crate) fn queue_admits(queue: &Queue) -> bool {
    queue.allowance.admits(queue.tally.held())
}

/// One account in one queue, or one label in the queue of its account.
#[derive(Debug)]
pub(crate) struct Member {
    pub account: Atom,
    /// Its name in its queue: the account's, or the label's.
    pub turn: Atom,
    /// The account over all queues.
    pub of: AccountId,
    /// True if it is on the list of idle owners.
    pub is_listed: bool,
    pub meter: Meter,
    pub tally: Tally,
    /// Its place in the order of its queue.
    pub noted: Option<Standing>,
}

/// Order of queues: standing, jobs on hosts, age.
pub(crate) type QueueRank = (Standing, u64, QueueId);

/// Order of accounts inside a queue.
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
    /// Index in `queues` where the next check for too much lag begins.
    pub looked_at: usize,
    /// Queues with waiting jobs, by lower bounds of their virtual time.
    pub order: BTreeSet<(Standing, QueueId)>,
    pub charges: IndexMap<JobKey, Charge, Numbers>,
    pub run_times: RunTimes,
    pub policy: Policy,
    /// Queues that have a share of dispatches.
    pub background: Vec<QueueId>,
    pub limited: LimitedAccounts,
    /// Times at which running jobs will have run for as long as expected.
    pub overruns: BTreeSet<(u64, JobKey)>,
    /// Virtual time of the queue that was served last, by class.
    pub last: [Pass; CLASS_MAX as usize + 1],
    /// Present virtual time by class, computed at most once an event.
    pub present: [Option<Pass>; CLASS_MAX as usize + 1],
    pub lag_max_ms: u64,
}

impl Ledger {
    /// Creates a ledger with room for this many queues and members. A table that grows later makes one event long.
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
