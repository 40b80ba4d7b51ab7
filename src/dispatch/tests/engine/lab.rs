//! A small language for tests: a lab around an engine, with a clock that tests step.

use fairlead_dispatch::*;
use std::sync::Arc;

/// An engine, its clock, and what it decided last.
pub(crate) struct Lab {
    pub(crate) engine: Engine,
    pub(crate) now: u64,
    pub(crate) out: Vec<Decision>,
    next_offer: u64,
    seq_no: u64,
}

/// A vm job of 1,000 MB that any `x86_64` vm host could run.
pub(crate) fn job(key: u64, account: &str) -> JobFacts {
    JobFacts {
        key: JobKey(key),
        version: version(1),
        account: account.to_owned(),
        queue: account.to_owned(),
        suite: "suite".to_owned(),
        class: 0,
        priority: 0,
        kind: Kind::Vm,
        arch: String::new(),
        host_keys: vec!["vm.x86_64".to_owned()],
        memory_mb: 1_000,
        cpus: 1,
        tags: vec![],
        devices: vec![],
        not_tags: vec![],
        any_of: vec![],
        not_on: vec![],
        cache_dirs: vec![],
        prefer: vec![],
        timeout_s: 3_600,
        submitted: Millis(0),
        not_before: Millis(0),
    }
}

/// A job for a whole host.
pub(crate) fn hw(key: u64, account: &str) -> JobFacts {
    JobFacts {
        kind: Kind::Hw,
        host_keys: names("hw.x86_64"),
        ..job(key, account)
    }
}

/// In that queue.
pub(crate) fn queued(queue: &str, job: JobFacts) -> JobFacts {
    JobFacts {
        queue: queue.to_owned(),
        ..job
    }
}

pub(crate) fn version(seq_no: u64) -> Version {
    Version {
        primary_term: 1,
        seq_no,
    }
}

pub(crate) fn names(names: &str) -> Vec<String> {
    names.split_whitespace().map(str::to_owned).collect()
}

/// A host of 20,000 MB for vm jobs, that takes one job at a time and waits for a minute.
pub(crate) fn vm_host(host: &str) -> Offer {
    Offer {
        key: OfferKey(0),
        host: host.to_owned(),
        free_memory_mb: 20_000,
        free_cpus: CPUS_UNCHECKED,
        total_cpus: CPUS_UNCHECKED,
        total_memory_mb: 20_000,
        owed: vec![],
        jobs_max: 1,
        waits_until: Millis(u64::MAX),
        load: None,
        used_last: None,
        about: Arc::new(About {
            group: "group".to_owned(),
            arch: "x86_64".to_owned(),
            keys: vec!["vm.x86_64".to_owned(), format!("vm.x86_64@{host}")],
            tags: vec![],
            devices: vec![],
            cache_dirs: vec![],
            accounts: vec![],
        }),
    }
}

/// An offer of a host that says something else of itself.
pub(crate) fn saying(offer: Offer, change: impl FnOnce(&mut About)) -> Offer {
    let mut about = About::clone(&offer.about);
    change(&mut about);
    Offer {
        about: Arc::new(about),
        ..offer
    }
}

/// A machine of 20,000 MB.
pub(crate) fn hw_host(host: &str) -> Offer {
    saying(vm_host(host), |about| {
        about.keys = vec!["hw.x86_64".to_owned(), format!("hw@{host}")];
    })
}

pub(crate) fn queue(priority: u8, weight: u32) -> QueuePolicy {
    QueuePolicy {
        priority,
        weight,
        ..QueuePolicy::default()
    }
}

pub(crate) fn policy(queues: &[(&str, QueuePolicy)]) -> Policy {
    let mut policy = Policy::default();
    policy.queues.extend(
        queues
            .iter()
            .map(|(name, queue)| ((*name).to_owned(), *queue)),
    );
    policy
}

impl Lab {
    pub(crate) fn new() -> Self {
        Self::with(
            EngineConfig {
                cache_jobs_max: 10_000_000,
                ..EngineConfig::default()
            },
            Policy::default(),
        )
    }

    pub(crate) fn with(config: EngineConfig, policy: Policy) -> Self {
        Self {
            engine: Engine::new(config, policy),
            now: 1_000_000,
            out: vec![],
            next_offer: 1,
            seq_no: 1_000,
        }
    }

    /// Something happens; every index is checked after it.
    pub(crate) fn on(&mut self, event: Event) -> &[Decision] {
        self.on_unchecked(event);
        self.engine.sanity_check();
        &self.out
    }

    pub(crate) fn on_unchecked(&mut self, event: Event) -> &[Decision] {
        self.out.clear();
        self.engine.on(Millis(self.now), event, &mut self.out);
        &self.out
    }

    pub(crate) fn learn(&mut self, jobs: impl IntoIterator<Item = JobFacts>) -> &[Decision] {
        let submitted = Millis(self.now);
        let jobs = jobs
            .into_iter()
            .map(|job| JobFacts { submitted, ..job })
            .collect();
        self.on(Event::JobsLearned(jobs))
    }

    pub(crate) fn offer(&mut self, offer: Offer) -> OfferKey {
        let key = OfferKey(self.next_offer);
        self.next_offer += 1;
        self.on(Event::HostOffers(Offer { key, ..offer }));
        key
    }

    pub(crate) fn commit(&mut self, job: JobKey, offer: OfferKey) -> &[Decision] {
        self.seq_no += 1;
        let version = version(self.seq_no);
        self.on(Event::ClaimCommitted {
            job,
            offer,
            version,
        })
    }

    pub(crate) fn offer_unchecked(&mut self, offer: Offer) -> OfferKey {
        let key = OfferKey(self.next_offer);
        self.next_offer += 1;
        self.on_unchecked(Event::HostOffers(Offer { key, ..offer }));
        key
    }

    pub(crate) fn commit_unchecked(&mut self, job: JobKey, offer: OfferKey) -> &[Decision] {
        self.seq_no += 1;
        let version = version(self.seq_no);
        self.on_unchecked(Event::ClaimCommitted {
            job,
            offer,
            version,
        })
    }

    pub(crate) fn refuse(&mut self, job: JobKey, offer: OfferKey, refusal: Refusal) -> &[Decision] {
        self.on(Event::ClaimRefused {
            job,
            offer,
            refusal,
        })
    }

    pub(crate) fn end(&mut self, job: JobKey) -> &[Decision] {
        self.on(Event::JobEnded {
            job,
            version: version(u64::MAX),
            ran: true,
            at: Millis(u64::MAX),
        })
    }

    pub(crate) fn pass(&mut self, ms: u64) -> &[Decision] {
        self.now += ms;
        self.on(Event::Tick)
    }

    /// The jobs and offers of the claims just decided.
    pub(crate) fn claims(&self) -> Vec<(u64, u64)> {
        claims(&self.out)
    }

    /// The jobs just claimed.
    pub(crate) fn claimed(&self) -> Vec<u64> {
        self.claims().into_iter().map(|(job, _)| job).collect()
    }

    /// The answers just decided.
    pub(crate) fn answers(&self) -> Vec<(u64, Vec<u64>)> {
        let answer = |decision: &Decision| match decision {
            Decision::Answer { offer, jobs } => {
                Some((offer.0, jobs.iter().map(|job| job.0).collect()))
            }
            _ => None,
        };
        self.out.iter().filter_map(answer).collect()
    }

    /// The wake-up just asked for.
    pub(crate) fn wake(&self) -> Option<u64> {
        self.out.iter().rev().find_map(|decision| match decision {
            Decision::WakeAt(at) => Some(at.0),
            _ => None,
        })
    }

    /// The host asks, and what it gets is committed. Answers what it got.
    pub(crate) fn serve(&mut self, offer: Offer) -> Vec<u64> {
        let key = self.offer(offer);
        let jobs = self.claimed();
        for job in &jobs {
            self.commit(JobKey(*job), key);
        }
        if jobs.is_empty() {
            self.on(Event::OfferWithdrawn(key));
        }
        jobs
    }
}

pub(crate) fn claims(out: &[Decision]) -> Vec<(u64, u64)> {
    let claim = |decision: &Decision| match decision {
        Decision::Claim { job, offer, .. } => Some((job.0, offer.0)),
        _ => None,
    };
    out.iter().filter_map(claim).collect()
}

/// An alternative of tags that a host has, and has not.
pub(crate) fn alternative(tags: &str, not_tags: &str) -> Alternative<String> {
    Alternative {
        tags: names(tags).into(),
        not_tags: names(not_tags).into(),
    }
}

/// Whether a host could run a job, written anew.
pub(crate) fn able(job: &JobFacts, host: &Offer) -> bool {
    let about = &host.about;
    (about.accounts.is_empty() || about.accounts.contains(&job.account))
        && job.host_keys.iter().any(|key| about.keys.contains(key))
        && !job.not_on.contains(&host.host)
        && (job.arch.is_empty() || job.arch == about.arch)
        && job.tags.iter().all(|tag| about.tags.contains(tag))
        && job.not_tags.iter().all(|tag| !about.tags.contains(tag))
        && (job.any_of.is_empty()
            || job.any_of.iter().any(|one| {
                one.tags.iter().all(|tag| about.tags.contains(tag))
                    && one.not_tags.iter().all(|tag| !about.tags.contains(tag))
            }))
        && job
            .devices
            .iter()
            .all(|device| about.devices.contains(device))
        && job.memory_mb
            <= if job.kind == Kind::Hw {
                host.total_memory_mb
            } else {
                host.free_memory_mb
            }
        && job.cpus
            <= if job.kind == Kind::Hw {
                host.total_cpus
            } else {
                host.free_cpus
            }
}

/// A pull that brought nothing new.
pub(crate) fn pull_ended(dimension: Dimension, more: bool) -> Event {
    let page = PulledPage {
        more,
        ..PulledPage::default()
    };
    Event::PullEnded {
        dimension,
        page: Some(page),
    }
}

/// A find for this offer has ended, and nobody knows what its jobs need.
pub(crate) fn find_ended(offer: OfferKey) -> Event {
    Event::FindEnded {
        offer,
        needs_mb: u32::MAX,
        next: None,
    }
}
