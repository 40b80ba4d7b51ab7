//! Pools of machines that come and go: what an admin says of each, which machines there are, and what was decided.

use std::collections::BTreeMap;

use dashmap::DashMap;
use fairlead_api::{PoolDecision, PoolMachine};
use fairlead_dispatch::Histogram;
use fairlead_job::TboxType;
use fairlead_scaler::{
    BOOT_UNKNOWN_MS, Boots, Pool, Recycling, SEED_SHRINKING, SEED_TIME_MS, SeedRules, Shrinking,
};
use fairlead_store::DocKind;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::hosts::{Host, kinds};
use fairlead_base::{
    providers::{ProviderMachine, ProviderPool},
    storage::{doc_cache::DocCache, doc_fields::is_zero, small_doc::SmallDoc},
};

/// Maximum number of pools of a lab.
pub const POOLS_MAX: usize = 100;
/// Maximum number of machines of a pool.
pub const MACHINES_MAX: u32 = 10_000;
/// Time for which decisions are kept, ms: 30 days.
pub const DECISIONS_KEPT_MS: u64 = 30 * 86_400_000;
/// Number of measured boots from which the measured times are used.
const BOOTS_MIN: u32 = 5;
/// Minimum boot deadline of a machine, ms. Otherwise the deadline is twice the time of the slowest boots.
const HANGS_MS: u64 = 300_000;
/// Maximum number of doublings of the boot deadline. It doubles if machines hang repeatedly, because they may only be
/// slow.
const DOUBLED_MAX: u32 = 4;
/// Maximum number of hosts whose last job is remembered.
const ENDS_MAX: usize = 50_000;
/// Name of the document with settings of all pools. No pool has this name.
pub const ALL_POOLS: &str = "*";

/// Name of the default law.
pub const QUEUE_TIME: &str = "queue_time";
/// Name of the law of the documents that the project comes from.
pub const SEED: &str = "seed";

/// Default shrinking of law `queue_time`: machines go as soon as their idle time is over.
const AT_ONCE: Shrinking = Shrinking {
    cooldown_ms: 0,
    rounds: 1,
    low_use: 1_000,
};
/// Default lending: a pool lends idle machines after a minute with few of them in use.
const LENDS: Shrinking = Shrinking {
    cooldown_ms: 0,
    rounds: 4,
    low_use: 300,
};

/// Settings of a pool, as an admin made them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PoolDoc {
    pub provider: String,
    pub machine: PoolMachine,
    pub min: u32,
    pub max: u32,
    pub max_step: u32,
    pub boot_s: u64,
    pub target_s: u64,
    pub law: String,
    pub max_idle_s: u64,
    pub max_jobs: u32,
    pub max_age_s: u64,
    /// Time after a change during which no machine goes, s. Absent: the law's default, as for the next two fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cooldown_s: Option<u64>,
    /// Number of consecutive decisions with low use before machines go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low_rounds: Option<u32>,
    /// Share of machines in use below which use is low, percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low_use_percent: Option<u32>,
    pub paused: bool,
    /// Maximum number of machines over all pools, only in the document of all pools. Absent: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota: Option<u32>,
}

impl SmallDoc for PoolDoc {
    const KIND: DocKind = DocKind::Pool;
}

impl PoolDoc {
    /// Returns a pool without any settings.
    pub fn unsaid() -> Self {
        Self {
            min: 2,
            max: 10,
            max_step: 100,
            boot_s: BOOT_UNKNOWN_MS / 1_000,
            law: QUEUE_TIME.to_owned(),
            ..Self::default()
        }
    }

    /// Returns its limits.
    pub fn limits(&self) -> Pool {
        Pool {
            min: self.min,
            max: self.max,
            step_max: self.max_step,
            target_ms: self.target_s.saturating_mul(1_000),
        }
    }

    /// Returns true if law `seed` decides.
    pub fn is_seed(&self) -> bool {
        self.law == SEED
    }

    /// Returns the conditions under which its machines may go.
    pub fn shrinking(&self) -> Shrinking {
        self.said_or(if self.is_seed() {
            SEED_SHRINKING
        } else {
            AT_ONCE
        })
    }

    /// Returns the conditions under which other pools may have its idle machines, under any law.
    pub fn lending(&self) -> Shrinking {
        Shrinking {
            cooldown_ms: LENDS.cooldown_ms,
            ..self.said_or(LENDS)
        }
    }

    fn said_or(&self, usual: Shrinking) -> Shrinking {
        Shrinking {
            cooldown_ms: (self.cooldown_s).map_or(usual.cooldown_ms, |s| s.saturating_mul(1_000)),
            rounds: self.low_rounds.unwrap_or(usual.rounds),
            low_use: self
                .low_use_percent
                .map_or(usual.low_use, |percent| percent.saturating_mul(10)),
        }
    }

    /// Returns the parameters of law `seed`.
    pub fn seed_rules(&self) -> SeedRules {
        SeedRules {
            time_ms: match self.target_s {
                0 => SEED_TIME_MS,
                target_s => target_s.saturating_mul(1_000),
            },
            shrinking: self.shrinking(),
            min: self.min,
            ..SeedRules::default()
        }
    }

    /// Returns the time that its law looks ahead, ms.
    pub fn horizon_ms(&self, boots: Boots) -> u64 {
        if self.is_seed() {
            self.seed_rules().time_ms
        } else {
            self.limits().horizon_ms(boots)
        }
    }

    /// Returns the conditions under which its machines are replaced.
    pub fn recycling(&self) -> Recycling {
        Recycling {
            max_idle_ms: self.max_idle_s.saturating_mul(1_000),
            max_jobs: self.max_jobs,
            max_age_ms: self.max_age_s.saturating_mul(1_000),
        }
    }

    /// Returns the kinds of jobs that its machines run.
    pub fn kinds(&self) -> Vec<TboxType> {
        kinds(&self.machine.kinds).unwrap_or_default()
    }

    /// Returns a typical machine of the pool, under a name that no host has.
    pub fn template(&self, pool: &str) -> Host {
        Host {
            kinds: self.kinds(),
            arch: self.machine.arch.clone(),
            group: pool.to_owned(),
            memory_mb: self.machine.memory_mb,
            cpus: self.machine.cpus,
            tags: self.machine.tags.clone(),
            devices: self.machine.devices.clone(),
            ..Host::default()
        }
    }

    /// Returns the pool in the form of a request to its provider.
    pub fn asked(&self, pool: &str) -> ProviderPool {
        ProviderPool {
            provider: self.provider.clone(),
            pool: pool.to_owned(),
            machine: self.machine.clone(),
        }
    }
}

/// A machine of a pool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetMachine {
    pub token: String,
    /// Time of the request to the provider, UTC epoch ms.
    pub asked_ms: u64,
    /// Time of the provider's last failure to make it, UTC epoch ms. 0: none. Its boot began later.
    #[serde(skip_serializing_if = "is_zero")]
    pub failed_ms: u64,
    /// Time of the provider's first list with it, UTC epoch ms. 0: not yet.
    #[serde(skip_serializing_if = "is_zero")]
    pub listed_ms: u64,
    /// Time of its first request for work, UTC epoch ms. 0: not yet.
    #[serde(skip_serializing_if = "is_zero")]
    pub met_ms: u64,
    /// Time of its retirement, UTC epoch ms. 0: it does not retire.
    #[serde(skip_serializing_if = "is_zero")]
    pub retired_ms: u64,
    /// Reason of its retirement.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// Number of jobs that it has run.
    #[serde(skip_serializing_if = "is_none")]
    pub jobs: u32,
    /// True if it replaces a suspect machine. It must pass a health check first.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_tried: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes fields by reference"
)]
fn is_none(number: &u32) -> bool {
    *number == 0
}

impl FleetMachine {
    pub fn retires(&self) -> bool {
        self.retired_ms > 0
    }

    /// Returns the start of its boot, UTC epoch ms. The boot of a machine that is not made yet starts now.
    pub fn boots_since(&self, now_ms: u64) -> u64 {
        let is_made = self.listed_ms > 0 || self.met_ms > 0;
        if is_made {
            self.asked_ms.max(self.listed_ms)
        } else {
            now_ms
        }
    }

    /// Returns the time from its request to its first request for work, ms. `None`: unknown.
    pub fn boot_ms(&self, first_ms: u64) -> Option<u64> {
        let began_ms = self.asked_ms.max(self.failed_ms);
        first_ms
            .checked_sub(began_ms)
            .filter(|took_ms| *took_ms > 0)
    }

    /// Returns the machine as its provider knows it.
    pub fn provided(&self, name: &str) -> ProviderMachine {
        ProviderMachine {
            token: self.token.clone(),
            name: name.to_owned(),
            state: String::new(),
        }
    }
}

/// Machines of a pool. The document of all pools names the replica that decides.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetDoc {
    /// Run of the replica that decides.
    pub holder: String,
    /// Counter that the replica increments while it lives.
    pub beat: u64,
    /// Word that is unique among the pools of all labs. Tokens are derived from it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub word: String,
    /// Number of the last decision.
    pub decision: u64,
    /// Machines by name.
    pub machines: BTreeMap<String, FleetMachine>,
    /// Number of retired suspect machines that are not yet replaced.
    #[serde(skip_serializing_if = "is_none")]
    pub suspects: u32,
    /// Counts of boot times, by bucket.
    pub boots: Vec<(u8, u16)>,
    /// Number of machines given up because they did not boot, since the last successful boot.
    #[serde(skip_serializing_if = "is_none")]
    pub hung: u32,
    /// Last problem of the provider. Empty: none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub problem: String,
}

impl SmallDoc for FleetDoc {
    const KIND: DocKind = DocKind::Fleet;
}

impl FleetDoc {
    /// Returns the mean boot time and the boot deadline.
    pub fn boot_times(&self, pool: &PoolDoc) -> Boots {
        let measured = Histogram::from_counts(self.boots.iter().copied());
        let said_ms = pool.boot_s.saturating_mul(1_000);
        let is_known = measured.samples() >= BOOTS_MIN;
        let slowest_ms = measured.quantile_ms(950).unwrap_or(0);
        let (mean_ms, slow_ms) = match measured.mean_ms() {
            Some(mean_ms) if is_known => (mean_ms, slowest_ms),
            _ => (said_ms, slowest_ms.max(said_ms)),
        };
        let deadline_ms = HANGS_MS.max(slow_ms.saturating_mul(2));
        Boots {
            mean_ms,
            deadline_ms: deadline_ms
                .saturating_mul(1 << self.hung.saturating_sub(1).min(DOUBLED_MAX)),
        }
    }

    /// Returns the number of measured boots.
    pub fn boots_measured(&self) -> u32 {
        Histogram::from_counts(self.boots.iter().copied()).samples()
    }

    /// Notes the boot time of a machine that asked for work for the first time.
    pub fn note_boot(&mut self, took_ms: u64) {
        self.hung = 0;
        let mut times = Histogram::from_counts(self.boots.drain(..));
        times.note(took_ms);
        self.boots = times.counts().collect();
    }
}

/// Stored decision of a pool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DecisionDoc {
    pub decision: PoolDecision,
    /// Time of its deletion, UTC epoch ms.
    pub at_ms: u64,
}

impl SmallDoc for DecisionDoc {
    const KIND: DocKind = DocKind::Decision;
}

/// Returns the id of a decision. The decisions of a pool sort together, newest first.
pub fn decision_id(pool: &str, number: u64) -> String {
    format!("{pool}/{:020}", u64::MAX.saturating_sub(number))
}

/// Last job of a host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LastJob {
    /// End of its last job, UTC epoch ms.
    pub end_ms: u64,
    /// Number of its jobs that ended since this replica started.
    pub jobs: u32,
}

/// The pools as this replica knows them.
#[derive(Debug, Default)]
pub struct Pools {
    docs: Mutex<DocCache<PoolDoc>>,
    /// Last job of each host.
    last: DashMap<String, LastJob>,
    /// Number of waiting jobs by host key, as last counted.
    counted: Mutex<BTreeMap<String, u64>>,
}

impl Pools {
    /// Calls `work` with the cached documents.
    pub fn with<R>(&self, work: impl FnOnce(&mut DocCache<PoolDoc>) -> R) -> R {
        work(&mut self.docs.lock())
    }

    /// Returns all pools, by name.
    pub fn all(&self) -> Vec<(String, PoolDoc)> {
        self.with(|docs| {
            let named = docs.iter().filter(|(name, _)| *name != ALL_POOLS);
            named
                .map(|(name, doc)| (name.clone(), doc.clone()))
                .collect()
        })
    }

    /// Returns the maximum number of machines over all pools.
    pub fn quota(&self) -> u32 {
        let quota = self.with(|docs| docs.get(ALL_POOLS).and_then(|all| all.quota));
        quota.unwrap_or(u32::MAX)
    }

    /// Returns the host keys that machines of the pools would offer.
    pub fn keys(&self) -> Vec<String> {
        let pools = self.all().into_iter();
        let keys = pools.flat_map(|(name, pool)| pool.template(&name).keys(&name));
        keys.collect()
    }

    /// Keeps a count of the waiting jobs, by host key.
    pub fn counted(&self, host_keys: &[(String, u64)]) {
        *self.counted.lock() = host_keys.iter().cloned().collect();
    }

    /// Returns the number of jobs that wait for a host with one of these keys, as last counted.
    pub fn waiting(&self, keys: &[String]) -> u64 {
        let counted = self.counted.lock();
        let many = keys.iter().filter_map(|key| counted.get(key));
        many.fold(0, |sum, many| sum.saturating_add(*many))
    }

    /// Notes the end of a job on this host.
    pub fn job_over(&self, host: &str, now_ms: u64) {
        if self.last.len() >= ENDS_MAX && !self.last.contains_key(host) {
            return;
        }
        let mut last = self.last.entry(host.to_owned()).or_default();
        last.end_ms = last.end_ms.max(now_ms);
        last.jobs = last.jobs.saturating_add(1);
    }

    /// Returns the last job of the host.
    pub fn last_job(&self, host: &str) -> LastJob {
        self.last.get(host).map(|last| *last).unwrap_or_default()
    }

    /// Returns the end of a host's last job, UTC epoch ms. `None`: the host is not in the group of a pool, so it is no
    /// pool machine.
    pub fn used_last(&self, host: &str, group: &str) -> Option<u64> {
        let is_pool = group != ALL_POOLS && self.with(|docs| docs.get(group).is_some());
        is_pool.then(|| self.last_job(host).end_ms)
    }

    /// Forgets a host that is gone.
    pub fn forget_host(&self, host: &str) {
        self.last.remove(host);
    }
}

#[cfg(test)]
mod tests;
