//! Compares random events with a model that recomputes everything from scratch, and checks properties of every
//! decision.

mod promises;

use crate::lab::*;
use crate::random::{ACCOUNTS, HOSTS, random_job, random_load, random_offer};
use crate::steps::{Step, step};
use fairlead_dispatch::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// What the model knows of a job.
#[derive(Debug, Clone)]
struct KnownJob {
    facts: JobFacts,
    place: Place,
}

#[derive(Debug, Clone, PartialEq)]
enum Place {
    Waiting,
    InFlight(OfferKey),
    Held(String),
    Over,
}

/// An engine, and the naive model beside it.
struct World {
    lab: Lab,
    jobs: BTreeMap<JobKey, KnownJob>,
    offers: BTreeMap<OfferKey, (Offer, u32)>,
    /// Offers that the engine has not answered, with what was committed for them.
    open: BTreeMap<OfferKey, Vec<JobKey>>,
    withdrawn: Vec<OfferKey>,
    policy: Policy,
    finds: Vec<OfferKey>,
    pulls: Vec<Dimension>,
    next_job: u64,
    seq_no: u64,
    trace: Vec<Decision>,
    /// Everything is known to be in memory.
    complete: bool,
    /// Claims of this event on hosts that had nothing.
    alone: Vec<(JobKey, OfferKey)>,
    /// How often queues with a share of dispatches were passed over since they had a job dispatched.
    passed: BTreeMap<String, u32>,
    /// Hosts that are loaded, as they said last.
    loaded: BTreeSet<String>,
    /// Hosts that get no jobs.
    closed: BTreeSet<String>,
}

impl World {
    fn new(cache_jobs_max: u32) -> Self {
        let config = EngineConfig {
            cache_jobs_max,
            reserve_after_ms: 0,
            ..EngineConfig::default()
        };
        Self {
            lab: Lab::with(config, Policy::default()),
            jobs: BTreeMap::new(),
            offers: BTreeMap::new(),
            open: BTreeMap::new(),
            withdrawn: vec![],
            policy: Policy::default(),
            finds: vec![],
            pulls: vec![],
            next_job: 1,
            seq_no: 10,
            trace: vec![],
            complete: true,
            alone: vec![],
            passed: BTreeMap::new(),
            loaded: BTreeSet::new(),
            closed: BTreeSet::new(),
        }
    }

    fn facts(&mut self, numbers: (u8, u8, u8, i16)) -> JobFacts {
        let key = self.next_job;
        self.next_job += 1;
        JobFacts {
            version: version(self.seq_no),
            ..random_job(key, numbers, self.lab.now)
        }
    }

    fn nth_job(&self, n: u8, is: impl Fn(&Place) -> bool) -> Option<JobKey> {
        let fit: Vec<JobKey> = self
            .jobs
            .iter()
            .filter(|(_, job)| is(&job.place))
            .map(|(key, _)| *key)
            .collect();
        fit.get(usize::from(n) % fit.len().max(1)).copied()
    }

    fn flight(&self, n: u8) -> Option<(JobKey, OfferKey)> {
        let job = self.nth_job(n, |place| matches!(place, Place::InFlight(_)))?;
        match self.jobs[&job].place {
            Place::InFlight(offer) => Some((job, offer)),
            _ => None,
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Learn(jobs) => {
                let facts: Vec<JobFacts> = jobs.into_iter().map(|job| self.facts(job)).collect();
                for facts in &facts {
                    let (facts, place) = (facts.clone(), Place::Waiting);
                    self.jobs.insert(facts.key, KnownJob { facts, place });
                }
                // A page may hold what is known already, in any state.
                let stale = self.jobs.values().next().map(|known| known.facts.clone());
                self.event(Event::JobsLearned(facts.into_iter().chain(stale).collect()));
            }
            Step::Offer(host, how) => {
                let offer = random_offer(host, how, self.lab.now);
                let key = OfferKey(self.offers.len() as u64 + 1);
                self.hears_load(&offer.host, offer.load);
                self.offers.insert(
                    key,
                    (
                        Offer {
                            key,
                            ..offer.clone()
                        },
                        0,
                    ),
                );
                self.open.insert(key, vec![]);
                self.event(Event::HostOffers(Offer { key, ..offer }));
            }
            Step::Commit(n) => {
                let Some((job, offer)) = self.flight(n) else {
                    return;
                };
                self.seq_no += 1;
                let version = version(self.seq_no);
                let host = self.offers[&offer].0.host.clone();
                let known = self.jobs.get_mut(&job).expect("a known job");
                known.place = Place::Held(host);
                known.facts.version = version;
                if let Some(committed) = self.open.get_mut(&offer) {
                    committed.push(job);
                }
                self.event(Event::ClaimCommitted {
                    job,
                    offer,
                    version,
                });
            }
            Step::Refuse(n, how) => self.refuse(n, how),
            Step::End(n) => {
                let Some(job) = self.nth_job(n, |place| matches!(place, Place::Held(_))) else {
                    return;
                };
                self.jobs.get_mut(&job).expect("a known job").place = Place::Over;
                self.event(Event::JobEnded {
                    job,
                    version: version(u64::MAX),
                    ran: n % 4 > 0,
                    at: Millis(u64::MAX),
                });
            }
            Step::Gone(n) => {
                let Some(job) = self.nth_job(n, |place| *place == Place::Waiting) else {
                    return;
                };
                self.jobs.get_mut(&job).expect("a known job").place = Place::Over;
                self.event(Event::JobGone(job, version(self.seq_no)));
            }
            Step::Withdraw(n) => {
                let open: Vec<OfferKey> = self.open.keys().copied().collect();
                let Some(offer) = open.get(usize::from(n) % open.len().max(1)).copied() else {
                    return;
                };
                if n >= 128 {
                    return self.event(Event::OfferClosing(offer));
                }
                self.open.remove(&offer);
                self.withdrawn.push(offer);
                self.event(Event::OfferWithdrawn(offer));
            }
            Step::Leave(host) => {
                let host = format!("h{}", host % HOSTS);
                let offers = &self.offers;
                let newest = offers
                    .values()
                    .filter(|(offer, _)| offer.host == host)
                    .map(|(offer, _)| offer.key)
                    .max();
                self.open.retain(|key, _| Some(*key) != newest);
                self.event(Event::HostLeft(host));
            }
            Step::Load(host, how) => {
                let (host, load) = (format!("h{}", host % HOSTS), random_load(how));
                let hosts = self.lab.engine.hosts();
                let known = hosts.iter().find(|known| known.name == host);
                // One that recovers says so when it asks.
                if known.is_some_and(|known| load.loaded || known.asking.is_none()) {
                    self.hears_load(&host, Some(load));
                }
                self.event(Event::HostLoaded { host, load });
            }
            Step::Close(which) => {
                let names = (0..HOSTS).filter(|n| which % 3 == 0 && which / 8 == *n);
                self.closed = names.map(|n| format!("h{n}")).collect();
                self.event(Event::HostsClosed(self.closed.clone()));
            }
            Step::Held(n) => self.held_elsewhere(n),
            Step::Requeue(n) => {
                let Some(job) = self.nth_job(n, |place| *place == Place::Over) else {
                    return;
                };
                self.seq_no += 1;
                let known = self.jobs.get_mut(&job).expect("a known job");
                known.facts.version = version(self.seq_no);
                known.place = Place::Waiting;
                let facts = known.facts.clone();
                self.event(Event::JobsLearned(vec![facts]));
            }
            Step::Policy(queue, class, weight) => self.set_policy(queue, class, weight),
            Step::Counts(more) => self.counts(u64::from(more % 300)),
            Step::FindsEnd => {
                for offer in std::mem::take(&mut self.finds) {
                    self.event(find_ended(offer));
                }
            }
            Step::PullsEnd => {
                for dimension in std::mem::take(&mut self.pulls) {
                    self.event(pull_ended(dimension, true));
                }
            }
            Step::Pass(ms) => {
                self.lab.now += u64::from(ms);
                self.event(Event::Tick);
            }
        }
    }

    fn hears_load(&mut self, host: &str, load: Option<HostLoad>) {
        if load.is_some_and(|load| load.loaded) {
            self.loaded.insert(host.to_owned());
        } else {
            self.loaded.remove(host);
        }
    }

    fn set_policy(&mut self, queue: u8, class: u8, weight: u8) {
        let name = ["vip", "idle", "shared", "a", "b", "c"][usize::from(queue % 6)];
        let (priority, weight, paused) = (class % 12, u32::from(weight), class % 5 == 4);
        self.policy.queues.insert(
            name.to_owned(),
            QueuePolicy {
                priority,
                weight,
                paused,
                background_permille: u16::from(class % 6) * 100,
            },
        );
        self.passed.clear();
        // Some are limited, for a while.
        let allowance = |n| Allowance {
            running_hard: (n % 3 > 0).then_some(u64::from(n % 5)),
            running_soft: (n % 3 < 2).then_some(u64::from(n % 4)),
            behind: n % 7 == 0,
            spent: n % 11 == 10,
        };
        let account = ACCOUNTS[usize::from(class % 4)].to_owned();
        match class / 12 % 4 {
            0 => drop(
                self.policy
                    .queue_limits
                    .insert(name.to_owned(), allowance(weight)),
            ),
            1 => drop(
                self.policy
                    .account_limits
                    .insert(account, allowance(weight)),
            ),
            2 => drop(self.policy.queue_limits.remove(name)),
            _ => drop(self.policy.account_limits.remove(&account)),
        }
        self.event(Event::PolicyChanged(self.policy.clone()));
    }

    fn counts(&mut self, more: u64) {
        let waiting = self.lab.engine.stats().cached_jobs;
        let by = ["vm.x86_64", "dc.x86_64", "hw.x86_64"]
            .map(|key| (Dimension::HostKey(key.to_owned()), waiting + more));
        self.complete &= more == 0;
        self.event(Event::CountsRefreshed(DimensionCounts {
            total: waiting + more,
            by: by.to_vec(),
            pairs: Vec::new(),
            partial: false,
            host_keys: None,
        }));
    }

    fn held_elsewhere(&mut self, n: u8) {
        let Some(job) = self.nth_job(n, |place| *place == Place::Waiting) else {
            return;
        };
        self.seq_no += 1;
        let known = self.jobs.get_mut(&job).expect("a known job");
        known.facts.version = version(self.seq_no);
        known.place = Place::Held("elsewhere".to_owned());
        let since = Millis(self.lab.now.saturating_sub(u64::from(n) * 50));
        let facts = known.facts.clone();
        self.event(Event::JobHeld(Box::new(Running {
            facts,
            host: "elsewhere".to_owned(),
            group: "group".to_owned(),
            total_memory_mb: 64_000,
            total_cpus: CPUS_UNCHECKED,
            since,
        })));
    }

    fn refuse(&mut self, n: u8, how: u8) {
        let Some((job, offer)) = self.flight(n) else {
            return;
        };
        self.seq_no += 1;
        let known = self.jobs.get_mut(&job).expect("a known job");
        let refusal = match how % 3 {
            0 => Refusal::Gone,
            1 => Refusal::Moved(version(self.seq_no)),
            _ => Refusal::Unavailable {
                until: Millis(self.lab.now + u64::from(how) * 10),
            },
        };
        known.place = if refusal == Refusal::Gone {
            Place::Over
        } else {
            Place::Waiting
        };
        if let Refusal::Moved(version) = refusal {
            known.facts.version = version;
        }
        self.event(Event::ClaimRefused {
            job,
            offer,
            refusal,
        });
    }

    fn event(&mut self, event: Event) {
        self.alone.clear();
        let asks = match &event {
            Event::HostOffers(offer) => Some(offer.key),
            _ => None,
        };
        let comes = matches!(event, Event::JobsLearned(_));
        let out = self.lab.on(event).to_vec();
        self.trace.extend(out.iter().cloned());
        for decision in out {
            match decision {
                Decision::Claim {
                    job,
                    version,
                    offer,
                } => {
                    if comes {
                        self.check_packing(job, offer);
                    }
                    self.check_claim(job, version, offer);
                }
                Decision::Answer { offer, jobs } => {
                    let committed = self.open.remove(&offer);
                    let mut committed = committed
                        .unwrap_or_else(|| panic!("{offer:?} was answered twice, or never open"));
                    let mut answered = jobs.clone();
                    committed.sort_unstable();
                    answered.sort_unstable();
                    assert_eq!(answered, committed);
                }
                Decision::Find { offer, .. } => self.finds.push(offer),
                Decision::Pull { dimension, .. } => self.pulls.push(dimension),
                Decision::WakeAt(at) => assert!(at.0 > self.lab.now, "a wake-up in the past"),
            }
        }
        for (job, offer) in std::mem::take(&mut self.alone) {
            self.check_order(job, offer);
            if asks == Some(offer) {
                self.check_background(job, offer);
            }
        }
    }
}

fn live(steps: Vec<Step>, cache_jobs_max: u32) -> Vec<Decision> {
    let mut world = World::new(cache_jobs_max);
    for step in steps {
        world.take(step);
        if cache_jobs_max > 64 {
            world.check_quiet();
        }
    }
    world.trace
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_histories_keep_every_promise(steps in proptest::collection::vec(step(), 1..80)) {
        live(steps, 100_000);
    }

    #[test]
    fn random_histories_of_a_partial_cache_keep_every_promise(steps in proptest::collection::vec(step(), 1..120)) {
        live(steps, 64);
    }

    #[test]
    fn the_same_events_give_the_same_decisions(steps in proptest::collection::vec(step(), 1..80)) {
        prop_assert_eq!(live(steps.clone(), 64), live(steps, 64));
    }
}
