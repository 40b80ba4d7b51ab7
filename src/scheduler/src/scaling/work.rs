//! Jobs that lack only a machine: those that wait, or begin within a boot, and runs of timers, each in one pool.

use std::collections::{BTreeMap, BTreeSet, HashMap, hash_map::Entry};

use fairlead_job::{JobId, Stage};
use fairlead_scaler::Work;
use fairlead_store::{DocKind, Find, JobState, StoreError};

use super::machines::{Kind, share};
use crate::{
    core::Core,
    known::{
        hosts::Host,
        pools::PoolDoc,
        timers::{Run, Stored, Timer},
    },
    placement::shapes::{Place, Shape},
};

/// Jobs of each account in a queue that are read.
const JOBS_EACH: u32 = 100;
/// Pairs of queue and account that are read.
const PAIRS_MAX: u32 = 64;
/// Jobs that are counted beyond those that are read, at most.
const BEYOND_MAX: u64 = 100_000;
/// Alarms and timers that are read for jobs that begin soon.
const SOON_MAX: u32 = 1_000;

/// What waits for the machines of a pool.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pub(super) work: Vec<Work>,
    /// What it wants of its machines, by the numbers that the work has.
    pub(super) shapes: Vec<Shape>,
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
        let soon_ms = now_ms.saturating_add(longest_ms);
        let soon = self.store.alarms(soon_ms, SOON_MAX).await?;
        let runs = self.runs_until(soon_ms).await?;
        let mut allowed = Allowed::of(self);
        let mut taken: BTreeSet<JobId> = BTreeSet::new();
        let mut all = BTreeMap::new();
        for ((name, host), page) in templates.iter().zip(pages) {
            let until_ms = now_ms.saturating_add(boot_ms.get(*name).copied().unwrap_or(0));
            let place = Place::empty(name, host, Vec::new());
            let begins = |state: &JobState| {
                let is_due = state.stage == Stage::Submit && state.waits.is_none();
                is_due && (1..=until_ms).contains(&state.start_ms)
            };
            let later = soon.jobs.iter().map(|job| &job.state).chain(&runs);
            let jobs: Vec<&JobState> = page
                .jobs
                .iter()
                .map(|job| &job.state)
                .chain(later.filter(|state| begins(state)))
                .filter(|state| Shape::of(state).fits(&place))
                .filter(|state| taken.insert(state.job_id) && allowed.takes(state))
                .collect();
            let kinds = jobs.iter().map(|state| Kind::of(state, name, now_ms));
            let times = self.run_times_of(kinds.collect()).await;
            let known: Vec<u64> = times.iter().filter_map(|times| times.mean_ms).collect();
            let sum = known.iter().fold(0_u64, |sum, ms| sum.saturating_add(*ms));
            let mean_ms = sum.checked_div(u64::try_from(known.len()).unwrap_or(0));
            let (numbers, shapes) = numbered(&jobs);
            let mut work: Vec<Work> = jobs
                .iter()
                .zip(times)
                .zip(numbers)
                .map(|((state, times), shape)| Work {
                    share: share(state, host.memory_mb, host.cpus),
                    expected_ms: times.mean_ms,
                    shape,
                })
                .collect();
            if page.more {
                work.extend(self.beyond(host, name, &work));
            }
            let waiting = Waiting {
                work,
                shapes,
                mean_ms,
            };
            all.insert((*name).clone(), waiting);
        }
        Ok(all)
    }

    /// The jobs of timers that are due until then, each with the time as its start. Of each timer only the next run counts,
    /// for its runs do not run beside each other; none does while the last one has not ended.
    async fn runs_until(&self, until_ms: u64) -> Result<Vec<JobState>, StoreError> {
        let due = self
            .store
            .due_docs(DocKind::Timer, until_ms, SOON_MAX)
            .await?;
        let ids: Vec<String> = due.into_iter().map(|due| due.id).collect();
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let docs = self.store.get_docs(DocKind::Timer, &ids).await?;
        let timers = docs.into_iter().flatten().filter_map(Stored::of);
        let timers: Vec<Timer> = timers.map(|stored| stored.timer).collect();
        let open: Vec<JobId> = timers
            .iter()
            .flat_map(|timer| timer.open.iter().copied())
            .collect();
        let found = self.store.get(&open).await?.into_iter().flatten();
        let still: BTreeSet<JobId> = found
            .filter(|job| !job.state.stage.is_terminal())
            .map(|job| job.state.job_id)
            .collect();
        // Its job is not there yet, so any id does that no job has.
        let runs = (1..).zip(timers).filter_map(|(n, timer)| {
            let run = timer.pending.unwrap_or(Run {
                due_ms: timer.next_ms,
                job_id: JobId::new(n),
            });
            let is_due = (1..=until_ms).contains(&run.due_ms);
            if !is_due || timer.open.iter().any(|id| still.contains(id)) {
                return None;
            }
            let alone = Timer {
                open: Vec::new(),
                ..timer
            };
            let state = self.job_of_run(&alone, run).ok()?.state;
            Some(JobState {
                start_ms: state.start_ms.max(run.due_ms),
                ..state
            })
        });
        Ok(runs.collect())
    }

    /// Jobs that were counted and not read: as the others are.
    fn beyond(&self, host: &Host, name: &str, work: &[Work]) -> Vec<Work> {
        let keys = host.keys(name);
        let counted = self.lab.pools.waiting(&keys);
        let read = u64::try_from(work.len()).unwrap_or(u64::MAX);
        let more = counted.saturating_sub(read).min(BEYOND_MAX);
        let more = usize::try_from(more).unwrap_or(0);
        work.iter().copied().cycle().take(more).collect()
    }
}

/// The number of the shape of each job, and the shapes by their numbers.
fn numbered(jobs: &[&JobState]) -> (Vec<u32>, Vec<Shape>) {
    let mut known: HashMap<Shape, u32> = HashMap::new();
    let mut shapes = Vec::new();
    let number = |state: &&JobState| match known.entry(Shape::of(state)) {
        Entry::Occupied(known) => *known.get(),
        Entry::Vacant(new) => {
            let number = u32::try_from(shapes.len()).unwrap_or(u32::MAX);
            shapes.push(new.key().clone());
            *new.insert(number)
        }
    };
    let numbers = jobs.iter().map(number).collect();
    (numbers, shapes)
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fairlead_job::Spec;
    use fairlead_store::Expect;
    use serde_json::json;

    use super::*;
    use crate::{
        Clock, Config, Pause,
        testing::{core_over, embedded, state, store_job},
    };

    /// 2026-11-21T02:36:00Z.
    const NOW_MS: u64 = 1_795_228_560_000;

    fn spec(fields: serde_json::Value) -> Spec {
        serde_json::from_value(fields).unwrap()
    }

    fn timer(name: &str, next_ms: u64, open: &[u64]) -> Timer {
        let job = json!({"suite": "sleep", "testbox": "dc", "script": "true", "arch": "x86_64",
            "need_memory": "1g", "my_account": "ann"});
        Timer {
            account: "ann".to_owned(),
            name: name.to_owned(),
            when: spec(json!({"every": "1h"})),
            job: spec(job),
            next_ms,
            open: open.iter().map(|id| JobId::new(*id)).collect(),
            ..Timer::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn runs_of_timers_that_are_due_within_a_boot_count() {
        let data = tempfile::tempdir().unwrap();
        let config = Config::embedded(data.path().to_owned());
        let clock = Clock::simulated(NOW_MS, Arc::new(Pause::default()));
        let core = core_over(embedded(&data), config, clock);
        store_job(
            &core,
            JobState {
                ready: false,
                ..state(1)
            },
        )
        .await;
        let timers = [
            timer("soon", NOW_MS + 50_000, &[]),
            timer("later", NOW_MS + 150_000, &[]),
            timer("runs", NOW_MS + 50_000, &[1]),
            timer("ended", NOW_MS + 60_000, &[2]),
        ];
        let writes = timers.iter().map(|timer| timer.to_write(Expect::Absent));
        let outcomes = core.store.put_docs(DocKind::Timer, writes.collect()).await;
        assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
        let mut pool = PoolDoc::unsaid();
        pool.machine.kinds = vec!["dc".to_owned()];
        pool.machine.arch = "x86_64".to_owned();
        pool.machine.memory_mb = 2_048;
        let template = Place::empty("vms", &pool.template("vms"), Vec::new());
        let due = async |boot_ms: u64| -> Vec<u64> {
            let runs = core.runs_until(NOW_MS + boot_ms).await.unwrap();
            let fit = |state: &JobState| {
                let is_free = state.stage == Stage::Submit && state.waits.is_none();
                is_free && Shape::of(state).fits(&template)
            };
            assert!(runs.iter().all(fit), "{runs:?}");
            assert!(runs.iter().all(|run| share(run, 2_048, None) == 500));
            let mut due: Vec<u64> = runs.iter().map(|run| run.start_ms - NOW_MS).collect();
            due.sort_unstable();
            due
        };
        assert_eq!(due(40_000).await, [0; 0]);
        assert_eq!(due(100_000).await, [50_000, 60_000], "soon and ended");
        assert_eq!(due(200_000).await, [50_000, 60_000, 150_000]);
    }
}
