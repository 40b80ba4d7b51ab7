//! Hosts that ask an engine for jobs, and new jobs that replace the granted ones.
//!
//! A decision is one served offer and its committed claim: find the next job, take it out, charge it. The end of the
//! job, and the arrival of an equal new one, are not timed. Every host has asked before. Inputs are seeded.

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use anyhow::Context;
use fairlead_dispatch::{
    About, Decision, Engine, EngineConfig, Event, JobFacts, JobKey, Kind, Millis, Offer, OfferKey,
    Policy, Stats, Version,
};

use serde::{Deserialize, Serialize};

use fairlead_cluster::clock::now;

const ACCOUNTS: u64 = 300;
const SHAPES: u64 = 200;

/// Mix of the jobs' requirements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
pub(super) enum Mix {
    /// 200 shapes (vm, dc and hw on two architectures, 1 to 64 GB, some tags, some bound to a machine). The nth most
    /// common is 1/n as frequent as the first. The nth of 300 accounts has 1/n of the first one's jobs.
    Common,
    /// The same accounts; every job has a shape of its own by memory, tags or machine.
    Own,
    /// The 200 shapes, but none fits any host, for want of memory, tags or architecture.
    Nothing,
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Common => "common",
            Self::Own => "own",
            Self::Nothing => "nothing",
        })
    }
}

/// A seeded random generator.
struct Seed(u64);

impl Seed {
    /// Returns the generator of job `n`.
    fn of(n: u64) -> Self {
        let mut seed = Self(n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        seed.below(1);
        seed
    }

    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n.max(1)
    }

    /// Returns a skewed random number below `n`: 0 most often, the nth 1/n as often.
    fn skewed(&mut self, n: u64) -> u64 {
        let span = self.below(n) + 1;
        self.below(span)
    }
}

/// An engine, its hosts and their jobs.
pub(super) struct Lab {
    engine: Engine,
    /// Hosts, each with its job.
    hosts: Vec<(Offer, Option<JobKey>)>,
    host_count: u64,
    mix: Mix,
    seed: Seed,
    now: u64,
    last_job: u64,
    /// Jobs at the start that later ones resemble.
    like: HashMap<JobKey, u64>,
    next_offer: u64,
    out: Vec<Decision>,
    /// Number of jobs that were given to hosts.
    pub(super) claims: u64,
}

impl Lab {
    pub(super) fn new(mix: Mix, jobs: u64, hosts: u64) -> Self {
        let config = EngineConfig {
            cache_jobs_max: u32::MAX,
            ..EngineConfig::default()
        };
        let mut lab = Self {
            engine: Engine::new(config, Policy::default()),
            hosts: Vec::new(),
            host_count: hosts,
            mix,
            seed: Seed(1),
            now: 1_000_000,
            last_job: 0,
            like: HashMap::new(),
            next_offer: 0,
            out: Vec::new(),
            claims: 0,
        };
        // Every host has asked before, so its description is known.
        for n in 0..hosts {
            let (host, key) = (host(n, mix), lab.next_offer());
            lab.on(Event::HostOffers(Offer {
                key,
                ..host.clone()
            }));
            lab.on(Event::OfferWithdrawn(key));
            lab.hosts.push((host, None));
        }
        let mut left = jobs;
        while left > 0 {
            let batch: Vec<JobFacts> = (0..left.min(1_000)).map(|_| lab.job()).collect();
            left -= left.min(1_000);
            lab.on(Event::JobsLearned(batch));
        }
        lab
    }

    pub(super) fn stats(&self) -> Stats {
        self.engine.stats()
    }

    fn on(&mut self, event: Event) {
        self.out.clear();
        self.engine.on(Millis(self.now), event, &mut self.out);
    }

    /// Returns another job.
    fn job(&mut self) -> JobFacts {
        self.last_job += 1;
        self.facts(self.last_job)
    }

    /// Returns another job like the `nth`.
    fn job_like(&mut self, nth: u64) -> JobFacts {
        self.last_job += 1;
        let key = JobKey(self.last_job);
        self.like.insert(key, nth);
        JobFacts {
            key,
            ..self.facts(nth)
        }
    }

    fn facts(&self, n: u64) -> JobFacts {
        let mut seed = Seed::of(n);
        let account = format!("account{}", seed.skewed(ACCOUNTS));
        let shape = seed.skewed(SHAPES);
        let mut facts = common(n, account, shape, self.host_count);
        match self.mix {
            Mix::Common => {}
            Mix::Own => own(&mut facts, n),
            Mix::Nothing => match shape % 3 {
                0 => facts.memory_mb = 4_000_000,
                1 => facts.tags.push("nobody-has-it".to_owned()),
                _ => facts.arch.replace_range(.., "riscv64"),
            },
        }
        facts
    }

    /// Makes one decision for a host. Returns its duration.
    pub(super) fn decide(&mut self) -> anyhow::Result<Duration> {
        let chosen = self.seed.below(self.host_count);
        let host = self.hosts.get_mut(usize::try_from(chosen)?);
        let (host, held) = host.context("no host")?;
        let (mut offer, ended) = (host.clone(), held.take());
        self.now += 1;
        if let Some(job) = ended {
            let version = Version {
                primary_term: u64::MAX,
                ..Version::default()
            };
            self.on(Event::JobEnded {
                job,
                version,
                ran: true,
                at: Millis(u64::MAX),
            });
        }
        offer.key = self.next_offer();
        offer.waits_until = Millis(self.now);
        let key = offer.key;
        let begun = now();
        self.on(Event::HostOffers(offer));
        let given = self.commit();
        let took = begun.elapsed();
        let is_answer = |decision: &Decision| matches!(decision, Decision::Answer { offer, .. } if *offer == key);
        anyhow::ensure!(self.out.iter().any(is_answer), "an offer has no answer");
        if let Some(job) = given {
            self.claims += 1;
            if let Some((_, held)) = self.hosts.get_mut(usize::try_from(chosen)?) {
                *held = given;
            }
            let nth = self.like.remove(&job).unwrap_or(job.0);
            let job = self.job_like(nth);
            self.on(Event::JobsLearned(vec![job]));
        }
        Ok(took)
    }

    /// Commits the claim that was decided. Returns the job, if there was one.
    fn commit(&mut self) -> Option<JobKey> {
        let Some(&Decision::Claim {
            job,
            offer,
            version,
        }) = self.out.first()
        else {
            return None;
        };
        let version = Version {
            seq_no: version.seq_no + 1,
            ..version
        };
        let event = Event::ClaimCommitted {
            job,
            offer,
            version,
        };
        self.engine.on(Millis(self.now), event, &mut self.out);
        Some(job)
    }

    fn next_offer(&mut self) -> OfferKey {
        self.next_offer += 1;
        OfferKey(self.next_offer)
    }
}

fn common(n: u64, account: String, shape: u64, hosts: u64) -> JobFacts {
    let bound = (shape % 10 == 9).then_some(shape % hosts);
    // A job that is bound to a machine is of the machine's kind.
    let like = bound.unwrap_or(shape / 4);
    let arch = if like % 4 == 3 { "aarch64" } else { "x86_64" };
    let (kind, name) = match like % 3 {
        2 => (Kind::Hw, "hw"),
        _ if shape.is_multiple_of(2) => (Kind::Vm, "vm"),
        _ => (Kind::Dc, "dc"),
    };
    let key = match bound {
        Some(machine) => format!("{name}.{arch}@h{machine}"),
        None => format!("{name}.{arch}"),
    };
    let tags = if shape % 7 == 6 {
        vec![format!("tag{}", shape % 4)]
    } else {
        vec![]
    };
    JobFacts {
        not_tags: vec![],
        any_of: vec![],
        not_on: vec![],
        key: JobKey(n),
        version: Version {
            primary_term: 1,
            seq_no: n,
        },
        queue: account.clone(),
        account,
        suite: format!("suite{}", shape % 50),
        class: 0,
        priority: 0,
        kind,
        arch: arch.to_owned(),
        host_keys: vec![key],
        memory_mb: 1_000 << (shape / 16 % 7),
        cpus: 1 << (shape / 16 % 7),
        tags,
        devices: vec![],
        cache_dirs: vec![],
        prefer: vec![],
        timeout_s: 3_600,
        submitted: Millis(0),
        not_before: Millis(0),
    }
}

/// Makes a job's shape unique.
fn own(facts: &mut JobFacts, n: u64) {
    match n % 3 {
        0 => facts.memory_mb = 500 + (n % 100_000) as u32,
        1 => facts.tags.extend(
            (0..20)
                .filter(|bit| n >> bit & 1 == 1)
                .map(|bit| format!("tag{bit}")),
        ),
        _ => facts.host_keys.push(format!("machine{n}")),
    }
}

fn host(n: u64, mix: Mix) -> Offer {
    let arch = if n % 4 == 3 { "aarch64" } else { "x86_64" };
    let keys = if n % 3 == 2 {
        vec![
            format!("hw.{arch}"),
            format!("hw@h{n}"),
            format!("hw.{arch}@h{n}"),
            format!("hw@group{}", n % 10),
        ]
    } else {
        ["vm", "dc"]
            .iter()
            .flat_map(|kind| [format!("{kind}.{arch}"), format!("{kind}.{arch}@h{n}")])
            .collect()
    };
    let (total_memory_mb, total_cpus) = (64_000 << (n % 4), 64 << (n % 4));
    let tags = if mix != Mix::Own {
        4
    } else if n % 8 < 4 {
        20
    } else {
        12
    };
    Offer {
        key: OfferKey(0),
        host: format!("h{n}"),
        free_memory_mb: total_memory_mb,
        total_memory_mb,
        free_cpus: total_cpus,
        total_cpus,
        owed: vec![],
        jobs_max: 1,
        waits_until: Millis(0),
        load: None,
        used_last: None,
        about: Arc::new(About {
            accounts: vec![],
            group: format!("group{}", n % 10),
            arch: arch.to_owned(),
            keys,
            tags: (0..tags).map(|tag| format!("tag{tag}")).collect(),
            devices: vec![],
            cache_dirs: vec![],
        }),
    }
}
