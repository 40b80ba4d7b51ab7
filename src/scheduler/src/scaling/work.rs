//! Jobs that lack only a machine: those that wait, or begin within a boot, each in one pool.

use std::collections::{BTreeMap, BTreeSet};

use fairlead_job::{JobId, Stage};
use fairlead_scaler::Work;
use fairlead_store::{Find, JobState, StoreError};

use super::machines::{Kind, share};
use crate::{
    core::Core,
    known::{hosts::Host, pools::PoolDoc},
};

/// Jobs of each account in a queue that are read.
const JOBS_EACH: u32 = 100;
/// Pairs of queue and account that are read.
const PAIRS_MAX: u32 = 64;
/// Jobs that are counted beyond those that are read, at most.
const BEYOND_MAX: u64 = 100_000;
/// Alarms that are read for jobs that begin soon.
const SOON_MAX: u32 = 1_000;

/// What waits for the machines of a pool.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pub(super) work: Vec<Work>,
    /// How long its jobs take on average, ms, as far as it is known of any.
    pub(super) mean_ms: Option<u64>,
}

impl Core {
    /// What waits for each pool, by name. `boot_ms`: how long a boot takes in each.
    pub(super) async fn waiting_for(
        &self,
        pools: &[(String, PoolDoc)],
        boot_ms: &BTreeMap<String, u64>,
    ) -> Result<BTreeMap<String, Waiting>, StoreError> {
        let templates: Vec<(&String, Host)> = pools
            .iter()
            .map(|(name, pool)| (name, pool.template(name)))
            .collect();
        let finds: Vec<Find> = templates
            .iter()
            .map(|(name, host)| find(name, host))
            .collect();
        let pages = self.store.find(&finds).await?;
        let now_ms = self.clock.wall_ms();
        let longest_ms = boot_ms.values().copied().max().unwrap_or(0);
        let soon = self
            .store
            .alarms(now_ms.saturating_add(longest_ms), SOON_MAX)
            .await?;
        let mut allowed = Allowed::of(self);
        let mut taken: BTreeSet<JobId> = BTreeSet::new();
        let mut all = BTreeMap::new();
        for ((name, host), page) in templates.iter().zip(pages) {
            let until_ms = now_ms.saturating_add(boot_ms.get(*name).copied().unwrap_or(0));
            let begins = |state: &JobState| {
                let is_due = state.stage == Stage::Submit && state.waits.is_none();
                is_due && (1..=until_ms).contains(&state.start_ms)
            };
            let later = soon.jobs.iter().filter(|job| begins(&job.state));
            let jobs: Vec<&JobState> = page
                .jobs
                .iter()
                .chain(later)
                .map(|job| &job.state)
                .filter(|state| self.fits_template(state, name, host))
                .filter(|state| taken.insert(state.job_id) && allowed.takes(state))
                .collect();
            let kinds = jobs.iter().map(|state| Kind::of(state, name, now_ms));
            let times = self.run_times_of(kinds.collect()).await;
            let known: Vec<u64> = times.iter().filter_map(|times| times.mean_ms).collect();
            let sum = known.iter().fold(0_u64, |sum, ms| sum.saturating_add(*ms));
            let mean_ms = sum.checked_div(u64::try_from(known.len()).unwrap_or(0));
            let mut work: Vec<Work> = jobs
                .iter()
                .zip(times)
                .map(|(state, times)| Work {
                    share: share(state, host.memory_mb, host.cpus),
                    expected_ms: times.mean_ms,
                })
                .collect();
            if page.more {
                work.extend(self.beyond(host, name, &work));
            }
            all.insert((*name).clone(), Waiting { work, mean_ms });
        }
        Ok(all)
    }

    /// Jobs that were counted and not read: as large as the others are on average.
    fn beyond(&self, host: &Host, name: &str, work: &[Work]) -> Vec<Work> {
        let keys = host.keys(name);
        let counted = self.lab.pools.waiting(&keys);
        let read = u64::try_from(work.len()).unwrap_or(u64::MAX);
        let more = counted.saturating_sub(read).min(BEYOND_MAX);
        let sum: u64 = work.iter().map(|one| u64::from(one.share)).sum();
        let share = sum.checked_div(read).unwrap_or(1_000).clamp(1, 1_000);
        let one = Work {
            share: u32::try_from(share).unwrap_or(1_000),
            expected_ms: None,
        };
        vec![one; usize::try_from(more).unwrap_or(0)]
    }
}

fn find(name: &str, host: &Host) -> Find {
    Find {
        host: String::new(),
        keys: host.keys(name),
        arch: host.arch.clone(),
        free_memory_mb: host.memory_mb,
        free_cpus: host.cpus,
        tags: host.all_tags(),
        devices: host.all_devices(),
        accounts: Vec::new(),
        limit: JOBS_EACH,
        pairs_max: PAIRS_MAX,
        after: None,
    }
}

/// How many more jobs of each account may run, of those with a limit.
struct Allowed(BTreeMap<String, u64>);

impl Allowed {
    fn of(core: &Core) -> Self {
        let limits = core.people.accounts.limits().into_iter();
        let mut left: BTreeMap<String, u64> = limits
            .filter_map(|(account, limits)| Some((account, limits.running.hard?)))
            .collect();
        if !left.is_empty() {
            for id in core.jobs.live.ids() {
                let live = core.jobs.live.get(id);
                if let Some(left) = live.and_then(|live| left.get_mut(&live.stored.state.account)) {
                    *left = left.saturating_sub(1);
                }
            }
        }
        Self(left)
    }

    fn takes(&mut self, state: &JobState) -> bool {
        match self.0.get_mut(&state.account) {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left = left.saturating_sub(1);
                true
            }
        }
    }
}
