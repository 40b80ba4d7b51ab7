//! Pools of machines that come and go: what an admin says of each, which machines there are, and what was decided.

use std::collections::BTreeMap;

use dashmap::DashMap;
use fairlead_api::{PoolDecision, PoolMachine};
use fairlead_dispatch::Histogram;
use fairlead_job::TboxType;
use fairlead_scaler::{BOOT_UNKNOWN_MS, Boots, Pool, Recycling};
use fairlead_store::DocKind;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::{
    base::providers::{ProviderMachine, ProviderPool},
    known::hosts::{Host, kinds},
    storage::{doc_cache::DocCache, doc_fields::is_zero, small_doc::SmallDoc},
};

/// Most pools of a lab.
pub(crate) const POOLS_MAX: usize = 100;
/// Most machines of a pool.
pub(crate) const MACHINES_MAX: u32 = 10_000;
/// How long decisions are kept, ms: 30 days.
pub(crate) const DECISIONS_KEPT_MS: u64 = 30 * 86_400_000;
/// Boots that are measured before they are believed.
const BOOTS_MIN: u32 = 5;
/// A machine that boots is given at least so long, ms, and else twice what the slowest boots take.
const HANGS_MS: u64 = 300_000;
/// If machines hang again and again, the next ones get twice as long, so often at most: perhaps they are slow.
const DOUBLED_MAX: u32 = 4;
/// Hosts whose last job is remembered, at most.
const ENDS_MAX: usize = 50_000;
/// The document of what holds for all pools. No pool has this name.
pub(crate) const ALL_POOLS: &str = "*";

/// The law that is usual.
pub(crate) const QUEUE_TIME: &str = "queue_time";
/// The law of the documents that the project comes from.
pub(crate) const SEED: &str = "seed";

/// What an admin says of a pool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PoolDoc {
    pub(crate) provider: String,
    pub(crate) machine: PoolMachine,
    pub(crate) min: u32,
    pub(crate) max: u32,
    pub(crate) max_step: u32,
    pub(crate) boot_s: u64,
    pub(crate) target_s: u64,
    pub(crate) law: String,
    pub(crate) max_idle_s: u64,
    pub(crate) max_jobs: u32,
    pub(crate) max_age_s: u64,
    pub(crate) paused: bool,
    /// Of the document of all pools: most machines of all together. Absent: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) quota: Option<u32>,
}

impl SmallDoc for PoolDoc {
    const KIND: DocKind = DocKind::Pool;
}

impl PoolDoc {
    /// A pool of which nothing is said yet.
    pub(crate) fn unsaid() -> Self {
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
    pub(crate) fn limits(&self) -> Pool {
        Pool {
            min: self.min,
            max: self.max,
            step_max: self.max_step,
            target_ms: self.target_s.saturating_mul(1_000),
        }
    }

    /// When its machines are replaced.
    pub(crate) fn recycling(&self) -> Recycling {
        Recycling {
            max_idle_ms: self.max_idle_s.saturating_mul(1_000),
            max_jobs: self.max_jobs,
            max_age_ms: self.max_age_s.saturating_mul(1_000),
        }
    }

    /// The kinds of jobs that its machines run.
    pub(crate) fn kinds(&self) -> Vec<TboxType> {
        kinds(&self.machine.kinds).unwrap_or_default()
    }

    /// A host as its machines are, under a name that no host has.
    pub(crate) fn template(&self, pool: &str) -> Host {
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
    pub(crate) fn asked(&self, pool: &str) -> ProviderPool {
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
pub(crate) struct FleetMachine {
    pub(crate) token: String,
    /// When it was asked for, UTC epoch ms.
    pub(crate) asked_ms: u64,
    /// When its provider last failed to make it; 0: it did not. Its boot began later.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) failed_ms: u64,
    /// When its provider first had it in a list; 0: not yet.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) listed_ms: u64,
    /// When it first asked for work; 0: not yet.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) met_ms: u64,
    /// When it retired; 0: it does not.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) retired_ms: u64,
    /// Why it retires.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) why: String,
    /// Jobs that it has run.
    #[serde(skip_serializing_if = "is_none")]
    pub(crate) jobs: u32,
    /// Whether it takes the place of a suspect machine: it passes a health check first.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_tried: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes fields by reference"
)]
fn is_none(number: &u32) -> bool {
    *number == 0
}

impl FleetMachine {
    pub(crate) fn retires(&self) -> bool {
        self.retired_ms > 0
    }

    /// Since when it boots, UTC epoch ms: one that its provider has not made yet begins now.
    pub(crate) fn boots_since(&self, now_ms: u64) -> u64 {
        let is_made = self.listed_ms > 0 || self.met_ms > 0;
        if is_made {
            self.asked_ms.max(self.listed_ms)
        } else {
            now_ms
        }
    }

    /// How long it had taken to boot when it first asked for work, ms; none: that is not known.
    pub(crate) fn boot_ms(&self, first_ms: u64) -> Option<u64> {
        let began_ms = self.asked_ms.max(self.failed_ms);
        first_ms.checked_sub(began_ms).filter(|took_ms| *took_ms > 0)
    }

    /// As its provider knows it.
    pub(crate) fn provided(&self, name: &str) -> ProviderMachine {
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
pub(crate) struct FleetDoc {
    /// The run of the replica that decides.
    pub(crate) holder: String,
    /// It counts up while that replica lives.
    pub(crate) beat: u64,
    /// A word that no other pool has, of any lab: tokens are made of it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) word: String,
    /// The number of the last decision.
    pub(crate) decision: u64,
    /// By name.
    pub(crate) machines: BTreeMap<String, FleetMachine>,
    /// Suspect machines that retired, and whose place no other has taken yet.
    #[serde(skip_serializing_if = "is_none")]
    pub(crate) suspects: u32,
    /// Counts of boot times by bucket.
    pub(crate) boots: Vec<(u8, u16)>,
    /// How often machines were given up that did not boot, since the last one that did.
    #[serde(skip_serializing_if = "is_none")]
    pub(crate) hung: u32,
    /// Why the provider failed last; empty: it did not.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) problem: String,
}

impl SmallDoc for FleetDoc {
    const KIND: DocKind = DocKind::Fleet;
}

impl FleetDoc {
    /// How long boots take.
    pub(crate) fn boot_times(&self, pool: &PoolDoc) -> Boots {
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
            deadline_ms: deadline_ms.saturating_mul(1 << self.hung.saturating_sub(1).min(DOUBLED_MAX)),
        }
    }

    /// How many boots were measured.
    pub(crate) fn boots_measured(&self) -> u32 {
        Histogram::from_counts(self.boots.iter().copied()).samples()
    }

    /// A machine asked for work for the first time.
    pub(crate) fn note_boot(&mut self, took_ms: u64) {
        self.hung = 0;
        let mut times = Histogram::from_counts(self.boots.drain(..));
        times.note(took_ms);
        self.boots = times.counts().collect();
    }
}

/// A decision as it is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct DecisionDoc {
    pub(crate) decision: PoolDecision,
    /// When it is forgotten, UTC epoch ms.
    pub(crate) at_ms: u64,
}

impl SmallDoc for DecisionDoc {
    const KIND: DocKind = DocKind::Decision;
}

/// The id of a decision: those of a pool stand together, the newest first.
pub(crate) fn decision_id(pool: &str, number: u64) -> String {
    format!("{pool}/{:020}", u64::MAX.saturating_sub(number))
}

/// What a host did last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LastJob {
    /// When its last job ended, UTC epoch ms.
    pub(crate) end_ms: u64,
    /// How many ended since this replica began.
    pub(crate) jobs: u32,
}

/// The pools as this replica knows them.
#[derive(Debug, Default)]
pub(crate) struct Pools {
    docs: Mutex<DocCache<PoolDoc>>,
    /// The last job of each host.
    last: DashMap<String, LastJob>,
    /// Jobs that wait, by host key, as they were counted last.
    counted: Mutex<BTreeMap<String, u64>>,
}

impl Pools {
    /// Work on what was read or written.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut DocCache<PoolDoc>) -> R) -> R {
        work(&mut self.docs.lock())
    }

    /// All of them, by name.
    pub(crate) fn all(&self) -> Vec<(String, PoolDoc)> {
        self.with(|docs| {
            let named = docs.iter().filter(|(name, _)| *name != ALL_POOLS);
            named
                .map(|(name, doc)| (name.clone(), doc.clone()))
                .collect()
        })
    }

    /// Most machines of all pools together.
    pub(crate) fn quota(&self) -> u32 {
        let quota = self.with(|docs| docs.get(ALL_POOLS).and_then(|all| all.quota));
        quota.unwrap_or(u32::MAX)
    }

    /// Host keys that machines of the pools would offer.
    pub(crate) fn keys(&self) -> Vec<String> {
        let pools = self.all().into_iter();
        let keys = pools.flat_map(|(name, pool)| pool.template(&name).keys(&name));
        keys.collect()
    }

    /// The jobs that wait were counted, by host key.
    pub(crate) fn counted(&self, host_keys: &[(String, u64)]) {
        *self.counted.lock() = host_keys.iter().cloned().collect();
    }

    /// Jobs that wait for a host with one of these keys, as they were counted last.
    pub(crate) fn waiting(&self, keys: &[String]) -> u64 {
        let counted = self.counted.lock();
        let many = keys.iter().filter_map(|key| counted.get(key));
        many.fold(0, |sum, many| sum.saturating_add(*many))
    }

    /// A job on this host is over.
    pub(crate) fn job_over(&self, host: &str, now_ms: u64) {
        if self.last.len() >= ENDS_MAX && !self.last.contains_key(host) {
            return;
        }
        let mut last = self.last.entry(host.to_owned()).or_default();
        last.end_ms = last.end_ms.max(now_ms);
        last.jobs = last.jobs.saturating_add(1);
    }

    /// What the host did last.
    pub(crate) fn last_job(&self, host: &str) -> LastJob {
        self.last.get(host).map(|last| *last).unwrap_or_default()
    }

    /// When the last job of a host ended, UTC epoch ms, if it is a machine of a pool: its group bears the name of one.
    pub(crate) fn used_last(&self, host: &str, group: &str) -> Option<u64> {
        let is_pool = group != ALL_POOLS && self.with(|docs| docs.get(group).is_some());
        is_pool.then(|| self.last_job(host).end_ms)
    }

    /// The host is gone.
    pub(crate) fn forget_host(&self, host: &str) {
        self.last.remove(host);
    }
}

#[cfg(test)]
mod tests {
    use fairlead_store::Version;

    use super::*;

    #[test]
    fn boots_are_believed_once_some_were_measured() {
        let pool = PoolDoc {
            boot_s: 100,
            ..PoolDoc::unsaid()
        };
        let mut fleet = FleetDoc::default();
        for n in 0..5 {
            assert_eq!(fleet.boots_measured(), n);
            assert_eq!(fleet.boot_times(&pool).mean_ms, 100_000);
            fleet.note_boot(20_000);
        }
        let boots = fleet.boot_times(&pool);
        assert!(boots.mean_ms.abs_diff(20_000) < 2_000, "{boots:?}");
    }

    #[test]
    fn a_boot_has_the_time_that_real_boots_take() {
        let pool = PoolDoc {
            boot_s: 5,
            ..PoolDoc::unsaid()
        };
        let mut fleet = FleetDoc::default();
        let deadline_s = |fleet: &FleetDoc| fleet.boot_times(&pool).deadline_ms / 1_000;
        assert_eq!(deadline_s(&fleet), 300);
        // Machines that hang may only be slow.
        for (hung, seconds) in [(1, 300), (2, 600), (3, 1_200), (9, 4_800)] {
            fleet.hung = hung;
            assert_eq!(deadline_s(&fleet), seconds);
        }
        fleet.note_boot(1_000_000);
        assert_eq!(fleet.hung, 0);
        assert!(deadline_s(&fleet).abs_diff(2_000) < 300, "{fleet:?}");
    }

    #[test]
    fn a_boot_lasts_from_the_request_or_its_last_failure_to_the_first_question() {
        let machine = FleetMachine {
            asked_ms: 1_000,
            ..FleetMachine::default()
        };
        assert_eq!(machine.boot_ms(4_000), Some(3_000));
        // A machine that somebody else made was there before.
        assert_eq!(machine.boot_ms(900), None);
        let late = FleetMachine {
            failed_ms: 61_000,
            ..machine
        };
        assert_eq!(late.boot_ms(64_000), Some(3_000));
    }

    #[test]
    fn a_machine_of_a_pool_is_known_by_its_group() {
        let pools = Pools::default();
        let version = Version {
            primary_term: 1,
            seq_no: 1,
        };
        pools.with(|docs| docs.wrote("vms", version, Some(PoolDoc::unsaid())));
        pools.job_over("vms--a", 7);
        pools.job_over("box--a", 8);
        assert_eq!(pools.used_last("vms--a", "vms"), Some(7));
        assert_eq!(pools.used_last("vms--b", "vms"), Some(0));
        assert_eq!(pools.used_last("box--a", "box"), None);
    }

    #[test]
    fn the_newest_decision_comes_first() {
        assert!(decision_id("p", 2) < decision_id("p", 1));
        assert!(decision_id("p", 1_000_000) < decision_id("p", 999_999));
    }
}
