//! The jobs that an agent has. What of it is on disk outlives the agent.

use std::collections::BTreeMap;

use fairlead_api::{Grant, HeldJob};
use fairlead_job::Health;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::scenario::HostPlan;

/// Which job: id and attempt.
pub(super) type Key = (String, u16);

/// An order to stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stop {
    /// How the job ends; `None`: it is forgotten.
    pub(super) health: Option<Health>,
    /// How long its end may take, ms.
    pub(super) grace_ms: u64,
}

/// How a job ended on this box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    pub(super) health: Health,
    pub(super) exit_code: Option<i32>,
    pub(super) ran: bool,
}

/// What is written down of a job.
#[derive(Debug, Clone)]
pub(super) struct Journal {
    pub(super) grant: Grant,
    /// Whether its workload was begun, and when that ends by itself.
    pub(super) runs_until_ms: Option<u64>,
    pub(super) end: Option<End>,
}

impl Journal {
    pub(super) fn key(&self) -> Key {
        (self.grant.job_id.clone(), self.grant.attempt)
    }

    fn named(&self) -> HeldJob {
        HeldJob {
            job_id: self.grant.job_id.clone(),
            attempt: self.grant.attempt,
            claim_token: self.grant.claim_token.clone(),
        }
    }

    /// A number that the job's author wrote into it.
    pub(super) fn number(&self, field: &str) -> u64 {
        let value = self.grant.job.get(field);
        value.and_then(serde_json::Value::as_u64).unwrap_or(0)
    }
}

/// One job on the roster.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) journal: Journal,
    /// Whether something of it runs, or may.
    pub(super) running: bool,
    /// No work is asked for before this time while the job is here, ms.
    pub(super) hold_until_ms: u64,
    /// When it was granted, if it is to be stopped when no replica can be reached.
    pub(super) cut_off_since_ms: Option<u64>,
    pub(super) stop: Option<Stop>,
    pub(super) stopped: std::sync::Arc<Notify>,
    /// Cancelled when nothing of it runs any more.
    pub(super) gone: CancellationToken,
}

impl Held {
    pub(super) fn new(journal: Journal, running: bool) -> Self {
        Self {
            journal,
            running,
            hold_until_ms: 0,
            cut_off_since_ms: None,
            stop: None,
            stopped: std::sync::Arc::default(),
            gone: CancellationToken::new(),
        }
    }

    /// The first order counts, but one to forget it overrules.
    pub(super) fn order(&mut self, stop: Stop) {
        let stronger = match &self.stop {
            None => true,
            Some(present) => present.health.is_some() && stop.health.is_none(),
        };
        if stronger {
            self.stop = Some(stop);
            self.stopped.notify_one();
        }
    }
}

/// What a host has to offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) free_mb: u32,
    pub(super) slots: u32,
}

impl Room {
    /// What is left of it when these were granted.
    pub(super) fn without(self, granted: &[Grant]) -> Self {
        let granted_mb = granted.iter().map(|grant| grant.memory_mb).sum();
        let taken = granted.len();
        Self {
            free_mb: self.free_mb.saturating_sub(granted_mb),
            slots: self
                .slots
                .saturating_sub(u32::try_from(taken).unwrap_or(u32::MAX)),
        }
    }

    pub(super) fn covers(self, other: Self) -> bool {
        self.free_mb >= other.free_mb && self.slots >= other.slots
    }
}

/// All jobs of an agent, shared with their courses.
#[derive(Debug, Default)]
pub(super) struct Roster(Mutex<BTreeMap<Key, Held>>);

impl Roster {
    pub(super) fn jobs(&self) -> MutexGuard<'_, BTreeMap<Key, Held>> {
        self.0.lock()
    }

    pub(super) fn with<T>(&self, key: &Key, work: impl FnOnce(&mut Held) -> T) -> Option<T> {
        self.jobs().get_mut(key).map(work)
    }

    pub(super) fn insert(&self, held: Held) {
        self.jobs().insert(held.journal.key(), held);
    }

    pub(super) fn remove(&self, key: &Key) {
        self.jobs().remove(key);
    }

    /// All jobs, as the scheduler wants to hear them.
    pub(super) fn named(&self) -> Vec<HeldJob> {
        self.jobs().values().map(|it| it.journal.named()).collect()
    }

    /// What is free, whether or not it is offered.
    pub(super) fn free(&self, plan: &HostPlan) -> Room {
        let jobs = self.jobs();
        let running: Vec<&Held> = jobs.values().filter(|held| held.running).collect();
        let used: u32 = running.iter().map(|it| it.journal.grant.memory_mb).sum();
        let many = u32::try_from(running.len()).unwrap_or(u32::MAX);
        let slots = plan.jobs_max.saturating_sub(many);
        Room {
            free_mb: match (plan.is_hw(), slots) {
                (true, 0) => 0,
                (true, _) => plan.memory_mb,
                (false, _) => plan.memory_mb.saturating_sub(used),
            },
            slots,
        }
    }

    /// What is offered now; `None`: nothing.
    pub(super) fn room(&self, plan: &HostPlan, now_ms: u64) -> Option<Room> {
        let room = self.free(plan);
        let on_hold = self.jobs().values().any(|it| it.hold_until_ms > now_ms);
        (!on_hold && room.free_mb > 0 && room.slots > 0).then_some(room)
    }

    /// When the room or the patience of a job may change by time alone, ms.
    pub(super) fn wakes_at_ms(&self, now_ms: u64, heard_ms: u64, patience_ms: u64) -> Option<u64> {
        let jobs = self.jobs();
        let holds = jobs.values().map(|held| held.hold_until_ms);
        let cuts = jobs
            .values()
            .filter_map(|held| Some(held.cut_off_since_ms?.max(heard_ms) + patience_ms));
        holds.filter(|at| *at > now_ms).chain(cuts).min()
    }

    /// Stops the jobs that asked for it, after so long without contact.
    pub(super) fn cut_off(&self, now_ms: u64, heard_ms: u64, patience_ms: u64, grace_ms: u64) {
        for held in self.jobs().values_mut() {
            let Some(since_ms) = held.cut_off_since_ms else {
                continue;
            };
            if now_ms >= since_ms.max(heard_ms) + patience_ms {
                held.cut_off_since_ms = None;
                held.order(Stop {
                    health: None,
                    grace_ms,
                });
            }
        }
    }
}
