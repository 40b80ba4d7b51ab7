//! Policy of admins (queues, weights, rates), and the engine's own limits.

use std::collections::BTreeMap;

/// How one queue is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuePolicy {
    /// Class, 0 to 9: a higher class is always served first. Default 3; `vip` 9, `idle` 1.
    pub priority: u8,
    /// Share inside the class, 1 to 10,000. Default 10.
    pub weight: u32,
    /// Whether nothing of it is dispatched for now. Default false.
    pub paused: bool,
    /// Of the dispatches to hosts that could run a job of it, those that are kept for it whatever waits in higher
    /// classes, in thousandths, 0 to 1,000. Default 0.
    pub background_permille: u16,
}

impl Default for QueuePolicy {
    fn default() -> Self {
        Self {
            priority: 3,
            weight: 10,
            paused: false,
            background_permille: 0,
        }
    }
}

/// What admins allow an account or a queue; by default as much as there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Allowance {
    /// With so many jobs on hosts it goes behind others of its class.
    pub running_soft: Option<u64>,
    /// With so many jobs on hosts no other of it is dispatched.
    pub running_hard: Option<u64>,
    /// It goes behind others of its class for now, whatever is on hosts.
    pub behind: bool,
    /// Nothing of it is dispatched for now, whatever is on hosts.
    pub spent: bool,
}

impl Allowance {
    pub(crate) fn admits(self, held: u64) -> bool {
        !self.spent && self.running_hard.is_none_or(|most| held < most)
    }

    pub(crate) fn is_behind(self, held: u64) -> bool {
        self.behind || self.running_soft.is_some_and(|most| held >= most)
    }

    /// Whether one job more was all that it admits.
    pub(crate) fn was_full(self, held: u64) -> bool {
        self.admits(held) && !self.admits(held.saturating_add(1))
    }
}

/// Everything that admins set and that may change at any time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Whether nothing at all is dispatched.
    pub paused: bool,
    /// Named queues; a queue that is not here has the default policy.
    pub queues: BTreeMap<String, QueuePolicy>,
    /// Price of a host group in thousandths of the normal; groups not named cost 1000.
    pub group_rates: BTreeMap<String, u32>,
    /// Limits of accounts, over all queues.
    pub account_limits: BTreeMap<String, Allowance>,
    /// Limits of queues, over all accounts.
    pub queue_limits: BTreeMap<String, Allowance>,
}

impl Policy {
    /// The policy of a queue: paused if the whole lab is.
    pub(crate) fn of_queue(&self, name: &str) -> QueuePolicy {
        let policy = self.queues.get(name).copied().unwrap_or_default();
        QueuePolicy {
            paused: policy.paused || self.paused,
            ..policy
        }
    }
}

impl Default for Policy {
    /// The queues every site has: `vip` in class 9 and `idle` in class 1.
    fn default() -> Self {
        let named = |priority| QueuePolicy {
            priority,
            ..QueuePolicy::default()
        };
        Self {
            paused: false,
            queues: BTreeMap::from([("vip".to_owned(), named(9)), ("idle".to_owned(), named(1))]),
            group_rates: BTreeMap::new(),
            account_limits: BTreeMap::new(),
            queue_limits: BTreeMap::new(),
        }
    }
}

/// Waiting jobs that are kept in memory unless told otherwise: a pull of 300 accounts' jobs is worth its search then, and a
/// replica takes less than 150 MB.
pub const CACHE_JOBS: u32 = 30_000;

/// The engine's limits. Units are in the names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineConfig {
    /// Most waiting jobs kept in memory, at least 64. Default [`CACHE_JOBS`].
    pub cache_jobs_max: u32,
    /// How far a queue's virtual time may lag behind or run ahead, ms of a whole host. Default 1 h.
    pub lag_max_ms: u64,
    /// How long a job waits at most for a host that holds its cache directories, ms. Default 2,000; 0: not at all.
    pub affinity_wait_ms: u64,
    /// After this long at the head of its class a job reserves a host, ms; after half of its expected run time (at most
    /// 8 h), if that is longer. Default 15 min; 0: never.
    pub reserve_after_ms: u64,
    /// Most finds begun a second. Default 20.
    pub finds_per_second_max: u32,
    /// Most pulls in flight. Default 16.
    pub pulls_in_flight_max: u32,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            cache_jobs_max: CACHE_JOBS,
            lag_max_ms: 3_600_000,
            affinity_wait_ms: 2_000,
            reserve_after_ms: 900_000,
            finds_per_second_max: 20,
            pulls_in_flight_max: 16,
        }
    }
}
