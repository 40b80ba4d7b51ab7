//! A job's way from a decision to its end: claims, their outcomes, live jobs.

use crate::engine::Engine;
use crate::event::{Decision, Kind, Refusal, Running};
use crate::hosts::{Load, Standing};
use crate::ids::{HostId, JobKey, OfferKey, Owner, Version};
use crate::index::Removed;
use crate::interner::Atom;
use crate::ledger::{Charge, SHARE_MIN, WHOLE};
use crate::run_times::JobKind;
use crate::runs::{Flight, News, Run};
use crate::shape::{Env, Gate, Shape, View};

impl Engine {
    /// Claims a waiting job for an offer, and charges it.
    pub(crate) fn claim(&mut self, key: JobKey, offer: OfferKey, decisions: &mut Vec<Decision>) {
        let Some(host_id) = self.hosts.offers.get(&offer).map(|open| open.host) else {
            return;
        };
        let Some(host) = self.hosts.known.get(host_id) else {
            return;
        };
        let group = Atom::clone(&host.group);
        let whole = (host.view.total_mb, host.view.total_cpus);
        self.index.goes(key, true);
        let Some(Removed { job, owner, shape }) = self.index.remove(key) else {
            return;
        };
        self.gates.open(key);
        self.unreserve(key);
        let load = Load {
            kind: shape.kind,
            memory_mb: shape.memory_mb,
            cpus: shape.cpus,
        };
        let kind = JobKind {
            suite: &job.suite,
            class: job.class,
            group: &group,
        };
        let charge = self.charge(owner, load, whole, kind);
        self.ledger.job_waits_no_more(owner, self.now);
        self.note_low(owner.member);
        self.ledger.begin(key, &charge, self.now);
        self.hosts.claim(offer, key, load);
        decisions.push(Decision::Claim {
            job: key,
            version: job.version,
            offer,
        });
        self.serial = self.serial.saturating_add(1);
        let run = Run {
            host: host_id,
            suite: Atom::clone(&job.suite),
            class: job.class,
            group,
            owner,
            load,
            timeout_ms: job.timeout_ms,
            version: job.version,
            serial: self.serial,
            flight: Some(Box::new(Flight {
                offer,
                since: self.now,
                job,
                shape,
                news: News::Nothing,
            })),
            requeued: None,
        };
        self.runs.insert(key, run);
        self.in_flight = self.in_flight.saturating_add(1);
        self.touched.insert(offer);
    }

    /// The charge of a job: the larger one of its shares of the host's memory and CPUs.
    fn charge(
        &self,
        owner: Owner,
        load: Load,
        (total_mb, total_cpus): (u32, u32),
        kind: JobKind<'_>,
    ) -> Charge {
        let part =
            |of: u32, total: u32| u64::from(of).saturating_mul(WHOLE) / u64::from(total.max(1));
        let share = if load.kind == Kind::Hw {
            WHOLE
        } else {
            part(load.memory_mb, total_mb).max(part(load.cpus, total_cpus))
        };
        let share = share.clamp(SHARE_MIN, WHOLE);
        Charge {
            owner,
            price: self.ledger.price(share, kind.group),
            share,
            expected_ms: self.ledger.expect_ms(kind),
            since: None,
            overrun: false,
        }
    }

    /// Handles a committed claim.
    pub(crate) fn committed(&mut self, key: JobKey, offer: OfferKey, version: Version) {
        let Some(run) = self.runs.get_mut(&key) else {
            return;
        };
        let Some(flight) = run.flight.take_if(|flight| flight.offer == offer) else {
            return;
        };
        self.in_flight = self.in_flight.saturating_sub(1);
        run.version = run.version.max(version);
        let (host, load, serial, version) = (run.host, run.load, run.serial, run.version);
        run.requeued = run
            .requeued
            .take()
            .filter(|requeued| requeued.version > run.version);
        let is_put_back = run.requeued.is_some();
        // Charged from the decision on, as other replicas charge it: else short jobs would pay too little.
        self.ledger.start(key, flight.since, self.now);
        self.hosts.settle(offer, host, (serial, key), load, true);
        self.touched.insert(offer);
        // A job that waits at a later version was put back before this answer came.
        if is_put_back || matches!(flight.news, News::Ended) {
            self.job_ended(key, version, false, self.now);
        }
    }

    /// Handles a claim that the store refused or could not decide.
    pub(crate) fn refused(&mut self, key: JobKey, offer: OfferKey, refusal: Refusal) {
        let flight = self.runs.get(&key).and_then(|run| run.flight.as_ref());
        if flight.map(|flight| flight.offer) != Some(offer) {
            return;
        }
        let Some(run) = self.runs.swap_remove(&key) else {
            return;
        };
        let Some(flight) = run.flight else { return };
        self.in_flight = self.in_flight.saturating_sub(1);
        self.ledger.cancel(key, self.now);
        self.freshen_all(self.ledger.admitted_anew(run.owner));
        self.hosts
            .settle(offer, run.host, (run.serial, key), run.load, false);
        self.touched.insert(offer);
        let Flight {
            mut job,
            shape,
            news,
            ..
        } = *flight;
        match (news, refusal) {
            (News::Held(running), _) => self.job_held(running),
            (News::Ended, _) | (News::Nothing, Refusal::Gone) => {
                self.gone.note(key, job.version, false);
                if let Some(facts) = run.requeued {
                    self.learn(*facts);
                }
            }
            (News::Nothing, Refusal::Moved(version)) => match run.requeued {
                Some(facts) if facts.version >= version => self.learn(*facts),
                _ => {
                    job.version = version.max(job.version);
                    self.wait_again(
                        key,
                        Removed {
                            job,
                            owner: run.owner,
                            shape,
                        },
                        None,
                    );
                }
            },
            (News::Nothing, Refusal::Unavailable { until }) => {
                let until = Some(until.0).filter(|until| *until > self.now);
                self.wait_again(
                    key,
                    Removed {
                        job,
                        owner: run.owner,
                        shape,
                    },
                    until,
                );
            }
        }
        self.after_refusal(offer, refusal, run.host);
    }

    fn wait_again(&mut self, key: JobKey, was: Removed, blocked_until: Option<u64>) {
        let gate = if blocked_until.is_some() {
            Gate::Blocked
        } else {
            Gate::Open
        };
        if let Some(until) = blocked_until {
            self.gates.close(key, until);
        }
        self.ledger.job_waits(was.owner, self.now);
        let bucket = self.index.insert(
            key,
            was.job,
            was.owner,
            Shape {
                gate,
                ..(*was.shape).clone()
            },
        );
        self.freshen(bucket);
    }

    fn after_refusal(&mut self, offer: OfferKey, refusal: Refusal, host: HostId) {
        if let Some(open) = self
            .hosts
            .offers
            .get_mut(&offer)
            .filter(|open| open.standing == Standing::Open)
        {
            match refusal {
                Refusal::Gone | Refusal::Moved(_) => {
                    self.dirty.insert((open.since, offer));
                }
                Refusal::Unavailable { .. } => open.standing = Standing::Closing,
            }
        }
        self.host_has_room(host);
    }

    /// Serves the waiting offer of a host again, because a job left the host.
    pub(crate) fn host_has_room(&mut self, host: HostId) {
        let Some(open) = self.hosts.known.get(host).and_then(|host| host.open) else {
            return;
        };
        if let Some(offer) = self
            .hosts
            .offers
            .get(&open)
            .filter(|offer| offer.is_untouched())
        {
            self.dirty.insert((offer.since, open));
        }
    }

    /// Handles a waiting job that is gone. If a claim of it is in flight, the job does not wait again, whatever the
    /// result.
    pub(crate) fn job_gone(&mut self, key: JobKey, version: Version) {
        if let Some(run) = self.runs.get_mut(&key) {
            run.requeued.take_if(|facts| facts.version <= version);
            let flight = run.flight.as_mut();
            if let Some(flight) = flight.filter(|flight| flight.job.version <= version) {
                flight.news = News::Ended;
            }
        }
        let waiting = self.index.jobs.get(&key);
        if waiting.is_some_and(|job| job.version <= version) {
            self.drop_waiting(key);
            self.gone.note(key, version, false);
        }
    }

    /// A host has a job that this engine did not dispatch. An older state of a job that is just being claimed is no
    /// news: that job waited again since then.
    pub(crate) fn job_held(&mut self, running: Box<Running>) {
        let key = running.facts.key;
        if let Some(run) = self.runs.get_mut(&key) {
            let (version, claimed) = (running.facts.version, run.version);
            if let Some(flight) = run.flight.as_mut().filter(|_| version >= claimed) {
                run.requeued.take_if(|facts| facts.version < version);
                flight.news = News::Held(running);
            }
            return;
        }
        if self.gone.is_over(key, running.facts.version) {
            return;
        }
        self.index.goes(key, false);
        self.drop_waiting(key);
        let facts = &running.facts;
        let suite = self.atoms.get(&facts.suite);
        let group = self.atoms.get(&running.group);
        let total_mb = running.total_memory_mb.max(facts.memory_mb);
        let whose = (facts.queue.as_str(), facts.account.as_str());
        let owner = self.ledger.owner_of(&mut self.atoms, whose, self.now);
        let load = Load {
            kind: facts.kind,
            memory_mb: facts.memory_mb,
            cpus: facts.cpus,
        };
        let whole = (total_mb, running.total_cpus);
        let kind = JobKind {
            suite: &suite,
            class: facts.class,
            group: &group,
        };
        let charge = self.charge(owner, load, whole, kind);
        let since = running.since.0.min(self.now);
        self.ledger.begin(
            key,
            &Charge {
                since: Some(since),
                ..charge
            },
            self.now,
        );
        let host = self.hold_on_host(&running, load, total_mb);
        self.serial = self.serial.saturating_add(1);
        let run = Run {
            host,
            suite,
            class: facts.class,
            group,
            owner,
            load,
            timeout_ms: facts.timeout_s.saturating_mul(1_000),
            version: facts.version,
            serial: self.serial,
            flight: None,
            requeued: None,
        };
        self.runs.insert(key, run);
    }

    /// Notes that a host has a job. An unknown host is taken to have no more than the job says.
    fn hold_on_host(&mut self, running: &Running, load: Load, total_mb: u32) -> HostId {
        let facts = &running.facts;
        let name = self.atoms.get(&running.host);
        let group = self.atoms.get(&running.group);
        let arch = self.atoms.get(&facts.arch);
        let envs = &mut self.envs;
        let unknown = || {
            let env = envs.get(&Env {
                arch,
                tags: Box::default(),
                devices: Box::default(),
                accounts: Box::default(),
            });
            let (keys, caches) = (Box::default(), Box::default());
            let view = View {
                name: Atom::clone(&name),
                has: env.marks(),
                env,
                keys,
                caches,
                total_mb,
                free_mb: 0,
                total_cpus: running.total_cpus,
                free_cpus: 0,
                hw_open: true,
                shared_open: true,
            };
            (group, view)
        };
        self.hosts.hold(&name, facts.key, load, unknown)
    }

    /// Handles a job that was over for its host at `at`, in the state of this version.
    pub(crate) fn job_ended(&mut self, key: JobKey, version: Version, ran: bool, at: u64) {
        let run = self.runs.get_mut(&key);
        let Some(run) = run.filter(|run| version >= run.version) else {
            return;
        };
        if let Some(flight) = &mut run.flight {
            flight.news = News::Ended;
            return;
        }
        let Some(run) = self.runs.swap_remove(&key) else {
            return;
        };
        if let Some(took_ms) = self.ledger.end(key, at, self.now).filter(|_| ran) {
            let times = &mut self.ledger.run_times;
            times.note(&run.suite, run.class, &run.group, took_ms);
        }
        self.freshen_all(self.ledger.admitted_anew(run.owner));
        if let Some(host) = self.hosts.known.get_mut(run.host) {
            host.heard = self.now;
        }
        self.hosts.leave(run.host, key, run.load);
        self.gone.note(key, run.version, true);
        if let Some(facts) = run.requeued {
            self.learn(*facts);
        }
        self.host_has_room(run.host);
    }
}
