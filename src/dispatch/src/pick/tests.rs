//! Compares the picked job with the result of a comparison of all jobs.

use super::*;
use crate::event::{About, Decision, Event, JobFacts, Kind, Millis, Offer, OfferKey, Version};
use crate::requirement::CPUS_UNCHECKED;
use crate::{Engine, EngineConfig, Policy};
use std::sync::Arc;

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn small(&mut self, n: u32) -> u32 {
        u32::try_from(self.below(u64::from(n))).unwrap_or(0)
    }
}

fn facts(key: u64, random: &mut Random) -> JobFacts {
    let account = format!("a{}", random.below(30));
    let queue = if random.below(3) == 0 {
        "shared".to_owned()
    } else {
        account.clone()
    };
    let kind = if random.below(4) == 0 {
        Kind::Hw
    } else {
        Kind::Vm
    };
    let keys: &[&str] = if kind == Kind::Hw {
        &["hw"]
    } else {
        &["vm", "vm@h0", "vm@h1"]
    };
    let first = usize::try_from(random.below(keys.len() as u64)).unwrap_or(0);
    JobFacts {
        key: JobKey(key),
        version: Version::default(),
        account,
        queue,
        suite: "s".to_owned(),
        class: 0,
        priority: i16::try_from(random.below(3)).unwrap_or(0),
        kind,
        arch: String::new(),
        host_keys: keys
            .iter()
            .skip(first)
            .map(|key| (*key).to_owned())
            .collect(),
        memory_mb: 100 * (1 + random.small(400)),
        cpus: 1 + random.small(4),
        tags: (0..random.below(3))
            .map(|_| format!("t{}", random.below(4)))
            .collect(),
        devices: vec![],
        not_tags: vec![],
        any_of: vec![],
        not_on: vec![],
        cache_dirs: vec![],
        prefer: vec![],
        timeout_s: 60,
        submitted: Millis(0),
        not_before: Millis(0),
    }
}

fn host(n: u64, random: &mut Random) -> Offer {
    let free_memory_mb = 100 * random.small(200);
    let keys = if n % 3 == 2 {
        vec!["hw".to_owned(), "vm".to_owned()]
    } else {
        vec!["vm".to_owned(), format!("vm@h{n}")]
    };
    // Some hosts are kept for a few accounts.
    let kept = if n % 4 == 1 { 3 } else { 0 };
    let accounts = (0..kept).map(|_| format!("a{}", random.below(30)));
    let accounts = accounts.collect();
    let free_cpus = if n.is_multiple_of(5) {
        CPUS_UNCHECKED
    } else {
        random.small(9)
    };
    let total_cpus = free_cpus.max(8);
    Offer {
        key: OfferKey(0),
        host: format!("h{n}"),
        free_memory_mb,
        free_cpus,
        total_cpus,
        total_memory_mb: 30_000,
        owed: vec![],
        jobs_max: 1,
        waits_until: Millis(0),
        load: None,
        used_last: None,
        about: Arc::new(About {
            group: "g".to_owned(),
            arch: "x".to_owned(),
            keys,
            tags: (0..random.below(5)).map(|tag| format!("t{tag}")).collect(),
            devices: vec![],
            cache_dirs: vec![],
            accounts,
        }),
    }
}

fn known<'a>(engine: &'a Engine, host: &str) -> Option<&'a crate::hosts::Host> {
    engine.hosts.known.get(engine.hosts.id(host)?)
}

/// Every waiting job that fits, compared with every other.
fn naive(engine: &Engine, view: &View) -> Option<JobKey> {
    let ranked = engine.index.buckets.values().flat_map(|bucket| {
        let rank = || {
            let shape = &engine.index.shapes.get(bucket.shape)?.shape;
            let account = Some(engine.ledger.account(bucket.owner));
            first_obstacle(account, shape, view)
                .is_none()
                .then_some(())?;
            let queue = engine.ledger.queue_rank(bucket.owner.queue, engine.now)?;
            Some((
                queue,
                engine.ledger.member_rank(bucket.owner.member, engine.now)?,
            ))
        };
        let rank = rank();
        bucket
            .jobs
            .iter()
            .filter_map(move |place| Some((rank?, *place)))
    });
    ranked.min().map(|(_, (_, key))| key)
}

#[test]
fn the_next_job_is_the_one_that_a_comparison_of_all_finds() {
    let mut found = 0;
    for seed in 0..30 {
        let mut random = Random(seed);
        let config = EngineConfig {
            cache_jobs_max: 100_000,
            reserve_after_ms: 0,
            ..EngineConfig::default()
        };
        let mut engine = Engine::new(config, Policy::default());
        let mut out = vec![];
        let jobs = (0..20 + seed * 60)
            .map(|key| facts(key, &mut random))
            .collect();
        engine.on(Millis(1_000_000), Event::JobsLearned(jobs), &mut out);
        for round in 0..120 {
            let now = Millis(1_000_000 + round * 700);
            let offer = host(random.below(6), &mut random);
            let expected = {
                let mut open = Engine::new(config, Policy::default());
                let key = OfferKey(round + 1);
                // Names are compared by where they are: both have one table.
                std::mem::swap(&mut open.atoms, &mut engine.atoms);
                open.on(
                    now,
                    Event::HostOffers(Offer {
                        key,
                        ..offer.clone()
                    }),
                    &mut vec![],
                );
                std::mem::swap(&mut open.atoms, &mut engine.atoms);
                let mut view = known(&open, &offer.host).expect("a host").view.clone();
                if let Some(known) = known(&engine, &offer.host) {
                    let used = known
                        .runs
                        .iter()
                        .filter_map(|job| engine.runs.get(job))
                        .filter(|run| run.load.kind != Kind::Hw);
                    let (mut used_mb, mut used_cpus) = (0, 0);
                    for run in used {
                        used_mb += run.load.memory_mb;
                        used_cpus += run.load.cpus;
                    }
                    view.free_mb = view.free_mb.min(view.total_mb.saturating_sub(used_mb));
                    if view.total_cpus != CPUS_UNCHECKED {
                        let left = view.total_cpus.saturating_sub(used_cpus);
                        view.free_cpus = view.free_cpus.min(left);
                    }
                    view.hw_open = known.view.hw_open;
                    view.shared_open = known.view.shared_open;
                }
                engine.on(now, Event::Tick, &mut vec![]);
                naive(&engine, &view)
            };
            out.clear();
            engine.on(
                now,
                Event::HostOffers(Offer {
                    key: OfferKey(round + 1),
                    ..offer
                }),
                &mut out,
            );
            let claim = out.iter().find_map(|decision| match decision {
                Decision::Claim {
                    job,
                    offer,
                    version,
                } => Some((*job, *offer, *version)),
                Decision::Answer { .. }
                | Decision::Pull { .. }
                | Decision::Find { .. }
                | Decision::WakeAt(_) => None,
            });
            assert_eq!(
                claim.map(|claim| claim.0),
                expected,
                "seed {seed}, round {round}"
            );
            let Some((job, offer, version)) = claim else {
                continue;
            };
            found += 1;
            engine.on(
                now,
                Event::ClaimCommitted {
                    job,
                    offer,
                    version,
                },
                &mut out,
            );
            if random.below(3) > 0 {
                let running: Vec<JobKey> = engine.runs.keys().copied().collect();
                for job in running.into_iter().filter(|_| random.below(2) == 0) {
                    engine.on(
                        now,
                        Event::JobEnded {
                            job,
                            version: Version::default(),
                            ran: true,
                            at: Millis(u64::MAX),
                        },
                        &mut out,
                    );
                }
            }
            engine.sanity_check();
        }
    }
    assert!(found > 500, "{found}");
}
