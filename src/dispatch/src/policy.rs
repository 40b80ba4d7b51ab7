//! Policy of admins (queues, weights, rates), and the engine's own limits.

use std::collections::BTreeMap;

/// Policy of one queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuePolicy {
    /// Class, 0 to 9: a higher class is always served first. Default 3; `vip` 9, `idle` 1.
    pub priority: u8,
    /// Share inside the class, 1 to 10,000. Default 10.
    pub weight: u32,
    /// True if no job of it is dispatched for now.
    pub paused: bool,
    /// Dispatches reserved for this queue while higher classes also wait, per mille of those to hosts that could run
    /// its jobs, 0 to 1,000. Default 0.
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

/// Limits of an account or a queue, set by admins. Default: no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Allowance {
    /// Number of jobs on hosts from which it goes behind others of its class.
    pub running_soft: Option<u64>,
    /// Number of jobs on hosts from which no other job of it is dispatched.
    pub running_hard: Option<u64>,
    /// True if it goes behind others of its class for now, whatever is on hosts.
    pub behind: bool,
    /// True if no job of it is dispatched for now, whatever is on hosts.
    pub spent: bool,
}

impl Allowance {
    pub(crate) fn admits(self, held: u64) -> bool {
        !self.spent && self.running_hard.is_none_or(|most| held < most)
    }

    pub(crate) fn is_behind(self, held: u64) -> bool {
        self.behind || self.running_soft.is_some_and(|most| held >= most)
    }

    /// Returns true if its limit admits exactly one job more.
    pub(crate) fn was_full(self, held: u64) -> bool {
        self.admits(held) && !self.admits(held.saturating_add(1))
    }
}

/// Everything that admins set and that may change at any time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// True if nothing at all is dispatched.
    pub paused: bool,
    /// Named queues; a queue that is not here has the default policy.
    pub queues: BTreeMap<String, QueuePolicy>,
    /// Price of a host group in thousandths of the normal price. Groups that are not named cost 1000.
    pub group_rates: BTreeMap<String, u32>,
    /// Limits of accounts, over all queues.
    pub account_limits: BTreeMap<String, Allowance>,
    /// Limits of queues, over all accounts.
    pub queue_limits: BTreeMap<String, Allowance>,
}

impl Policy {
    /// Returns the policy of a queue. Each queue is paused if the lab is paused.
    pub(crate) fn of_queue(&self, name: &str) -> QueuePolicy {
        let policy = self.queues.get(name).copied().unwrap_or_default();
        QueuePolicy {
            paused: policy.paused || self.paused,
            ..policy
        }
    }
}

impl Default for Policy {
    /// Returns the queues that every site has: `vip` in class 9 and `idle` in class 1.
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

/// Default number of waiting jobs kept in memory. A pull for 300 accounts is then worth its search, and a replica
/// takes less than 150 MB.
pub const CACHE_JOBS: u32 = 30_000;

/// The engine's limits. Units are in the names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineConfig {
    /// Maximum number of waiting jobs kept in memory, at least 64. Default [`CACHE_JOBS`].
    pub cache_jobs_max: u32,
    /// Maximum lag or lead of a queue's virtual time, ms of a whole host. Default 1 h.
    pub lag_max_ms: u64,
    /// Maximum wait of a job for a host that holds its cache directories, ms. Default 2,000; 0: no wait.
    pub affinity_wait_ms: u64,
    /// Time at the head of its class after which a job reserves a host, ms. A longer job waits for half of its
    /// expected run time (at most 8 h). Default 15 min; 0: never.
    pub reserve_after_ms: u64,
    /// Maximum number of finds begun per second. Default 20.
    pub finds_per_second_max: u32,
    /// Maximum number of pulls in flight. Default 16.
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
