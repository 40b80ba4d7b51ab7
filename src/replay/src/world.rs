//! Jobs and hosts in virtual time: hosts ask for work as agents do, the engine decides, and each start is noted.
//!
//! It knows no trace and no lab: [`crate::machine`] and [`crate::history`] say which jobs and which hosts there are.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
    sync::Arc,
};

use fairlead_dispatch::{
    About, CPUS_UNCHECKED, Decision, EVENT_JOBS_MAX, Engine, EngineConfig, Event, JobFacts, JobKey,
    Millis, Offer, OfferKey, Policy, PulledPage, Version,
};

/// Time after the last arrival and the last end for which the engine may still wake up, ms. Jobs that have not started
/// by then never start.
const LINGERS_MS: u64 = 3_600_000;

/// A host without jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Name of the host.
    pub name: String,
    /// Description of the host.
    pub about: Arc<About>,
    /// Memory of the host, MB.
    pub memory_mb: u32,
    /// CPUs of the host. [`CPUS_UNCHECKED`]: not checked.
    pub cpus: u32,
    /// True if it runs one job at a time, which takes all of it.
    pub is_whole: bool,
}

/// Arrival of a job, and its resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Load {
    /// Time of the submit, ms.
    pub(crate) submit_ms: u64,
    /// Time for which a host has it, ms.
    pub(crate) run_ms: u64,
    /// Memory that it takes, MB.
    pub(crate) memory_mb: u32,
    /// CPUs that it takes.
    pub(crate) cpus: u32,
}

/// Start of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Start {
    /// Time, ms.
    pub(crate) at_ms: u64,
    /// Index of its host in the list of hosts.
    pub(crate) host: usize,
}

/// Rules of the dispatch.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    pub(crate) config: EngineConfig,
    pub(crate) policy: Policy,
    /// Interval at which a host asks again, ms. 0: after every event.
    pub(crate) asks_every_ms: u64,
    /// Maximum number of jobs in one answer.
    pub(crate) answer_jobs: u32,
    /// True if the engine learns run times.
    pub(crate) learns: bool,
}

/// Returns the start of each job. `None`: it never starts. Jobs arrive in this order, by their times. `facts` returns
/// the engine's facts about each; its key, version and time are filled in here.
pub(crate) fn run(
    rules: Rules,
    hosts: &[Host],
    loads: &[Load],
    facts: impl Fn(usize) -> JobFacts,
) -> Vec<Option<Start>> {
    let mut world = World::new(rules, hosts, loads);
    let mut coming = loads.iter().enumerate().peekable();
    loop {
        let arrival = coming.peek().map(|(_, load)| load.submit_ms);
        let end = world.ends.peek().map(|Reverse((at, _))| *at);
        let last = world.now.saturating_add(LINGERS_MS);
        let waits = world.waiting > 0;
        let wake = world.wake.filter(|at| waits && *at <= last);
        let Some(next) = [arrival, end, wake].into_iter().flatten().min() else {
            break;
        };
        world.advance(next);
        let mut news = Vec::new();
        while let Some((n, _)) = coming.next_if(|(_, load)| load.submit_ms <= world.now) {
            news.push(world.waits(n, facts(n)));
        }
        world.learn(news);
        world.serve();
    }
    world.starts
}

/// Remaining room of a host.
#[derive(Debug, Clone, Copy)]
struct Room {
    memory_mb: u32,
    cpus: u32,
    jobs: u32,
    /// True if it must ask again.
    changed: bool,
    asked_ms: u64,
}

struct World<'a> {
    rules: Rules,
    hosts: &'a [Host],
    loads: &'a [Load],
    engine: Engine,
    now: u64,
    /// Ends of running jobs, with their indices.
    ends: BinaryHeap<Reverse<(u64, usize)>>,
    starts: Vec<Option<Start>>,
    rooms: Vec<Room>,
    waiting: usize,
    offers: u64,
    versions: u64,
    wake: Option<u64>,
    todo: VecDeque<Decision>,
}

impl<'a> World<'a> {
    fn new(rules: Rules, hosts: &'a [Host], loads: &'a [Load]) -> Self {
        let jobs = u32::try_from(loads.len()).unwrap_or(u32::MAX);
        let config = EngineConfig {
            cache_jobs_max: jobs.max(64),
            ..rules.config
        };
        let room = |host: &Host| Room {
            memory_mb: host.memory_mb,
            cpus: host.cpus,
            jobs: 0,
            changed: true,
            asked_ms: 0,
        };
        Self {
            engine: Engine::new(config, rules.policy.clone()),
            rules,
            hosts,
            loads,
            now: loads.first().map_or(0, |first| first.submit_ms),
            ends: BinaryHeap::new(),
            starts: vec![None; loads.len()],
            rooms: hosts.iter().map(room).collect(),
            waiting: 0,
            offers: 0,
            versions: 0,
            wake: None,
            todo: VecDeque::new(),
        }
    }

    /// Moves the time forward. Jobs end, and hosts ask before others arrive, so that a job with a long wait may reserve
    /// a host.
    fn advance(&mut self, to: u64) {
        self.now = self.now.max(to);
        self.wake = self.wake.filter(|at| *at > self.now);
        self.end_due();
        let every_ms = self.rules.asks_every_ms;
        for room in &mut self.rooms {
            let age_ms = self.now.saturating_sub(room.asked_ms);
            room.changed |= age_ms >= every_ms;
        }
        self.serve();
    }

    fn version(&mut self) -> Version {
        self.versions += 1;
        Version {
            primary_term: 1,
            seq_no: self.versions,
        }
    }

    /// Notes that a job waits from now on.
    fn waits(&mut self, n: usize, facts: JobFacts) -> JobFacts {
        self.waiting += 1;
        JobFacts {
            key: key(n),
            version: self.version(),
            submitted: Millis(self.now),
            not_before: Millis(0),
            ..facts
        }
    }

    /// Tells the engine the jobs, in limited batches.
    fn learn(&mut self, jobs: Vec<JobFacts>) {
        let mut jobs = jobs.into_iter().peekable();
        while jobs.peek().is_some() {
            let part = jobs.by_ref().take(EVENT_JOBS_MAX).collect();
            self.tell(Event::JobsLearned(part));
        }
    }

    /// Ends the jobs whose time has come.
    fn end_due(&mut self) {
        while let Some(Reverse((at, n))) = self.ends.peek().copied() {
            if at > self.now {
                return;
            }
            self.ends.pop();
            let start = self.starts.get(n).copied().flatten();
            let room = start.and_then(|start| self.rooms.get_mut(start.host));
            if let (Some(load), Some(room)) = (self.loads.get(n), room) {
                room.memory_mb = room.memory_mb.saturating_add(load.memory_mb);
                if room.cpus != CPUS_UNCHECKED {
                    room.cpus = room.cpus.saturating_add(load.cpus);
                }
                room.jobs = room.jobs.saturating_sub(1);
                room.changed = true;
            }
            let ended = Event::JobEnded {
                job: key(n),
                version: self.version(),
                ran: self.rules.learns,
                at: Millis(at),
            };
            self.tell(ended);
        }
    }

    /// Lets hosts ask until nothing more starts.
    fn serve(&mut self) {
        self.tell(Event::Tick);
        loop {
            while let Some(decision) = self.todo.pop_front() {
                self.carry_out(decision);
            }
            let Some(host) = self.rooms.iter().position(|room| room.changed) else {
                return;
            };
            if let Some(offer) = self.offer(host) {
                self.tell(Event::HostOffers(offer));
            }
        }
    }

    /// Returns the offer of a host. `None`: it is full.
    fn offer(&mut self, at: usize) -> Option<Offer> {
        let (host, room) = (self.hosts.get(at)?, self.rooms.get_mut(at)?);
        room.changed = false;
        room.asked_ms = self.now;
        if host.is_whole && room.jobs > 0 {
            return None;
        }
        self.offers += 1;
        let hosts = self.hosts.len() as u64;
        Some(Offer {
            key: OfferKey(self.offers * hosts + at as u64),
            host: host.name.clone(),
            about: Arc::clone(&host.about),
            free_memory_mb: room.memory_mb,
            total_memory_mb: host.memory_mb,
            free_cpus: room.cpus,
            total_cpus: host.cpus,
            owed: Vec::new(),
            jobs_max: if host.is_whole {
                1
            } else {
                self.rules.answer_jobs
            },
            waits_until: Millis(u64::MAX),
            load: None,
            used_last: None,
        })
    }

    fn carry_out(&mut self, decision: Decision) {
        match decision {
            Decision::Claim { job, offer, .. } => {
                let version = self.version();
                self.tell(Event::ClaimCommitted {
                    job,
                    offer,
                    version,
                });
            }
            Decision::Answer { offer, jobs } => {
                let host = offer.0 % (self.hosts.len() as u64).max(1);
                let host = usize::try_from(host).unwrap_or(usize::MAX);
                for job in jobs {
                    self.begin(job, host);
                }
            }
            // The engine already knows all waiting jobs.
            Decision::Pull { dimension, .. } => {
                let page = Some(PulledPage::default());
                self.tell(Event::PullEnded { dimension, page });
            }
            Decision::Find { offer, .. } => self.tell(Event::FindEnded {
                offer,
                needs_mb: 0,
                next: None,
            }),
            Decision::WakeAt(at) => self.wake = Some(at.0),
        }
    }

    fn begin(&mut self, job: JobKey, host: usize) {
        let Some(n) = usize::try_from(job.0).ok().and_then(|n| n.checked_sub(1)) else {
            return;
        };
        let (Some(load), Some(start), Some(room)) = (
            self.loads.get(n),
            self.starts.get_mut(n),
            self.rooms.get_mut(host),
        ) else {
            return;
        };
        *start = Some(Start {
            at_ms: self.now,
            host,
        });
        room.memory_mb = room.memory_mb.saturating_sub(load.memory_mb);
        if room.cpus != CPUS_UNCHECKED {
            room.cpus = room.cpus.saturating_sub(load.cpus);
        }
        room.jobs += 1;
        room.changed = true;
        self.waiting = self.waiting.saturating_sub(1);
        let end = self.now.saturating_add(load.run_ms);
        self.ends.push(Reverse((end, n)));
    }

    fn tell(&mut self, event: Event) {
        let mut decisions = Vec::new();
        self.engine.on(Millis(self.now), event, &mut decisions);
        self.todo.extend(decisions);
    }
}

fn key(n: usize) -> JobKey {
    JobKey(n as u64 + 1)
}
