//! Tests of explanations: why a job waits, and why a host is idle.

use crate::lab::*;
use fairlead_dispatch::*;

fn explained(lab: &Lab, key: u64) -> JobExplanation {
    lab.engine
        .explain_job(Millis(lab.now), JobKey(key))
        .expect("a known job")
}

fn reasons(explained: &JobExplanation, host: &str) -> Vec<Reason> {
    let verdict = explained.hosts.iter().find(|verdict| verdict.host == host);
    verdict
        .map(|verdict| verdict.reasons.clone())
        .expect("a known host")
}

#[test]
fn each_host_says_what_it_lacks() {
    let mut lab = Lab::new();
    lab.offer(saying(vm_host("other-arch"), |about| {
        about.arch = "aarch64".to_owned();
    }));
    lab.offer(Offer {
        free_memory_mb: 2_000,
        ..vm_host("full")
    });
    lab.offer(hw_host("machine"));
    lab.offer(saying(vm_host("untagged"), |about| {
        about.tags = names("ssd");
    }));
    let needy = JobFacts {
        arch: "x86_64".to_owned(),
        memory_mb: 3_000,
        tags: names("ssd rt"),
        devices: names("gpu"),
        ..job(1, "a")
    };
    lab.learn([needy]);
    let why = explained(&lab, 1);
    assert_eq!(
        (
            why.state.clone(),
            why.hosts_known,
            why.hosts_able,
            why.hosts_ready
        ),
        (JobState::Waiting, 4, 0, 0)
    );
    let (rt, gpu) = (
        Reason::Tags {
            missing: names("rt"),
        },
        Reason::Devices {
            missing: names("gpu"),
        },
    );
    assert_eq!(reasons(&why, "untagged"), [rt, gpu]);
    let arch = Reason::Arch {
        needs: "x86_64".to_owned(),
        has: "aarch64".to_owned(),
    };
    assert!(reasons(&why, "other-arch").contains(&arch));
    let memory = Reason::Memory {
        needs_mb: 3_000,
        free_mb: 2_000,
        total_mb: 20_000,
    };
    assert!(reasons(&why, "full").contains(&memory));
    assert!(reasons(&why, "machine").contains(&Reason::MissingKey {
        wants: names("vm.x86_64")
    }));
    assert_eq!(why.hosts[0].host, "untagged", "who lacks least comes first");
}

#[test]
fn what_passes_with_time_is_told_apart() {
    let mut lab = Lab::new();
    lab.learn([hw(1, "a"), hw(2, "a")]);
    assert_eq!(lab.serve(hw_host("m")), [1]);
    let why = explained(&lab, 2);
    assert_eq!((why.hosts_able, why.hosts_ready), (1, 0));
    let last_seen = Millis(lab.now);
    assert_eq!(
        reasons(&why, "m"),
        [Reason::BusyHw, Reason::NotAsking { last_seen }]
    );
    assert!(matches!(explained(&lab, 1).state, JobState::Running { host, .. } if host == "m"));
}

#[test]
fn the_order_before_a_job_is_counted() {
    let mut lab = Lab::with(EngineConfig::default(), policy(&[("team", queue(3, 30))]));
    lab.learn((0..1_500).map(|n| queued("team", job(n, "a"))));
    lab.learn([
        queued("vip", job(2_000, "b")),
        queued("idle", job(2_001, "b")),
        job(2_002, "c"),
    ]);
    let third = explained(&lab, 2);
    assert_eq!(
        third.ahead.in_account,
        Count {
            counted: 2,
            more: false
        }
    );
    assert_eq!(
        (
            third.ahead.higher_classes,
            third.standing.class,
            third.standing.weight
        ),
        (1, 3, 30)
    );
    assert_eq!(third.standing.share_permille, 750);
    assert_eq!(
        explained(&lab, 1_499).ahead.in_account,
        Count {
            counted: EXPLAIN_COUNT_MAX,
            more: true
        }
    );
    assert_eq!(explained(&lab, 2_001).ahead.higher_classes, 3);
}

#[test]
fn jobs_before_a_job_are_counted_over_all_queues() {
    let mut lab = Lab::with(EngineConfig::default(), policy(&[("team", queue(3, 30))]));
    lab.learn((0..7).map(|n| queued("vip", job(n, "b"))));
    lab.learn((10..15).map(|n| queued("idle", job(n, "b"))));
    lab.learn((20..24).map(|n| queued("team", job(n, "a"))));
    let ahead = explained(&lab, 22).ahead;
    assert_eq!((ahead.higher_classes, ahead.higher_jobs), (1, 7));
    assert_eq!((ahead.in_account.counted, ahead.is_exact), (2, true));
    // A queue of a lower class is behind, and sees all others before it.
    let ahead = explained(&lab, 10).ahead;
    assert_eq!((ahead.higher_classes, ahead.higher_jobs), (2, 11));
    // One that is not submitted yet comes behind those of its account.
    let explain = |facts: &JobFacts| lab.engine.explain_facts(Millis(lab.now), facts).ahead;
    let new = explain(&queued("team", job(99, "a")));
    assert_eq!((new.in_account.counted, new.higher_jobs), (4, 7));
    let urgent = JobFacts {
        priority: 5,
        ..queued("team", job(99, "a"))
    };
    assert_eq!(explain(&urgent).in_account.counted, 0);
    let newcomer = explain(&job(99, "c"));
    assert_eq!((newcomer.higher_jobs, newcomer.queues), (7, 0));
}

#[test]
fn a_partial_cache_counts_queues_as_the_store_does() {
    let mut lab = Lab::new();
    lab.learn([queued("vip", job(1, "b")), job(2, "a")]);
    let by = [("vip", 40), ("a", 3)];
    let by = by.map(|(name, jobs)| (Dimension::Queue(name.to_owned()), jobs));
    lab.on(Event::CountsRefreshed(DimensionCounts {
        total: 43,
        by: by.to_vec(),
        ..DimensionCounts::default()
    }));
    let ahead = explained(&lab, 2).ahead;
    assert_eq!((ahead.higher_jobs, ahead.is_exact), (40, false));
}

#[test]
fn a_job_is_compared_with_itself_without_a_constraint() {
    let mut lab = Lab::new();
    lab.offer(vm_host("plain"));
    let tagged = |name: &str, tags: &str| saying(vm_host(name), |about| about.tags = names(tags));
    lab.offer(tagged("tagged", "gpu"));
    lab.offer(Offer {
        total_memory_mb: 4_000,
        free_memory_mb: 4_000,
        ..tagged("small", "gpu rt")
    });
    lab.offer(Offer {
        free_memory_mb: 2_000,
        ..tagged("full", "rt")
    });
    let needy = JobFacts {
        tags: names("gpu rt"),
        memory_mb: 8_000,
        ..job(1, "a")
    };
    let tags = |tags: &str| JobFacts {
        tags: names(tags),
        ..needy.clone()
    };
    let small = JobFacts {
        memory_mb: 0,
        ..needy.clone()
    };
    let others = [tags("gpu"), tags("rt"), tags(""), small, needy.clone()];
    let more = lab.engine.compare_facts(Millis(lab.now), &needy, &others);
    let counts: Vec<(u64, u64)> = more.iter().map(|more| (more.able, more.ready)).collect();
    assert_eq!(counts, [(1, 1), (1, 0), (3, 2), (1, 1), (0, 0)]);
    assert_eq!((more[0].most_mb, more[3].most_mb), (20_000, 4_000));
    let many = vec![needy.clone(); COMPARED_MAX + 5];
    let more = lab.engine.compare_facts(Millis(lab.now), &needy, &many);
    assert_eq!(more.len(), COMPARED_MAX);
}

#[test]
fn what_keeps_a_job_back_everywhere() {
    let paused = QueuePolicy {
        paused: true,
        ..QueuePolicy::default()
    };
    let mut lab = Lab::with(EngineConfig::default(), policy(&[("a", paused)]));
    lab.offer(saying(vm_host("h"), |about| {
        about.cache_dirs = names("d");
    }));
    lab.learn([JobFacts {
        cache_dirs: names("d"),
        ..job(1, "a")
    }]);
    let until = Millis(lab.now + 2_000);
    assert_eq!(
        explained(&lab, 1).reasons,
        [Reason::QueuePaused, Reason::WaitingForAffinity { until }]
    );
    lab.learn([job(2, "b")]);
    let offer = OfferKey(1);
    assert_eq!(lab.claims(), [(2, 1)]);
    assert!(matches!(
        explained(&lab, 2).state,
        JobState::InFlight { .. }
    ));
    let until = Millis(lab.now + 50);
    lab.refuse(JobKey(2), offer, Refusal::Unavailable { until });
    assert_eq!(
        explained(&lab, 2).reasons,
        [Reason::WaitingForStore { until }]
    );
}

#[test]
fn facts_alone_tell_whether_any_host_ever_could() {
    let mut lab = Lab::new();
    lab.offer(vm_host("h"));
    let explain = |job: &JobFacts| lab.engine.explain_facts(Millis(lab.now), job);
    let fits = explain(&job(1, "new"));
    assert_eq!(
        (fits.state.clone(), fits.hosts_able, fits.hosts_ready),
        (JobState::NotCached, 1, 1)
    );
    assert_eq!(fits.standing.queue, "new");
    assert_eq!(
        explain(&JobFacts {
            memory_mb: 20_001,
            ..job(1, "new")
        })
        .hosts_able,
        0
    );
    assert_eq!(lab.engine.stats().queues, 0, "asking changes nothing");
}

#[test]
fn an_idle_host_says_why() {
    let mut lab = Lab::new();
    assert!(lab.engine.explain_host(Millis(lab.now), "h").is_none());
    let offer = lab.offer(vm_host("h"));
    lab.learn([
        JobFacts {
            memory_mb: 30_000,
            ..job(1, "a")
        },
        JobFacts {
            tags: names("t"),
            ..job(2, "a")
        },
        hw(3, "a"),
    ]);
    let why = lab
        .engine
        .explain_host(Millis(lab.now), "h")
        .expect("a known host");
    assert_eq!(
        (why.asking, why.jobs, why.jobs_under_keys),
        (Some((offer, Millis(lab.now))), 0, 2)
    );
    assert_eq!(why.shapes.len(), 2);
    assert!(
        why.shapes
            .iter()
            .all(|shape| shape.jobs.counted == 1 && shape.reasons.len() == 1)
    );
    lab.on(Event::HostLeft("h".to_owned()));
    assert!(lab.engine.explain_host(Millis(lab.now), "h").is_none());
}

#[test]
fn explanations_are_bounded() {
    let mut lab = Lab::new();
    for n in 0..200 {
        lab.offer_unchecked(saying(vm_host(&format!("h{n}")), |about| {
            about.keys = names("vm.other");
        }));
    }
    lab.learn((0..300).map(|n| JobFacts {
        host_keys: names("vm.other"),
        memory_mb: 100_000 + n,
        ..job(n.into(), "a")
    }));
    let why = explained(&lab, 7);
    assert_eq!(
        (why.hosts.len(), why.hosts_more),
        (EXPLAIN_LIST_MAX, 200 - EXPLAIN_LIST_MAX as u64)
    );
    let host = lab
        .engine
        .explain_host(Millis(lab.now), "h7")
        .expect("a known host");
    assert!(host.shapes.len() == EXPLAIN_LIST_MAX && host.shapes_more);
}

#[test]
fn reports_say_what_is_charged() {
    let mut lab = Lab::with(EngineConfig::default(), policy(&[("a", queue(3, 30))]));
    lab.learn([
        JobFacts {
            memory_mb: 5_000,
            ..job(1, "a")
        },
        job(2, "a"),
        job(3, "b"),
    ]);
    assert_eq!(lab.serve(vm_host("h")), [1]);
    lab.pass(8_000);
    let queues = lab.engine.queues(Millis(lab.now));
    let a = queues
        .iter()
        .find(|queue| queue.name == "a")
        .expect("queue a");
    assert_eq!(
        (a.waiting, a.running, a.weight, a.share_permille),
        (1, 1, 30, 750)
    );
    assert_eq!(a.charged_ms, 2_000, "a quarter of the host for 8 s");
    lab.end(JobKey(1));
    lab.pass(8_000);
    assert_eq!(
        lab.engine
            .queues(Millis(lab.now))
            .iter()
            .find(|q| q.name == "a")
            .map(|q| q.charged_ms),
        Some(2_000)
    );
    let hosts = lab.engine.hosts();
    assert_eq!(
        (
            hosts[0].name.as_str(),
            hosts[0].jobs_total,
            hosts[0].free_memory_mb
        ),
        ("h", 0, 20_000)
    );
}
