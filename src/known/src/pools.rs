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

/// Most pools of a lab.
pub const POOLS_MAX: usize = 100;
/// Most machines of a pool.
pub const MACHINES_MAX: u32 = 10_000;
/// How long decisions are kept, ms: 30 days.
pub const DECISIONS_KEPT_MS: u64 = 30 * 86_400_000;
/// Boots that are measured before they are believed.
const BOOTS_MIN: u32 = 5;
/// A machine that boots is given at least so long, ms, and else twice what the slowest boots take.
const HANGS_MS: u64 = 300_000;
/// If machines hang again and again, the next ones get twice as long, so often at most: perhaps they are slow.
const DOUBLED_MAX: u32 = 4;
/// Hosts whose last job is remembered, at most.
const ENDS_MAX: usize = 50_000;
/// The document of what holds for all pools. No pool has this name.
pub const ALL_POOLS: &str = "*";

/// The law that is usual.
pub const QUEUE_TIME: &str = "queue_time";
/// The law of the documents that the project comes from.
pub const SEED: &str = "seed";

/// By the law `queue_time` machines go as soon as they were idle for long enough, where nothing is said.
const AT_ONCE: Shrinking = Shrinking {
    cooldown_ms: 0,
    rounds: 1,
    low_use: 1_000,
};
/// A pool lends idle machines after a minute with little in use, where nothing is said.
const LENDS: Shrinking = Shrinking {
    cooldown_ms: 0,
    rounds: 4,
    low_use: 300,
};

/// What an admin says of a pool.
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
    /// How long after a change none goes. Absent: as the law has it, like the two below.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cooldown_s: Option<u64>,
    /// In how many decisions in a row little must be in use before machines go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low_rounds: Option<u32>,
    /// Below which part in use machines go, percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low_use_percent: Option<u32>,
    pub paused: bool,
    /// Of the document of all pools: most machines of all together. Absent: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota: Option<u32>,
}

impl SmallDoc for PoolDoc {
    const KIND: DocKind = DocKind::Pool;
}

impl PoolDoc {
    /// A pool of which nothing is said yet.
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

    /// Its limits.
    pub fn limits(&self) -> Pool {
        Pool {
            min: self.min,
            max: self.max,
            step_max: self.max_step,
            target_ms: self.target_s.saturating_mul(1_000),
        }
    }

    /// Whether the law `seed` decides.
    pub fn is_seed(&self) -> bool {
        self.law == SEED
    }

    /// When its machines may go.
    pub fn shrinking(&self) -> Shrinking {
        self.said_or(if self.is_seed() {
            SEED_SHRINKING
        } else {
            AT_ONCE
        })
    }

    /// When others may have its idle machines, whatever the law.
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

    /// The numbers of the law `seed`.
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

    /// How far its law looks ahead, ms.
    pub fn horizon_ms(&self, boots: Boots) -> u64 {
        if self.is_seed() {
            self.seed_rules().time_ms
        } else {
            self.limits().horizon_ms(boots)
        }
    }

    /// When its machines are replaced.
    pub fn recycling(&self) -> Recycling {
        Recycling {
            max_idle_ms: self.max_idle_s.saturating_mul(1_000),
            max_jobs: self.max_jobs,
            max_age_ms: self.max_age_s.saturating_mul(1_000),
        }
    }

    /// The kinds of jobs that its machines run.
    pub fn kinds(&self) -> Vec<TboxType> {
        kinds(&self.machine.kinds).unwrap_or_default()
    }

    /// A host as its machines are, under a name that no host has.
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

    /// As its provider is asked.
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
    /// When it was asked for, UTC epoch ms.
    pub asked_ms: u64,
    /// When its provider last failed to make it; 0: it did not. Its boot began later.
    #[serde(skip_serializing_if = "is_zero")]
    pub failed_ms: u64,
    /// When its provider first had it in a list; 0: not yet.
    #[serde(skip_serializing_if = "is_zero")]
    pub listed_ms: u64,
    /// When it first asked for work; 0: not yet.
    #[serde(skip_serializing_if = "is_zero")]
    pub met_ms: u64,
    /// When it retired; 0: it does not.
    #[serde(skip_serializing_if = "is_zero")]
    pub retired_ms: u64,
    /// Why it retires.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// Jobs that it has run.
    #[serde(skip_serializing_if = "is_none")]
    pub jobs: u32,
    /// Whether it takes the place of a suspect machine: it passes a health check first.
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

    /// Since when it boots, UTC epoch ms: one that its provider has not made yet begins now.
    pub fn boots_since(&self, now_ms: u64) -> u64 {
        let is_made = self.listed_ms > 0 || self.met_ms > 0;
        if is_made {
            self.asked_ms.max(self.listed_ms)
        } else {
            now_ms
        }
    }

    /// How long it had taken to boot when it first asked for work, ms; none: that is not known.
    pub fn boot_ms(&self, first_ms: u64) -> Option<u64> {
        let began_ms = self.asked_ms.max(self.failed_ms);
        first_ms
            .checked_sub(began_ms)
            .filter(|took_ms| *took_ms > 0)
    }

    /// As its provider knows it.
    pub fn provided(&self, name: &str) -> ProviderMachine {
        ProviderMachine {
            token: self.token.clone(),
            name: name.to_owned(),
            state: String::new(),
        }
    }
}

/// The machines of a pool. Of the document of all pools: which replica decides.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetDoc {
    /// The run of the replica that decides.
    pub holder: String,
    /// It counts up while that replica lives.
    pub beat: u64,
    /// A word that no other pool has, of any lab: tokens are made of it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub word: String,
    /// The number of the last decision.
    pub decision: u64,
    /// By name.
    pub machines: BTreeMap<String, FleetMachine>,
    /// Suspect machines that retired, and whose place no other has taken yet.
    #[serde(skip_serializing_if = "is_none")]
    pub suspects: u32,
    /// Counts of boot times by bucket.
    pub boots: Vec<(u8, u16)>,
    /// How often machines were given up that did not boot, since the last one that did.
    #[serde(skip_serializing_if = "is_none")]
    pub hung: u32,
    /// Why the provider failed last; empty: it did not.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub problem: String,
}

impl SmallDoc for FleetDoc {
    const KIND: DocKind = DocKind::Fleet;
}

impl FleetDoc {
    /// How long boots take.
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

    /// How many boots were measured.
    pub fn boots_measured(&self) -> u32 {
        Histogram::from_counts(self.boots.iter().copied()).samples()
    }

    /// A machine asked for work for the first time.
    pub fn note_boot(&mut self, took_ms: u64) {
        self.hung = 0;
        let mut times = Histogram::from_counts(self.boots.drain(..));
        times.note(took_ms);
        self.boots = times.counts().collect();
    }
}

/// A decision as it is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DecisionDoc {
    pub decision: PoolDecision,
    /// When it is forgotten, UTC epoch ms.
    pub at_ms: u64,
}

impl SmallDoc for DecisionDoc {
    const KIND: DocKind = DocKind::Decision;
}

/// The id of a decision: those of a pool stand together, the newest first.
pub fn decision_id(pool: &str, number: u64) -> String {
    format!("{pool}/{:020}", u64::MAX.saturating_sub(number))
}

/// What a host did last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LastJob {
    /// When its last job ended, UTC epoch ms.
    pub end_ms: u64,
    /// How many ended since this replica began.
    pub jobs: u32,
}

/// The pools as this replica knows them.
#[derive(Debug, Default)]
pub struct Pools {
    docs: Mutex<DocCache<PoolDoc>>,
    /// The last job of each host.
    last: DashMap<String, LastJob>,
    /// Jobs that wait, by host key, as they were counted last.
    counted: Mutex<BTreeMap<String, u64>>,
}

impl Pools {
    /// Work on what was read or written.
    pub fn with<R>(&self, work: impl FnOnce(&mut DocCache<PoolDoc>) -> R) -> R {
        work(&mut self.docs.lock())
    }

    /// All of them, by name.
    pub fn all(&self) -> Vec<(String, PoolDoc)> {
        self.with(|docs| {
            let named = docs.iter().filter(|(name, _)| *name != ALL_POOLS);
            named
                .map(|(name, doc)| (name.clone(), doc.clone()))
                .collect()
        })
    }

    /// Most machines of all pools together.
    pub fn quota(&self) -> u32 {
        let quota = self.with(|docs| docs.get(ALL_POOLS).and_then(|all| all.quota));
        quota.unwrap_or(u32::MAX)
    }

    /// Host keys that machines of the pools would offer.
    pub fn keys(&self) -> Vec<String> {
        let pools = self.all().into_iter();
        let keys = pools.flat_map(|(name, pool)| pool.template(&name).keys(&name));
        keys.collect()
    }

    /// The jobs that wait were counted, by host key.
    pub fn counted(&self, host_keys: &[(String, u64)]) {
        *self.counted.lock() = host_keys.iter().cloned().collect();
    }

    /// Jobs that wait for a host with one of these keys, as they were counted last.
    pub fn waiting(&self, keys: &[String]) -> u64 {
        let counted = self.counted.lock();
        let many = keys.iter().filter_map(|key| counted.get(key));
        many.fold(0, |sum, many| sum.saturating_add(*many))
    }

    /// A job on this host is over.
    pub fn job_over(&self, host: &str, now_ms: u64) {
        if self.last.len() >= ENDS_MAX && !self.last.contains_key(host) {
            return;
        }
        let mut last = self.last.entry(host.to_owned()).or_default();
        last.end_ms = last.end_ms.max(now_ms);
        last.jobs = last.jobs.saturating_add(1);
    }

    /// What the host did last.
    pub fn last_job(&self, host: &str) -> LastJob {
        self.last.get(host).map(|last| *last).unwrap_or_default()
    }

    /// When the last job of a host ended, UTC epoch ms, if it is a machine of a pool: its group bears the name of one.
    pub fn used_last(&self, host: &str, group: &str) -> Option<u64> {
        let is_pool = group != ALL_POOLS && self.with(|docs| docs.get(group).is_some());
        is_pool.then(|| self.last_job(host).end_ms)
    }

    /// The host is gone.
    pub fn forget_host(&self, host: &str) {
        self.last.remove(host);
    }
}

#[cfg(test)]
mod tests;
