//! A flood of names: each job has its own account, queue or machine. Measures the time of an event and the memory.
//!
//! The engine has its default cache. It hears of jobs like a replica: from submits, from bounded counts each second,
//! and from pulls and finds of a simulated store. Hosts ask meanwhile, and half of them could run the flood. The time
//! of an event is its thread's processor time, so other load does not show. Inputs are seeded by their numbers.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
    ops::Bound,
    sync::Arc,
    time::Duration,
};

use fairlead_dispatch::{
    About, Cursor, Decision, Dimension, DimensionCounts, EVENT_JOBS_MAX, Engine, EngineConfig,
    Event, FindPlace, JobFacts, JobKey, Kind, Millis, NAMES_MAX, Offer, OfferKey, Policy,
    PulledPage, Reached, Version,
};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// Time between two submits, ms.
const SUBMIT_EVERY_MS: u64 = 10;
/// Number of submits between two counts.
const SUBMITS_A_COUNT: u64 = 100;
/// Number of hosts that ask after each submit.
const ASKING: u64 = 1;
/// Number of hosts.
const HOSTS: u64 = 100;
/// Time that a host waits for an answer, ms.
const WAITS_MS: u64 = 2_000;
/// Seconds that pass after all jobs are submitted.
pub(super) const SECONDS_AFTER: u64 = 30;

/// Property that is unique for each job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
pub(super) enum Own {
    /// Account of the job, and with it the queue.
    Account,
    /// Queue of the job. All jobs are of one account.
    Queue,
    /// Requested machine of the job. All jobs are of one account.
    HostKey,
}

impl fmt::Display for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Account => "account",
            Self::Queue => "queue",
            Self::HostKey => "host key",
        })
    }
}

/// Result of a flood.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct Came {
    /// Processor time of the longest event, ms.
    pub(super) longest_ms: f64,
    /// Maximum number of cached jobs, relative to the limit.
    pub(super) cached: f64,
    /// Number of jobs given to hosts.
    pub(super) claims: u64,
    /// Number of events.
    pub(super) events: u64,
}

/// A simulated store, an engine, and hosts.
pub(super) struct Flood {
    engine: Engine,
    own: Own,
    cache_jobs_max: u32,
    now: u64,
    /// Waiting jobs in the store: their numbers, in the order of their names.
    waiting: BTreeMap<FindPlace, u64>,
    /// Waiting jobs by number alone.
    by_number: BTreeSet<u64>,
    next_offer: u64,
    out: Vec<Decision>,
    events: VecDeque<Event>,
    came: Came,
    longest: Duration,
}

impl Flood {
    pub(super) fn new(own: Own, cache_jobs_max: u32) -> Self {
        let config = EngineConfig {
            cache_jobs_max,
            ..EngineConfig::default()
        };
        Self {
            engine: Engine::new(config, Policy::default()),
            own,
            cache_jobs_max,
            now: 1_000_000,
            waiting: BTreeMap::new(),
            by_number: BTreeSet::new(),
            next_offer: 0,
            out: Vec::new(),
            events: VecDeque::new(),
            came: Came::default(),
            longest: Duration::ZERO,
        }
    }

    /// Runs the whole course: jobs arrive, and then time passes.
    pub(super) fn run(&mut self, jobs: u64, seconds_after: u64) -> Came {
        let part = EVENT_JOBS_MAX as u64;
        for (nth, first) in (0..jobs).step_by(EVENT_JOBS_MAX).enumerate() {
            let these = first..jobs.min(first + part);
            for n in these.clone() {
                self.waiting.insert(self.place(n), n);
                self.by_number.insert(n);
            }
            self.tell(Event::JobsLearned(these.map(|n| self.job(n)).collect()));
            self.hosts_ask();
            self.now += SUBMIT_EVERY_MS;
            if (nth as u64).is_multiple_of(SUBMITS_A_COUNT) {
                self.second();
            }
        }
        for _ in 0..seconds_after {
            for _ in 0..SUBMITS_A_COUNT {
                self.now += SUBMIT_EVERY_MS;
                self.hosts_ask();
            }
            self.second();
        }
        self.came.longest_ms = self.longest.as_secs_f64() * 1e3;
        self.came
    }

    /// Sends the events of each second.
    fn second(&mut self) {
        self.tell(Event::NewsRead);
        let counts = self.counts();
        self.tell(Event::CountsRefreshed(counts));
        self.tell(Event::Tick);
    }

    /// Lets one host after the other ask.
    fn hosts_ask(&mut self) {
        for _ in 0..ASKING {
            self.next_offer += 1;
            let n = self.next_offer % HOSTS;
            let offer = host(n, OfferKey(self.next_offer), self.now + WAITS_MS);
            self.tell(Event::HostOffers(offer));
        }
    }

    /// Sends an event, and performs all its consequences.
    fn tell(&mut self, event: Event) {
        self.events.push_back(event);
        while let Some(event) = self.events.pop_front() {
            let begun = cpu_time();
            self.engine.on(Millis(self.now), event, &mut self.out);
            self.longest = self.longest.max(cpu_time().saturating_sub(begun));
            self.came.events += 1;
            let cached = self.engine.stats().cached_jobs;
            let cached = u32::try_from(cached).map_or(f64::MAX, f64::from);
            self.came.cached = self
                .came
                .cached
                .max(cached / f64::from(self.cache_jobs_max));
            for decision in std::mem::take(&mut self.out) {
                self.carry_out(decision);
            }
        }
    }

    fn carry_out(&mut self, decision: Decision) {
        match decision {
            Decision::Claim {
                job,
                version,
                offer,
            } => {
                self.waiting.remove(&self.place(job.0));
                self.by_number.remove(&job.0);
                self.came.claims += 1;
                let version = Version {
                    seq_no: version.seq_no + 1,
                    ..version
                };
                self.events.push_back(Event::ClaimCommitted {
                    job,
                    offer,
                    version,
                });
                self.events.push_back(Event::JobEnded {
                    job,
                    version,
                    ran: true,
                    at: Millis(u64::MAX),
                });
            }
            Decision::Pull {
                dimension,
                limit,
                after,
            } => self.pull(dimension, limit, after),
            Decision::Find {
                offer,
                pairs_max,
                after,
                ..
            } => self.find(offer, pairs_max, after.as_ref()),
            Decision::Answer { .. } | Decision::WakeAt(_) => {}
        }
    }

    /// Returns the waiting numbers after this one, as a pull does.
    fn pull(&mut self, dimension: Dimension, limit: u32, after: Option<Cursor>) {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let from = after.map_or(Bound::Unbounded, |after| Bound::Excluded(after.key.0));
        let numbers: Vec<u64> = match (&dimension, self.own) {
            (Dimension::Account(name) | Dimension::Queue(name), _) if name != "mallory" => {
                let n = name.get(1..).and_then(|n| n.parse().ok());
                n.into_iter()
                    .filter(|n| self.by_number.contains(n))
                    .collect()
            }
            (Dimension::HostKey(_), Own::HostKey) => Vec::new(),
            _ => {
                let all = self.by_number.range((from, Bound::Unbounded));
                all.copied().take(limit.saturating_add(1)).collect()
            }
        };
        let more = numbers.len() > limit;
        let numbers = numbers.into_iter().take(limit);
        let jobs: Vec<JobFacts> = numbers.map(|n| self.job(n)).collect();
        let page = PulledPage {
            reached: jobs.iter().map(reached).collect(),
            last: jobs.last().map(|job| Cursor {
                class: 3,
                priority: 0,
                key: job.key,
            }),
            jobs: Vec::new(),
            more,
        };
        self.learn(&jobs);
        let page = Some(page);
        self.events.push_back(Event::PullEnded { dimension, page });
    }

    /// Returns the jobs of the next pairs, which fit any host.
    fn find(&mut self, offer: OfferKey, pairs_max: u32, after: Option<&FindPlace>) {
        let most = usize::try_from(pairs_max).unwrap_or(usize::MAX);
        let mut numbers = Vec::new();
        let mut next = None;
        if self.own != Own::HostKey {
            let from = after.map_or(Bound::Unbounded, Bound::Excluded);
            let behind = self.waiting.range((from, Bound::Unbounded));
            let before = after.map(|after| self.waiting.range(..=after));
            let mut pairs = behind.chain(before.into_iter().flatten());
            let found: Vec<_> = pairs.by_ref().take(most).collect();
            if pairs.next().is_some() {
                next = found.last().map(|(place, _)| (*place).clone());
            }
            numbers.extend(found.into_iter().map(|(_, n)| *n));
        }
        let jobs: Vec<JobFacts> = numbers.into_iter().map(|n| self.job(n)).collect();
        self.learn(&jobs);
        self.events.push_back(Event::FindEnded {
            offer,
            needs_mb: 1_000,
            next,
        });
    }

    /// Tells the engine jobs in batches, as a replica does.
    fn learn(&mut self, jobs: &[JobFacts]) {
        for part in jobs.chunks(EVENT_JOBS_MAX) {
            self.events.push_back(Event::JobsLearned(part.to_vec()));
        }
    }

    /// Returns the counts of a store that names no more values than requested.
    fn counts(&self) -> DimensionCounts {
        let total = self.waiting.len() as u64;
        let most = usize::try_from(NAMES_MAX).unwrap_or(usize::MAX);
        let names = self.waiting.keys().take(most);
        let mut by = Vec::new();
        let mut pairs = Vec::new();
        let key = |n: u64| (Dimension::HostKey("vm.x86_64".to_owned()), n);
        match self.own {
            Own::Account => {
                by.extend(
                    names
                        .clone()
                        .map(|(_, name)| (Dimension::Account(name.clone()), 1)),
                );
                by.extend(names.map(|(name, _)| (Dimension::Queue(name.clone()), 1)));
                by.push(key(total));
            }
            Own::Queue => {
                by.push((Dimension::Account("mallory".to_owned()), total));
                by.extend(names.map(|(name, _)| (Dimension::Queue(name.clone()), 1)));
                by.push(key(total));
            }
            Own::HostKey => {
                by.push((Dimension::Account("mallory".to_owned()), total));
                by.push((Dimension::Queue("mallory".to_owned()), total));
                pairs.push(("mallory".to_owned(), "mallory".to_owned(), total));
            }
        }
        DimensionCounts {
            total,
            by,
            pairs,
            partial: self.own != Own::HostKey && self.waiting.len() > most,
            host_keys: Some(vec!["vm.x86_64".to_owned()]),
        }
    }

    /// Returns queue and account of a job.
    fn place(&self, n: u64) -> FindPlace {
        let mallory = || "mallory".to_owned();
        match self.own {
            Own::Account => (format!("a{n}"), format!("a{n}")),
            Own::Queue => (format!("q{n}"), mallory()),
            // These jobs differ only here.
            Own::HostKey => (mallory(), format!("{n}")),
        }
    }

    fn job(&self, n: u64) -> JobFacts {
        let (queue, account) = self.place(n);
        let (account, key) = match self.own {
            Own::Account | Own::Queue => (account, "vm.x86_64".to_owned()),
            Own::HostKey => (queue.clone(), format!("vm.x86_64@m{n}")),
        };
        JobFacts {
            key: JobKey(n),
            version: Version {
                primary_term: 1,
                seq_no: n,
            },
            queue,
            account,
            suite: "flood".to_owned(),
            class: 0,
            priority: 0,
            kind: Kind::Vm,
            arch: "x86_64".to_owned(),
            host_keys: vec![key],
            memory_mb: 1_000,
            cpus: 1,
            tags: vec![],
            devices: vec![],
            not_tags: vec![],
            any_of: vec![],
            not_on: vec![],
            cache_dirs: vec![],
            prefer: Vec::new(),
            timeout_s: 3_600,
            submitted: Millis(self.now),
            not_before: Millis(0),
        }
    }
}

fn reached(job: &JobFacts) -> Reached {
    Reached {
        queue: job.queue.clone(),
        account: job.account.clone(),
        priority: job.priority,
        key: job.key,
    }
}

/// Returns a host. Every other one is too small for the flood.
fn host(n: u64, key: OfferKey, waits_until: u64) -> Offer {
    let memory_mb = if n.is_multiple_of(2) { 8_000 } else { 500 };
    Offer {
        key,
        host: format!("h{n}"),
        free_memory_mb: memory_mb,
        total_memory_mb: memory_mb,
        free_cpus: 8,
        total_cpus: 8,
        owed: vec![],
        jobs_max: 4,
        waits_until: Millis(waits_until),
        load: None,
        used_last: None,
        about: Arc::new(About {
            accounts: vec![],
            group: "group".to_owned(),
            arch: "x86_64".to_owned(),
            keys: vec!["vm.x86_64".to_owned()],
            tags: vec![],
            devices: vec![],
            cache_dirs: vec![],
        }),
    }
}

/// Returns the processor time of this thread.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.unwrap_or_default(), nanos.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that bounds hold in a small flood, regardless of its duration.
    #[test]
    fn a_small_flood_of_names_keeps_its_bounds() {
        const CACHE: u32 = 5_000;
        const JOBS: u64 = 8_000;
        for own in [Own::Account, Own::Queue, Own::HostKey] {
            let mut flood = Flood::new(own, CACHE);
            let came = flood.run(JOBS, 1);
            assert!(came.cached <= 2.0, "{own}: {came:?}");
            assert_eq!(came.claims > 0, own != Own::HostKey, "{own}: {came:?}");
            let stats = flood.engine.stats();
            let looks = stats.eviction_looks / came.events;
            assert!(looks <= 4_000, "{own}: {stats:?}");
            let most = 2 * u64::from(CACHE) + 30_000;
            assert!(
                stats.members <= most && stats.queues <= most,
                "{own}: {stats:?}"
            );
        }
    }
}
