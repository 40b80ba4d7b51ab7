//! Tests of placement: requirements (I3), spread, cache affinity, reservations.

use crate::lab::*;
use fairlead_dispatch::*;

#[test]
fn a_job_runs_only_where_its_needs_are_met() {
    let needs: [(&str, JobFacts, Offer); 6] = [
        (
            "key",
            JobFacts {
                host_keys: names("vm.x86_64@other"),
                ..job(1, "a")
            },
            vm_host("h"),
        ),
        (
            "arch",
            JobFacts {
                arch: "aarch64".to_owned(),
                ..job(1, "a")
            },
            vm_host("h"),
        ),
        (
            "memory",
            JobFacts {
                memory_mb: 20_001,
                ..job(1, "a")
            },
            vm_host("h"),
        ),
        (
            "tags",
            JobFacts {
                tags: names("ssd rt"),
                ..job(1, "a")
            },
            saying(vm_host("h"), |about| {
                about.tags = names("ssd");
            }),
        ),
        (
            "devices",
            JobFacts {
                devices: names("gpu"),
                ..job(1, "a")
            },
            vm_host("h"),
        ),
        (
            "hw memory",
            JobFacts {
                memory_mb: 20_001,
                ..hw(1, "a")
            },
            hw_host("h"),
        ),
    ];
    for (what, job, host) in needs {
        let mut lab = Lab::new();
        lab.learn([job.clone()]);
        assert!(lab.serve(host.clone()).is_empty(), "{what}");
        let mut lab = Lab::new();
        lab.offer(host);
        lab.learn([job]);
        assert!(lab.claims().is_empty(), "{what}, offer first");
    }
}

#[test]
fn a_job_that_needs_all_runs_where_all_is() {
    let needy = JobFacts {
        tags: names("ssd rt"),
        devices: names("gpu"),
        arch: "x86_64".to_owned(),
        host_keys: names("vm.x86_64@g vm.x86_64@h"),
        memory_mb: 20_000,
        ..job(1, "a")
    };
    let host = saying(vm_host("h"), |about| {
        about.tags = names("rt numa ssd");
        about.devices = names("nic gpu");
    });
    let mut lab = Lab::new();
    lab.learn([needy.clone()]);
    assert_eq!(lab.serve(host.clone()), [1]);
    let mut lab = Lab::new();
    let offer = lab.offer(host);
    lab.learn([needy]);
    assert_eq!(lab.claims(), [(1, offer.0)]);
}

#[test]
fn jobs_spread_to_the_host_with_most_free_memory_then_to_the_longest_waiting() {
    let mut lab = Lab::new();
    let small = lab.offer(Offer {
        free_memory_mb: 5_000,
        ..vm_host("small")
    });
    lab.now += 1;
    let first = lab.offer(vm_host("first"));
    lab.now += 1;
    let second = lab.offer(vm_host("second"));
    lab.learn((0..3).map(|n| job(n, "a")));
    assert_eq!(lab.claims(), [(0, first.0), (1, second.0), (2, small.0)]);
}

#[test]
fn a_preferred_host_wins_over_free_memory_and_is_not_waited_for() {
    let mut lab = Lab::new();
    let liked = |host: &str| saying(vm_host(host), |about| about.cache_dirs = names("d"));
    let likes = |key| JobFacts {
        prefer: names("d x"),
        ..job(key, "a")
    };
    let small = lab.offer(Offer {
        free_memory_mb: 4_000,
        ..liked("small")
    });
    lab.offer(vm_host("large"));
    lab.learn([likes(1)]);
    assert_eq!(lab.claims(), [(1, small.0)]);
    lab.commit(JobKey(1), small);
    // The preferred host comes again soon, and yet the job takes what waits now.
    lab.learn([likes(2)]);
    assert_eq!(lab.claimed(), [2]);
}

#[test]
fn most_cache_dirs_win_over_free_memory() {
    let mut lab = Lab::new();
    lab.offer(vm_host("none"));
    lab.offer(saying(vm_host("one"), |about| {
        about.cache_dirs = names("d1");
    }));
    let two = lab.offer(Offer {
        free_memory_mb: 2_000,
        ..saying(vm_host("two"), |about| {
            about.cache_dirs = names("d1 d2 d3");
        })
    });
    lab.learn([JobFacts {
        cache_dirs: names("d1 d2"),
        ..job(1, "a")
    }]);
    assert_eq!(lab.claims(), [(1, two.0)]);
}

#[test]
fn affinity_is_waited_for_but_not_longer_than_allowed() {
    let mut lab = Lab::new();
    lab.serve(saying(vm_host("holder"), |about| {
        about.cache_dirs = names("d");
    }));
    let other = lab.offer(vm_host("other"));
    let wants = JobFacts {
        cache_dirs: names("d"),
        ..job(1, "a")
    };
    lab.learn([wants.clone(), job(2, "b")]);
    assert_eq!(
        lab.claims(),
        [(2, other.0)],
        "who wants no cache does not wait"
    );
    lab.commit(JobKey(2), other);
    let other = lab.offer(vm_host("other2"));
    assert!(lab.claims().is_empty());
    lab.pass(1_999);
    assert!(lab.claims().is_empty());
    lab.pass(1);
    assert_eq!(lab.claims(), [(1, other.0)]);

    let mut lab = Lab::new();
    lab.serve(saying(vm_host("holder"), |about| {
        about.cache_dirs = names("d");
    }));
    lab.offer(vm_host("other"));
    lab.learn([wants.clone()]);
    assert!(lab.claims().is_empty());
    let holder = lab.offer(saying(vm_host("holder"), |about| {
        about.cache_dirs = names("d");
    }));
    assert_eq!(lab.claims(), [(1, holder.0)], "the holder came in time");

    let mut lab = Lab::new();
    let any = lab.offer(vm_host("h"));
    lab.learn([wants]);
    assert_eq!(
        lab.claims(),
        [(1, any.0)],
        "nobody holds it: nothing to wait for"
    );
}

#[test]
fn a_host_that_could_not_run_it_is_not_waited_for() {
    let mut lab = Lab::new();
    lab.serve(saying(hw_host("machine"), |about| {
        about.cache_dirs = names("d");
    }));
    let any = lab.offer(vm_host("h"));
    lab.learn([JobFacts {
        cache_dirs: names("d"),
        ..job(1, "a")
    }]);
    assert_eq!(lab.claims(), [(1, any.0)]);
}

/// A stream of small jobs on one host, and one that needs all of it: answers when the large one began, ms.
fn start_of_large(reserve_after_ms: u64, minutes: u64) -> Option<u64> {
    let mut lab = Lab::with(
        EngineConfig {
            reserve_after_ms,
            ..EngineConfig::default()
        },
        Policy::default(),
    );
    let began = lab.now;
    let mut running: Vec<(u64, u64, u32)> = vec![];
    let mut next = 0;
    for second in 0..minutes * 60 {
        lab.now = began + second * 1_000;
        for (_, job, _) in running.extract_if(.., |(end, _, _)| *end <= second) {
            lab.on_unchecked(Event::JobEnded {
                job: JobKey(job),
                version: version(u64::MAX),
                ran: true,
                at: Millis(u64::MAX),
            });
        }
        lab.learn((0..2).map(|n| job(next + n, "small")));
        if second == 30 {
            lab.learn([JobFacts {
                memory_mb: 20_000,
                ..job(1_000_000, "large")
            }]);
        }
        next += 2;
        let used: u32 = running.iter().map(|(_, _, memory)| *memory).sum();
        let offer = Offer {
            jobs_max: 50,
            free_memory_mb: 20_000 - used,
            ..vm_host("h")
        };
        for job in lab.serve(offer) {
            if job == 1_000_000 {
                return Some(lab.now - began);
            }
            running.push((second + 20 + job % 20, job, 1_000));
        }
    }
    None
}

#[test]
fn a_large_job_is_not_starved_by_small_ones() {
    assert_eq!(
        start_of_large(0, 20),
        None,
        "without reservations it would be"
    );
    let start = start_of_large(60_000, 20);
    assert!(
        start.is_some_and(|start| start <= 90_000 + 45_000),
        "{start:?}"
    );
}

#[test]
fn what_ends_that_an_offer_did_not_count_gives_its_memory_back() {
    let mut lab = Lab::new();
    lab.learn([job(1, "a")]);
    let first = lab.offer(vm_host("h"));
    assert_eq!(lab.claimed(), [1]);
    let second = Offer {
        free_memory_mb: 15_000,
        ..vm_host("h")
    };
    lab.offer(second);
    let large = JobFacts {
        memory_mb: 15_000,
        ..job(2, "a")
    };
    lab.learn([large]);
    lab.commit(JobKey(1), first);
    assert_eq!(
        lab.claimed(),
        [0; 0],
        "the host has job 1, and 14,000 MB left"
    );
    lab.end(JobKey(1));
    assert_eq!(lab.claimed(), [2]);
}

/// A request that comes while an answer is on its way does not count that answer's jobs.
#[test]
fn jobs_on_their_way_to_a_host_take_room_until_they_end() {
    let mut lab = Lab::new();
    let large = |key| JobFacts {
        memory_mb: 12_000,
        ..job(key, "a")
    };
    lab.learn([large(1)]);
    assert_eq!(lab.serve(vm_host("h")), [1]);
    lab.learn([large(2)]);
    let owing = Offer {
        owed: vec![JobKey(1), JobKey(99)],
        ..vm_host("h")
    };
    lab.offer(owing.clone());
    assert_eq!(lab.claimed(), [0; 0]);
    lab.end(JobKey(1));
    assert_eq!(lab.claimed(), [2]);
    // Of many small ones, as many as it takes.
    lab.learn((3..6).map(|key| job(key, "a")));
    let second = Offer {
        owed: vec![JobKey(2)],
        jobs_max: 2,
        free_memory_mb: 20_000,
        ..vm_host("g")
    };
    lab.offer(second);
    assert_eq!(lab.claimed(), [3, 4], "job 2 is not on this host");
}

fn kept_for(host: &str, accounts: &str) -> Offer {
    saying(vm_host(host), |about| about.accounts = names(accounts))
}

#[test]
fn a_host_that_is_kept_for_some_gets_their_jobs_alone() {
    let mut lab = Lab::new();
    lab.learn([
        job(1, "bob"),
        queued("shared", job(2, "alice")),
        job(3, "bob"),
    ]);
    assert_eq!(lab.serve(kept_for("kept", "alice carol")), [2]);
    lab.end(JobKey(2));
    assert!(lab.serve(kept_for("kept", "alice carol")).is_empty());
    let why = lab.engine.explain_job(Millis(lab.now), JobKey(1));
    let verdict = why.and_then(|why| why.hosts.first().cloned());
    let verdict = verdict.expect("a known host");
    let accounts = names("alice carol");
    assert!(verdict.able, "it is not the host that lacks something");
    assert_eq!(verdict.reasons.first(), Some(&Reason::KeptFor { accounts }));
    assert_eq!(lab.serve(vm_host("kept")), [1], "it is everybody's again");
}

#[test]
fn a_new_job_goes_to_an_offer_that_serves_it_however_many_do_not() {
    let mut lab = Lab::new();
    for n in 0..40 {
        lab.offer(kept_for(&format!("kept{n}"), "alice"));
    }
    let open = lab.offer(Offer {
        free_memory_mb: 1_000,
        ..vm_host("open")
    });
    lab.learn([job(1, "bob")]);
    assert_eq!(lab.claims(), [(1, open.0)]);
    lab.learn([job(2, "bob")]);
    assert!(lab.claims().is_empty());
    lab.learn([job(3, "alice")]);
    assert_eq!(lab.claimed(), [3]);
}

#[test]
fn a_job_that_failed_somewhere_is_tried_elsewhere() {
    let mut lab = Lab::new();
    let failed = |key| JobFacts {
        not_on: names("h0 h1 h2"),
        ..job(key, "a")
    };
    lab.learn([failed(1), job(2, "b")]);
    assert_eq!(lab.serve(vm_host("h1")), [2]);
    lab.end(JobKey(2));
    assert!(lab.serve(vm_host("h1")).is_empty());
    let why = lab.engine.explain_job(Millis(lab.now), JobKey(1));
    let why = why.expect("a known job");
    let verdict = why.hosts.first().cloned().expect("a known host");
    assert!(!verdict.able && why.hosts_able == 0);
    assert_eq!(verdict.reasons.first(), Some(&Reason::FailedThere));
    assert_eq!(lab.serve(vm_host("h3")), [1]);
    // Hosts that wait and would be the better ones do not hide the one that may have it.
    for n in 0..3 {
        lab.offer(vm_host(&format!("h{n}")));
    }
    let other = lab.offer(Offer {
        free_memory_mb: 1_000,
        ..vm_host("other")
    });
    lab.learn([failed(4)]);
    assert_eq!(lab.claims(), [(4, other.0)]);
    // Once it is told that it may run anywhere again, it does.
    lab.learn([failed(5)]);
    assert!(lab.claims().is_empty());
    lab.learn([JobFacts {
        version: version(2),
        ..job(5, "a")
    }]);
    assert_eq!(lab.claimed(), [5]);
}

#[test]
fn hw_is_alone() {
    let mut lab = Lab::new();
    lab.learn([hw(1, "a"), hw(2, "a"), job(3, "b")]);
    let both = Offer {
        jobs_max: 10,
        ..saying(vm_host("m"), |about| {
            about.keys = names("hw.x86_64 vm.x86_64");
        })
    };
    assert_eq!(lab.serve(both.clone()), [1]);
    assert!(lab.serve(both.clone()).is_empty(), "a hw job runs");
    lab.end(JobKey(1));
    lab.on(Event::PolicyChanged(policy(&[("b", queue(5, 10))])));
    assert_eq!(
        lab.serve(both.clone()),
        [3],
        "and is not mixed with vm jobs"
    );
    assert!(lab.serve(both.clone()).is_empty());
    let waiting = lab.offer(both);
    lab.end(JobKey(3));
    assert_eq!(
        lab.claims(),
        [(2, waiting.0)],
        "the end of the last one opens the host at once"
    );
}
