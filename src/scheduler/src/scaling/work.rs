//! Jobs that lack only a machine, each in one pool: those that wait or begin within a boot, and runs of timers. A job that
//! may go to no host does not count.

use std::collections::{BTreeMap, BTreeSet, HashMap, hash_map::Entry};

use fairlead_dispatch::Admission;
use fairlead_job::{JobId, Stage};
use fairlead_scaler::Work;
use fairlead_store::{DocKind, Find, JobState, Page, StoreError, StoredJob};

use super::machines::{Kind, share};
use crate::{
    placement::shapes::{Place, Shape},
    scaling::ScalingFlow,
};
use fairlead_known::{
    hosts::Host,
    pools::PoolDoc,
    timers::{Run, Stored, Timer},
};

/// Jobs of each account in a queue that are read.
const JOBS_EACH: u32 = 100;
/// Pairs of queue and account that are read.
const PAIRS_MAX: u32 = 64;
/// Finds that read on until one of the jobs may begin, at most.
const PAGES_MAX: usize = 16;
/// Jobs that are counted beyond those that are read, at most.
const BEYOND_MAX: u64 = 100_000;
/// A job that was to begin so long ago and is not ready waits for something else, ms.
const LATE_MS: u64 = 60_000;
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

impl ScalingFlow {
    /// What waits for each pool, by name, and may begin: the engine would let it go to a host. `boot_ms`: how long a boot
    /// takes in each.
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
        let pages = self.ctx.store.find(&finds).await?;
        let now_ms = self.ctx.clock.wall_ms();
        let longest_ms = boot_ms.values().copied().max().unwrap_or(0);
        let soon_ms = now_ms.saturating_add(longest_ms);
        let soon = self.ctx.store.alarms(soon_ms, SOON_MAX).await?;
        let runs = self.runs_until(soon_ms).await?;
        let mut admission = self.admission().await;
        let mut taken: BTreeSet<JobId> = BTreeSet::new();
        let mut all = BTreeMap::new();
        for (((name, host), find), page) in templates.iter().zip(finds).zip(pages) {
            let page = self.find_behind(find, page, &admission).await?;
            let until_ms = now_ms.saturating_add(boot_ms.get(*name).copied().unwrap_or(0));
            let place = Place::empty(name, host, Vec::new());
            let begins = |state: &&JobState| begins_until(state, now_ms, until_ms);
            let mut takes = |state: &&JobState| {
                Shape::of(state).fits(&place)
                    && taken.insert(state.job_id)
                    && admission.admit(&state.queue, &state.account)
            };
            let ready = page.jobs.iter().map(|job| &job.state);
            let mut jobs: Vec<&JobState> = ready.filter(&mut takes).collect();
            let known = jobs.len();
            let later = soon.jobs.iter().map(|job| &job.state).chain(&runs);
            jobs.extend(later.filter(begins).filter(&mut takes));
            let mut waiting = self.work_of(name, host, &jobs).await;
            let beyond = self.beyond(&page, known, &host.keys(name));
            let again = jobs.iter().zip(waiting.work.clone()).take(known);
            let again = again.cycle().take(beyond);
            let again = again.filter(|(state, _)| admission.admit(&state.queue, &state.account));
            waiting.work.extend(again.map(|(_, work)| work));
            all.insert((*name).clone(), waiting);
        }
        Ok(all)
    }

    /// Which jobs the engine would let go to hosts now.
    pub(super) async fn admission(&self) -> Admission {
        let asked = self.ctx.engine.ask(|engine, _| engine.admission());
        asked.await.unwrap_or_default()
    }

    /// What is found behind a page as long as none of it may begin: a find reads some pairs of queue and account only, and
    /// these may be paused.
    async fn find_behind(
        &self,
        mut find: Find,
        mut page: Page,
        admission: &Admission,
    ) -> Result<Page, StoreError> {
        let may_begin = |job: &StoredJob| admission.admits(&job.state.queue, &job.state.account);
        for _ in 1..PAGES_MAX {
            if page.next.is_none() || page.jobs.iter().any(may_begin) {
                break;
            }
            find.after = page.next.take();
            let mut found = self.ctx.store.find(std::slice::from_ref(&find)).await?;
            let next = found.pop().unwrap_or_default();
            page.jobs.extend(next.jobs);
            page.next = next.next;
        }
        Ok(page)
    }

    /// What these jobs are for machines of a pool.
    async fn work_of(&self, pool: &str, host: &Host, jobs: &[&JobState]) -> Waiting {
        let now_ms = self.ctx.clock.wall_ms();
        let kinds = jobs.iter().map(|state| Kind::of(state, pool, now_ms));
        let times = self.run_times_of(kinds.collect()).await;
        let known: Vec<u64> = times.iter().filter_map(|times| times.mean_ms).collect();
        let sum = known.iter().fold(0_u64, |sum, ms| sum.saturating_add(*ms));
        let mean_ms = sum.checked_div(u64::try_from(known.len()).unwrap_or(0));
        let (numbers, shapes) = numbered(jobs);
        let work = jobs.iter().zip(times).zip(numbers);
        let work = work.map(|((state, times), shape)| Work {
            share: share(state, host.memory_mb, host.cpus),
            expected_ms: times.mean_ms,
            shape,
        });
        Waiting {
            work: work.collect(),
            shapes,
            mean_ms,
        }
    }

    /// The jobs of timers that are due until then, each with the time as its start. Of each timer only the next run counts,
    /// for its runs do not run beside each other; none does while the last one has not ended.
    async fn runs_until(&self, until_ms: u64) -> Result<Vec<JobState>, StoreError> {
        let due = self
            .ctx
            .store
            .due_docs(DocKind::Timer, until_ms, SOON_MAX)
            .await?;
        let ids: Vec<String> = due.into_iter().map(|due| due.id).collect();
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let docs = self.ctx.store.get_docs(DocKind::Timer, &ids).await?;
        let timers = docs.into_iter().flatten().filter_map(Stored::of);
        let timers: Vec<Timer> = timers.map(|stored| stored.timer).collect();
        let open: Vec<JobId> = timers
            .iter()
            .flat_map(|timer| timer.open.iter().copied())
            .collect();
        let found = self.ctx.store.get(&open).await?.into_iter().flatten();
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
            let state = self.submission.job_of_run(&alone, run).ok()?.state;
            Some(JobState {
                start_ms: state.start_ms.max(run.due_ms),
                ..state
            })
        });
        Ok(runs.collect())
    }

    /// How many jobs are counted beyond those that were read, if as many of them as of those may begin.
    fn beyond(&self, page: &Page, known: usize, keys: &[String]) -> usize {
        if !page.more {
            return 0;
        }
        let number = |many: usize| u64::try_from(many).unwrap_or(u64::MAX);
        let read = number(page.jobs.len());
        let more = self.lab.pools.waiting(keys).saturating_sub(read);
        let more = more.saturating_mul(number(known)).checked_div(read);
        usize::try_from(more.unwrap_or(0).min(BEYOND_MAX)).unwrap_or(0)
    }
}

/// Whether it lacks only the time until it may be dispatched, and that comes by `until_ms`. Nobody holds it back, and it waits
/// for no other job, no turn and no shards.
fn begins_until(state: &JobState, now_ms: u64, until_ms: u64) -> bool {
    let from_ms = now_ms.saturating_sub(LATE_MS).max(1);
    let is_soon = (from_ms..=until_ms).contains(&state.start_ms);
    let has_turn = state.sequence.is_empty() || state.sequence_turn;
    let is_free = state.held_by.is_empty() && state.waits.is_none() && state.shards.is_none();
    state.stage == Stage::Submit && is_soon && has_turn && is_free
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fairlead_job::Spec;
    use fairlead_store::{Expect, Version};
    use serde_json::json;

    use super::*;
    use crate::{
        Clock, Config, Pause,
        testing::{answer_questions, embedded, flows, flows_over, state, store_job},
    };
    use fairlead_known::queues::Set;

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
        let flows = flows_over(embedded(&data), config, clock);
        store_job(
            &flows,
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
        let outcomes = flows
            .ctx
            .store
            .put_docs(DocKind::Timer, writes.collect())
            .await;
        assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
        let mut pool = PoolDoc::unsaid();
        pool.machine.kinds = vec!["dc".to_owned()];
        pool.machine.arch = "x86_64".to_owned();
        pool.machine.memory_mb = 2_048;
        let template = Place::empty("vms", &pool.template("vms"), Vec::new());
        let due = async |boot_ms: u64| -> Vec<u64> {
            let runs = flows.scaling.runs_until(NOW_MS + boot_ms).await.unwrap();
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

    #[test]
    fn a_delayed_job_counts_if_nothing_else_keeps_it_back() {
        let job = JobState {
            ready: false,
            start_ms: NOW_MS + 50_000,
            ..state(1)
        };
        assert!(begins_until(&job, NOW_MS, NOW_MS + 50_000));
        assert!(!begins_until(&job, NOW_MS, NOW_MS + 49_999));
        let changes: [fn(&mut JobState); 4] = [
            |job| job.held_by = "ann".to_owned(),
            |job| job.sequence = "nightly".to_owned(),
            |job| job.shards = Some(Box::default()),
            |job| job.start_ms = NOW_MS - LATE_MS - 1,
        ];
        for change in changes {
            let mut kept = job.clone();
            change(&mut kept);
            assert!(!begins_until(&kept, NOW_MS, NOW_MS + 50_000), "{kept:?}");
        }
    }

    #[tokio::test]
    async fn jobs_that_may_not_begin_ask_for_no_machine() {
        let (_data, flows) = flows().await;
        flows.people.queues.with(|known| {
            let version = |seq_no| Version {
                primary_term: 1,
                seq_no,
            };
            let later = Set {
                paused: true,
                ..Set::default()
            };
            known.wrote("later", version(1), Some(later));
            let mut one = Set::default();
            one.limits.running.hard = Some(2);
            known.wrote("one", version(2), Some(one));
        });
        answer_questions(&flows);
        // A fixed host has one of the two that may run.
        let held = JobState {
            stage: Stage::Running,
            host: "fixed".to_owned(),
            queue: "one".to_owned(),
            ready: false,
            ..state(1)
        };
        flows.jobs.observe(&store_job(&flows, held).await);
        // More pairs of queue and account than a find reads, and none of their jobs may begin.
        let paused = (10..).take(100).map(|id| ("later".to_owned(), id));
        let limited = (200..).take(5).map(|id| ("one".to_owned(), id));
        for (queue, id) in paused.chain(limited) {
            let job = JobState {
                queue,
                account: format!("account{id}"),
                arch: "x86_64".to_owned(),
                ..state(id)
            };
            store_job(&flows, job).await;
        }
        let mut pool = PoolDoc::unsaid();
        pool.machine.kinds = vec!["dc".to_owned()];
        pool.machine.arch = "x86_64".to_owned();
        pool.machine.memory_mb = 2_048;
        let pools = [("vms".to_owned(), pool)];
        let waiting = flows
            .scaling
            .waiting_for(&pools, &BTreeMap::new())
            .await
            .unwrap();
        assert_eq!(waiting["vms"].work.len(), 1, "{waiting:?}");
    }
}
