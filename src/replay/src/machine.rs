//! A trace on one machine: its processors are the CPUs of one host, which asks for work whenever something changed.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
    sync::Arc,
};

use fairlead_dispatch::{
    About, Decision, EVENT_JOBS_MAX, Engine, EngineConfig, Event, JobFacts, JobKey, Kind, Millis,
    Offer, OfferKey, Policy, PulledPage, Version,
};

use crate::{Outcome, swf::TraceJob};

const HOST: &str = "machine";
const HOST_KEY: &str = "dc.any";
/// Most jobs of one answer: those of an instant come in several.
const ANSWER_JOBS: u32 = 256;

/// Where the engine's expectation of run times comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Estimates {
    /// The user said so.
    Requested,
    /// It is known: an upper bound of what estimates can bring.
    Actual,
    /// The engine learned it from the user's earlier jobs; before that, the user said so.
    Learned,
}

/// Whose jobs they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accounts {
    /// Each user has an account of equal weight.
    Users,
    /// All jobs are of one account: first come, first served.
    One,
}

/// How a trace is replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Processors of the machine, at least 1. Jobs that need more are left out.
    pub units: u32,
    /// What the engine expects.
    pub estimates: Estimates,
    /// Who is charged.
    pub accounts: Accounts,
    /// How long a job waits before it reserves the machine, ms; 0: it never does.
    pub reserve_after_ms: u64,
}

/// When each job of a trace began, and how many jobs need more units than there are: they are left out. The same trace
/// and rules give the same answer.
pub fn replay(jobs: &[TraceJob], rules: &Rules) -> (Vec<Outcome>, usize) {
    let fits = |job: &&TraceJob| job.units <= rules.units;
    let fitting: Vec<TraceJob> = jobs.iter().filter(fits).copied().collect();
    let left_out = jobs.len().saturating_sub(fitting.len());
    let mut machine = Machine::new(*rules, fitting.len());
    let mut coming = fitting.iter().enumerate().peekable();
    loop {
        let arrival = coming.peek().map(|(_, job)| job.submit_s * MS);
        let end = machine.ends.peek().map(|Reverse((at, _))| *at);
        let wake = machine.wake.filter(|_| machine.waiting > 0);
        let Some(next) = [arrival, end, wake].into_iter().flatten().min() else {
            break;
        };
        machine.now = machine.now.max(next);
        machine.end_due(&fitting);
        // It asks anew before others come: who has waited for long may reserve it.
        machine.changed = true;
        machine.serve(&fitting);
        let mut news = Vec::new();
        while let Some((n, job)) = coming.next_if(|(_, job)| job.submit_s * MS <= machine.now) {
            news.push(machine.facts(n, job));
        }
        machine.learn(news);
        machine.serve(&fitting);
    }
    let begun = fitting.iter().zip(&machine.starts);
    let outcomes = begun.filter_map(|(job, start)| {
        let start_s = (*start)? / MS;
        Some(Outcome { job: *job, start_s })
    });
    (outcomes.collect(), left_out)
}

/// Milliseconds of a second.
const MS: u64 = 1_000;
/// Memory of the machine, MB: there is enough for all.
const MEMORY_MB: u32 = 1 << 30;

struct Machine {
    rules: Rules,
    engine: Engine,
    now: u64,
    /// When jobs that run end, and which.
    ends: BinaryHeap<Reverse<(u64, usize)>>,
    starts: Vec<Option<u64>>,
    about: Arc<About>,
    used: u32,
    running: u32,
    waiting: usize,
    offers: u64,
    versions: u64,
    wake: Option<u64>,
    /// Whether the machine has to ask anew.
    changed: bool,
    todo: VecDeque<Decision>,
}

impl Machine {
    fn new(rules: Rules, jobs: usize) -> Self {
        let config = EngineConfig {
            cache_jobs_max: u32::try_from(jobs).unwrap_or(u32::MAX).max(64),
            reserve_after_ms: rules.reserve_after_ms,
            ..EngineConfig::default()
        };
        let about = About {
            keys: vec![HOST_KEY.to_owned()],
            ..About::default()
        };
        Self {
            rules,
            engine: Engine::new(config, Policy::default()),
            now: 0,
            ends: BinaryHeap::new(),
            starts: vec![None; jobs],
            about: Arc::new(about),
            used: 0,
            running: 0,
            waiting: 0,
            offers: 0,
            versions: 0,
            wake: None,
            changed: true,
            todo: VecDeque::new(),
        }
    }

    fn version(&mut self) -> Version {
        self.versions += 1;
        Version {
            primary_term: 1,
            seq_no: self.versions,
        }
    }

    fn facts(&mut self, n: usize, job: &TraceJob) -> JobFacts {
        let account = match self.rules.accounts {
            Accounts::Users => format!("user-{}", job.user),
            Accounts::One => "one".to_owned(),
        };
        let timeout_s = match self.rules.estimates {
            Estimates::Requested | Estimates::Learned => job.requested_s,
            Estimates::Actual => job.run_s,
        };
        self.waiting += 1;
        JobFacts {
            key: key(n),
            version: self.version(),
            queue: account.clone(),
            account,
            suite: format!("user-{}", job.user),
            class: 0,
            priority: 0,
            kind: Kind::Dc,
            arch: String::new(),
            host_keys: vec![HOST_KEY.to_owned()],
            memory_mb: 1,
            cpus: job.units,
            tags: Vec::new(),
            not_tags: Vec::new(),
            any_of: Vec::new(),
            devices: Vec::new(),
            not_on: Vec::new(),
            cache_dirs: Vec::new(),
            prefer: Vec::new(),
            timeout_s,
            submitted: Millis(self.now),
            not_before: Millis(0),
        }
    }

    /// Tells the engine of jobs, not too many at once.
    fn learn(&mut self, jobs: Vec<JobFacts>) {
        let mut jobs = jobs.into_iter().peekable();
        while jobs.peek().is_some() {
            let part = jobs.by_ref().take(EVENT_JOBS_MAX).collect();
            self.tell(Event::JobsLearned(part));
        }
    }

    /// Jobs whose time is up end.
    fn end_due(&mut self, jobs: &[TraceJob]) {
        while let Some(Reverse((at, n))) = self.ends.peek().copied() {
            if at > self.now {
                return;
            }
            self.ends.pop();
            if let Some(job) = jobs.get(n) {
                self.used = self.used.saturating_sub(job.units);
            }
            self.running = self.running.saturating_sub(1);
            self.changed = true;
            let ended = Event::JobEnded {
                job: key(n),
                ran: self.rules.estimates == Estimates::Learned,
                at: Millis(at),
            };
            self.tell(ended);
        }
    }

    /// The machine asks until nothing more begins.
    fn serve(&mut self, jobs: &[TraceJob]) {
        self.tell(Event::Tick);
        loop {
            while let Some(decision) = self.todo.pop_front() {
                self.carry_out(decision, jobs);
            }
            if !std::mem::take(&mut self.changed) {
                return;
            }
            let offer = self.offer();
            self.tell(Event::HostOffers(offer));
        }
    }

    fn offer(&mut self) -> Offer {
        self.offers += 1;
        Offer {
            key: OfferKey(self.offers),
            host: HOST.to_owned(),
            about: Arc::clone(&self.about),
            free_memory_mb: MEMORY_MB.saturating_sub(self.running),
            total_memory_mb: MEMORY_MB,
            free_cpus: self.rules.units.saturating_sub(self.used),
            total_cpus: self.rules.units,
            owed: Vec::new(),
            jobs_max: ANSWER_JOBS,
            waits_until: Millis(u64::MAX),
            load: None,
        }
    }

    fn carry_out(&mut self, decision: Decision, jobs: &[TraceJob]) {
        match decision {
            Decision::Claim { job, offer, .. } => {
                let version = self.version();
                self.tell(Event::ClaimCommitted {
                    job,
                    offer,
                    version,
                });
            }
            Decision::Answer { jobs: begun, .. } => {
                for job in begun {
                    self.begin(job, jobs);
                }
            }
            // All that waits is known.
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

    fn begin(&mut self, job: JobKey, jobs: &[TraceJob]) {
        let Some(n) = usize::try_from(job.0).ok().and_then(|n| n.checked_sub(1)) else {
            return;
        };
        let (Some(job), Some(start)) = (jobs.get(n), self.starts.get_mut(n)) else {
            return;
        };
        *start = Some(self.now);
        self.used = self.used.saturating_add(job.units);
        self.running += 1;
        self.waiting = self.waiting.saturating_sub(1);
        self.changed = true;
        let end = self.now.saturating_add(job.run_s * MS);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn job(number: u64, submit_s: u64, run_s: u64, units: u32) -> TraceJob {
        TraceJob {
            number,
            submit_s,
            run_s,
            units,
            requested_s: run_s,
            user: 1,
        }
    }

    fn starts(jobs: &[TraceJob], accounts: Accounts) -> Vec<u64> {
        let rules = Rules {
            units: 10,
            estimates: Estimates::Requested,
            accounts,
            reserve_after_ms: 1,
        };
        let (outcomes, left_out) = replay(jobs, &rules);
        assert_eq!(left_out, 0);
        outcomes.iter().map(|outcome| outcome.start_s).collect()
    }

    #[test]
    fn jobs_begin_when_there_is_room() {
        let jobs = [job(1, 0, 100, 6), job(2, 0, 50, 4), job(3, 10, 10, 10)];
        assert_eq!(starts(&jobs, Accounts::One), [0, 0, 100]);
    }

    #[test]
    fn a_job_passes_a_reservation_if_it_is_short_or_fits_beside_it() {
        let jobs = [
            job(1, 0, 100, 6),
            // It waits for the first one.
            job(2, 10, 100, 8),
            // It would end too late, and need what the second one needs.
            job(3, 20, 200, 3),
            // It fits beside the second one.
            job(4, 20, 1_000, 2),
            // It ends before.
            job(5, 20, 50, 1),
        ];
        assert_eq!(starts(&jobs, Accounts::One), [0, 100, 200, 20, 20]);
    }

    #[test]
    fn each_user_has_a_share() {
        let mut jobs: Vec<TraceJob> = (1..=20).map(|n| job(n, 0, 100, 10)).collect();
        let other = TraceJob {
            user: 2,
            ..job(21, 50, 100, 10)
        };
        jobs.push(other);
        assert_eq!(starts(&jobs, Accounts::Users).last(), Some(&100));
        assert_eq!(starts(&jobs, Accounts::One).last(), Some(&2_000));
    }

    #[test]
    fn what_is_too_large_is_left_out() {
        let rules = Rules {
            units: 10,
            estimates: Estimates::Actual,
            accounts: Accounts::One,
            reserve_after_ms: 0,
        };
        let (outcomes, left_out) = replay(&[job(1, 0, 5, 11), job(2, 0, 5, 10)], &rules);
        assert_eq!((outcomes.len(), left_out), (1, 1));
    }
}
