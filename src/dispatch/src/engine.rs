//! The engine's state and its one entry point, [`Engine::on`].
//!
//! Up to 30,000 waiting jobs are in memory by default, and a lab may have thousands of hosts that ask for work. To
//! compare every job with every host after each event would take millions of comparisons. To compare them now and then
//! would leave a host idle beside a job that fits it.
//!
//! So the engine keeps one rule: after every event, no waiting offer could take any cached, ready job. Then only news
//! needs a comparison: a new offer is compared with the jobs (`serve`, `pick`), a new job with the waiting offers
//! (`placing`). For example, ten offers wait because no cached job fits them. An eleventh offer looks for a job, and
//! the ten do not look again. A new job is compared with the eleven offers, and with no job.
//!
//! The engine has no clock, no randomness and no IO: a test or a simulation that repeats the events gets the same
//! decisions. Time never goes back here: an event with an older time happens now.

use crate::cache::Cache;
use crate::coverage::Coverage;
use crate::event::{Decision, Event, JobFacts, NOT_ON_MAX, Offer};
use crate::gates::Gates;
use crate::hosts::{Arrival, Hosts, Recency, Standing};
use crate::ids::{BucketId, HostId, JobKey, KeyId, MemberId, Millis, OfferKey};
use crate::index::{Index, Job, room_for};
use crate::interner::{Atom, Atoms, Interner};
use crate::kept_off::KeptOff;
use crate::ledger::Ledger;
use crate::peers::Peers;
use crate::pick::Work;
use crate::policy::{EngineConfig, Policy};
use crate::requirement::Alternative;
use crate::reserve::Reservations;
use crate::runs::{Gone, Runs};
use crate::shape::{Env, Gate, Shape, View};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Maximum number of jobs in one answer, whatever the host asks for.
const JOBS_PER_ANSWER_MAX: u32 = 256;

/// Time between two tidyings, ms.
const TIDY_EVERY_MS: u64 = 1_000;

/// Decides which waiting job goes to which offer. Synchronous and deterministic.
#[derive(Debug)]
pub struct Engine {
    pub(crate) config: EngineConfig,
    pub(crate) now: u64,
    pub(crate) atoms: Atoms,
    pub(crate) envs: Interner<Env>,
    /// Sets of keys that several hosts have in common.
    pub(crate) key_sets: Interner<[KeyId]>,
    pub(crate) ledger: Ledger,
    pub(crate) index: Index,
    pub(crate) hosts: Hosts,
    pub(crate) runs: Runs,
    pub(crate) gone: Gone,
    pub(crate) gates: Gates,
    pub(crate) kept_off: KeptOff,
    pub(crate) reservations: Reservations,
    pub(crate) peers: Peers,
    pub(crate) cache: Cache,
    pub(crate) coverage: Coverage,
    /// Claims that are not settled.
    pub(crate) in_flight: u64,
    /// Offers to look for jobs for, longest waiting first.
    pub(crate) dirty: BTreeSet<(u64, OfferKey)>,
    /// Buckets with jobs that no waiting offer was compared with.
    pub(crate) fresh: BTreeSet<BucketId>,
    /// Offers whose claims changed in this event.
    pub(crate) touched: BTreeSet<OfferKey>,
    pub(crate) serial: u64,
    pub(crate) work: Work,
    pub(crate) decisions_made: u64,
    tidied: u64,
    wake: Option<Millis>,
}

impl Engine {
    /// Creates an engine that knows only its limits and the policy.
    pub fn new(config: EngineConfig, policy: Policy) -> Self {
        // If each job has a queue of its own, the queues of ended jobs are kept for a while.
        let room = room_for(config.cache_jobs_max.saturating_mul(2));
        Self {
            config,
            now: 0,
            atoms: Atoms::default(),
            envs: Interner::default(),
            key_sets: Interner::default(),
            ledger: Ledger::new(policy, config.lag_max_ms, room),
            index: Index::with_room(config.cache_jobs_max),
            hosts: Hosts::default(),
            runs: Runs::default(),
            gone: Gone::default(),
            gates: Gates::default(),
            kept_off: KeptOff::default(),
            reservations: Reservations::new(),
            peers: Peers::default(),
            cache: Cache::default(),
            coverage: Coverage::default(),
            in_flight: 0,
            dirty: BTreeSet::new(),
            fresh: BTreeSet::new(),
            touched: BTreeSet::new(),
            serial: 0,
            work: Work::default(),
            decisions_made: 0,
            tidied: 0,
            wake: None,
        }
    }

    /// Handles an event at `now` and adds the resulting decisions, in order. `now` never goes back: an earlier time
    /// counts as the time of the last event.
    pub fn on(&mut self, now: Millis, event: Event, decisions: &mut Vec<Decision>) {
        let before = decisions.len();
        self.now = self.now.max(now.0);
        self.ledger.advance(self.now);
        self.open_gates();
        self.look_at_kept_off();
        self.handle(event, decisions);
        self.serve_impatient();
        self.serve_dirty(decisions);
        self.begin_finds(decisions);
        self.serve_dirty(decisions);
        self.place_fresh(decisions);
        self.refill(decisions);
        self.evict();
        self.ledger.forget_idle(self.now);
        self.answer_settled(decisions);
        if self.now.saturating_sub(self.tidied) >= TIDY_EVERY_MS {
            self.tidied = self.now;
            self.ledger.tidy(self.now);
            self.cache.tidy(self.now);
            self.coverage.tidy(
                |account| self.cache.is_counted(account),
                |member| self.ledger.members.contains_key(member),
            );
        }
        self.wake_up(decisions);
        self.decisions_made = self
            .decisions_made
            .saturating_add((decisions.len() - before) as u64);
    }

    fn handle(&mut self, event: Event, decisions: &mut Vec<Decision>) {
        match event {
            Event::JobsLearned(jobs) => jobs.into_iter().for_each(|facts| self.learn(facts)),
            Event::JobGone(job, version) => self.job_gone(job, version),
            Event::JobHeld(running) => self.job_held(running),
            Event::HostOffers(offer) => self.host_offers(&offer, decisions),
            Event::OfferClosing(offer) => self.end_offer(offer, Standing::Closing),
            Event::OfferWithdrawn(offer) => self.end_offer(offer, Standing::Withdrawn),
            Event::HostLeft(host) => self.host_left(&host),
            Event::HostLoaded { host, load } => self.host_load(&host, load),
            Event::HostsClosed(hosts) => self.hosts_closed(hosts),
            Event::ClaimCommitted {
                job,
                offer,
                version,
            } => self.committed(job, offer, version),
            Event::ClaimRefused {
                job,
                offer,
                refusal,
            } => self.refused(job, offer, refusal),
            Event::JobEnded {
                job,
                version,
                ran,
                at,
            } => self.job_ended(job, version, ran, at.0),
            Event::PolicyChanged(policy) => self.policy_changed(policy),
            Event::PeersChanged(peers) => self.peers = peers,
            Event::RunTimesRead(all) => {
                for stored in all {
                    self.ledger.run_times.restore(stored);
                }
            }
            Event::PullEnded { dimension, page } => self.pull_ended(&dimension, page, decisions),
            Event::FindEnded {
                offer,
                needs_mb,
                next,
            } => self.find_ended(offer, needs_mb, next),
            Event::CountsRefreshed(counts) => self.counts_refreshed(counts, decisions),
            Event::NewsRead => self.coverage.news_read(self.now),
            Event::NewsMissed => {
                self.cache.forget_finds();
                self.coverage.forget();
            }
            Event::Tick => {}
        }
    }

    fn open_gates(&mut self) {
        while let Some(key) = self.gates.due(self.now) {
            self.move_to_gate(key, Gate::Open);
        }
    }

    /// Moves a waiting job to another gate.
    pub(crate) fn move_to_gate(&mut self, key: JobKey, gate: Gate) {
        let Some(removed) = self.index.remove(key) else {
            return;
        };
        let shape = Shape {
            gate,
            ..(*removed.shape).clone()
        };
        let bucket = self.index.insert(key, removed.job, removed.owner, shape);
        self.freshen(bucket);
    }

    /// Notes news of a bucket: waiting offers are compared with it.
    pub(crate) fn freshen(&mut self, bucket: BucketId) {
        if self.hosts.listed > 0 {
            self.fresh.insert(bucket);
        }
    }

    /// Takes over the facts of a waiting job, unless the known ones are as new.
    pub(crate) fn learn(&mut self, facts: JobFacts) {
        let key = facts.key;
        if let Some(run) = self.runs.get_mut(&key) {
            let known = run
                .requeued
                .as_ref()
                .map_or(run.version, |requeued| requeued.version);
            if facts.version > known {
                run.requeued = Some(Box::new(facts));
            }
            return;
        }
        if self.gone.covers(key, facts.version) {
            return;
        }
        if self
            .index
            .jobs
            .get(&key)
            .is_some_and(|known| facts.version <= known.version)
        {
            return;
        }
        self.drop_waiting(key);
        let (mut job, mut shape) = self.job_of(&facts);
        if facts.not_before.0 > self.now {
            shape.gate = Gate::Blocked;
            self.gates.close(key, facts.not_before.0);
        } else if let Some((until, dirs)) = self.affine_until(&facts, &job, &shape) {
            shape.gate = Gate::Affine(dirs);
            self.gates.close(key, until);
        }
        job.submitted = job.submitted.min(self.now);
        let whose = (facts.queue.as_str(), facts.account.as_str());
        let owner = self.ledger.owner_of(&mut self.atoms, whose, self.now);
        self.ledger.job_waits(owner, self.now);
        let bucket = self.index.insert(key, job, owner, shape);
        self.freshen(bucket);
    }

    /// Returns the cached form of a job, and its shape.
    pub(crate) fn job_of(&mut self, facts: &JobFacts) -> (Job, Shape) {
        let liked: Vec<String> = facts
            .cache_dirs
            .iter()
            .chain(&facts.prefer)
            .cloned()
            .collect();
        let caches = (!liked.is_empty()).then(|| Arc::from(self.atoms.set(&liked)));
        let job = Job {
            version: facts.version,
            bucket: slotmap::Key::null(),
            submitted: facts.submitted.0,
            timeout_ms: facts.timeout_s.saturating_mul(1_000),
            suite: self.atoms.get(&facts.suite),
            class: facts.class,
            caches,
            priority: facts.priority,
        };
        (job, shape_of(&mut self.atoms, facts))
    }

    /// Drops a waiting job that is no longer cached. Returns its version.
    pub(crate) fn drop_waiting(&mut self, key: JobKey) -> Option<crate::event::Version> {
        let removed = self.index.remove(key)?;
        self.gates.open(key);
        self.ledger.job_waits_no_more(removed.owner, self.now);
        self.unreserve(key);
        Some(removed.job.version)
    }

    fn host_offers(&mut self, offer: &Offer, decisions: &mut Vec<Decision>) {
        if self.hosts.offers.contains_key(&offer.key) {
            return;
        }
        let known = self.hosts.id(&offer.host);
        let host = known.and_then(|id| self.hosts.known.get(id));
        // Equal references are the same value: then it is not read.
        let said = host.and_then(|host| host.about.as_ref());
        let as_before = known.filter(|_| said == Some(&offer.about));
        let was = host.map(|host| (host.is_loaded(), host.view.total_mb, host.view.total_cpus));
        if let Some(older) = host.and_then(|host| host.open) {
            self.supersede(older, decisions);
        }
        let owed = offer.owed.iter().filter_map(|job| {
            let run = self.runs.get(job)?;
            Some((*job, run.load))
        });
        let arrival = Arrival {
            owed: owed.collect(),
            free_mb: offer.free_memory_mb,
            total_mb: offer.total_memory_mb.max(offer.free_memory_mb),
            free_cpus: offer.free_cpus,
            total_cpus: offer.total_cpus.max(offer.free_cpus),
            jobs_max: offer.jobs_max.clamp(1, JOBS_PER_ANSWER_MAX),
            waits_until: offer.waits_until.0,
            load: offer.load,
            recency: Recency::of(offer.used_last),
        };
        let key = offer.key;
        let is_loaded = offer.load.is_some_and(|load| load.loaded);
        let now = (is_loaded, arrival.total_mb, arrival.total_cpus);
        let id = as_before.unwrap_or_else(|| self.describe(offer));
        self.hosts.open(key, id, &arrival, self.now);
        if as_before.is_none() || was != Some(now) {
            self.release_kept_off();
        }
        self.dirty.insert((self.now, key));
    }

    fn describe(&mut self, offer: &Offer) -> HostId {
        let about = &offer.about;
        let env = Env {
            arch: self.atoms.get(&about.arch),
            tags: self.atoms.set(&about.tags),
            devices: self.atoms.set(&about.devices),
            accounts: self.atoms.set(&about.accounts),
        };
        let (name, group) = (self.atoms.get(&offer.host), self.atoms.get(&about.group));
        let view = View {
            name: Atom::clone(&name),
            has: env.marks(),
            env: self.envs.get(&env),
            keys: self.atoms.set(&about.keys),
            caches: self.atoms.set(&about.cache_dirs),
            total_mb: 0,
            free_mb: 0,
            total_cpus: 0,
            free_cpus: 0,
            hw_open: true,
            shared_open: true,
        };
        self.hosts.describe(&name, group, view, Arc::clone(about))
    }

    /// Replaces an open offer by a newer one of the same host.
    fn supersede(&mut self, older: OfferKey, decisions: &mut Vec<Decision>) {
        let Some(open) = self.hosts.offers.get_mut(&older) else {
            return;
        };
        if open.is_untouched() {
            let answer = open.standing != Standing::Withdrawn;
            self.drop_offer(older);
            if answer {
                decisions.push(Decision::Answer {
                    offer: older,
                    jobs: Vec::new(),
                });
            }
            return;
        }
        if open.standing == Standing::Open {
            open.standing = Standing::Closing;
        }
        self.hosts.unlist(older);
    }

    /// Stops giving jobs to an offer.
    fn end_offer(&mut self, offer: OfferKey, standing: Standing) {
        let Some(open) = self.hosts.offers.get_mut(&offer) else {
            return;
        };
        if open.standing != Standing::Withdrawn {
            open.standing = standing;
        }
        self.hosts.unlist(offer);
        self.touched.insert(offer);
    }

    fn host_left(&mut self, host: &str) {
        let Some(id) = self.hosts.id(host) else {
            return;
        };
        if let Some(open) = self.hosts.known.get(id).and_then(|host| host.open) {
            self.end_offer(open, Standing::Withdrawn);
            self.settle_offer(open, &mut Vec::new());
        }
        self.hosts.forget(id);
        self.release_kept_off();
        self.reservations
            .retain(|_, reservation| reservation.host != id);
    }

    fn policy_changed(&mut self, policy: Policy) {
        let resumed = self.ledger.set_policy(policy, self.now);
        self.freshen_all(resumed);
    }

    /// Notes news of all buckets of these members: their jobs may be dispatched again.
    pub(crate) fn freshen_all(&mut self, members: Vec<MemberId>) {
        let buckets = members
            .into_iter()
            .flat_map(|member| self.index.buckets_of(member));
        self.fresh.extend(buckets.map(|(id, _)| id));
    }

    /// Answers offers whose claims are settled, and those whose time is up.
    fn answer_settled(&mut self, decisions: &mut Vec<Decision>) {
        while let Some(offer) = self.touched.pop_first() {
            self.settle_offer(offer, decisions);
        }
        let now = self.now;
        while let Some((_, offer)) = self
            .hosts
            .deadlines
            .first()
            .filter(|(at, _)| *at <= now)
            .copied()
        {
            self.close(offer, decisions);
        }
    }

    fn settle_offer(&mut self, offer: OfferKey, decisions: &mut Vec<Decision>) {
        let Some(open) = self.hosts.offers.get(&offer) else {
            return;
        };
        if open.in_flight > 0 {
            // Jobs that come now go to other offers, so that this offer is answered soon.
            self.hosts.unlist(offer);
        } else if open.standing != Standing::Open || !open.committed.is_empty() {
            self.close(offer, decisions);
        }
    }

    fn close(&mut self, offer: OfferKey, decisions: &mut Vec<Decision>) {
        let Some(mut open) = self.drop_offer(offer) else {
            return;
        };
        if open.standing != Standing::Withdrawn {
            open.committed.sort_unstable();
            let jobs = open.committed.into_iter().map(|(_, job)| job).collect();
            decisions.push(Decision::Answer { offer, jobs });
        }
    }

    fn wake_up(&mut self, decisions: &mut Vec<Decision>) {
        let next = [
            self.gates.next().map(Millis),
            self.kept_off.next().map(Millis),
            self.hosts.next_deadline(),
            self.next_fetch().map(Millis),
        ]
        .into_iter()
        .flatten()
        .min();
        if next == self.wake {
            return;
        }
        self.wake = next;
        decisions.extend(next.map(Decision::WakeAt));
    }
}

/// The shape of a job that nothing keeps back.
pub(crate) fn shape_of(atoms: &mut Atoms, facts: &JobFacts) -> Shape {
    let first = facts.not_on.len().saturating_sub(NOT_ON_MAX);
    Shape {
        kind: facts.kind,
        gate: Gate::Open,
        memory_mb: facts.memory_mb,
        cpus: facts.cpus,
        arch: atoms.get(&facts.arch),
        keys: atoms.set(&facts.host_keys),
        tags: atoms.set(&facts.tags),
        not_tags: atoms.set(&facts.not_tags),
        any_of: facts
            .any_of
            .iter()
            .map(|one| Alternative {
                tags: atoms.set(&one.tags),
                not_tags: atoms.set(&one.not_tags),
            })
            .collect(),
        devices: atoms.set(&facts.devices),
        not_on: atoms.set(facts.not_on.get(first..).unwrap_or_default()),
    }
}
