//! Jobs that enter a host that is reserved for a large job.

use crate::lab::*;
use fairlead_dispatch::*;

/// A job reserves a host after a second, and after half of its time.
fn reserving() -> Lab {
    let config = EngineConfig {
        reserve_after_ms: 1_000,
        ..EngineConfig::default()
    };
    Lab::with(config, Policy::default())
}

/// A job that needs so much of a host, and takes 2 s.
fn large(key: u64, account: &str, memory_mb: u32) -> JobFacts {
    JobFacts {
        memory_mb,
        timeout_s: 2,
        suite: "large".to_owned(),
        ..job(key, account)
    }
}

/// A job of a suite of its own, with this time limit.
fn takes(key: u64, timeout_s: u64) -> JobFacts {
    JobFacts {
        timeout_s,
        suite: key.to_string(),
        ..job(key, "c")
    }
}

/// The host with so much free memory, which takes five jobs.
fn free(free_memory_mb: u32) -> Offer {
    Offer {
        free_memory_mb,
        jobs_max: 5,
        ..vm_host("h")
    }
}

#[test]
fn short_jobs_still_enter_a_reserved_host() {
    let mut lab = reserving();
    let long = JobFacts {
        suite: "long".to_owned(),
        timeout_s: 100,
        ..job(1, "a")
    };
    lab.learn([long.clone()]);
    assert_eq!(lab.serve(vm_host("h")), [1]);
    lab.learn([large(2, "b", 20_000)]);
    lab.now += 1_000;
    let too_long = JobFacts {
        key: JobKey(3),
        timeout_s: 100,
        ..long
    };
    let short = JobFacts {
        suite: "short".to_owned(),
        timeout_s: 99,
        ..job(4, "d")
    };
    lab.learn([too_long, short]);
    assert_eq!(lab.serve(free(19_000)), [4]);
    assert_eq!(lab.engine.stats().reservations, 1);
    let vip = JobFacts {
        timeout_s: 5_000,
        suite: "any".to_owned(),
        ..queued("vip", job(5, "e"))
    };
    lab.learn([vip]);
    assert_eq!(
        lab.serve(Offer {
            jobs_max: 1,
            ..free(18_000)
        }),
        [5],
        "a higher class may"
    );
    for job in [1, 4, 5] {
        lab.end(JobKey(job));
    }
    assert_eq!(lab.serve(vm_host("h")), [2]);
    assert_eq!(lab.engine.stats().reservations, 0);
}

/// A job that ended gives back its share by the host's next offer. The reservation of a job that needs all of the host
/// lasts until then.
#[test]
fn a_reservation_outlasts_the_time_until_the_host_tells_of_an_end() {
    let mut lab = reserving();
    let half = |key| JobFacts {
        memory_mb: 10_000,
        timeout_s: 100,
        ..job(key, "a")
    };
    lab.learn([half(1), half(2)]);
    assert_eq!(lab.serve(free(20_000)), [1, 2]);
    lab.learn([large(3, "b", 20_000)]);
    lab.now += 1_000;
    lab.offer(free(0));
    assert_eq!(lab.engine.stats().reservations, 1);
    lab.end(JobKey(1));
    lab.learn([JobFacts {
        suite: "other".to_owned(),
        ..half(4)
    }]);
    assert_eq!(lab.engine.stats().reservations, 1);
    assert_eq!(lab.serve(free(10_000)), []);
    lab.end(JobKey(2));
    assert_eq!(lab.serve(free(20_000)), [3]);
}

#[test]
fn a_job_that_fits_beside_the_reserved_one_enters_however_long_it_runs() {
    let mut lab = reserving();
    lab.learn([JobFacts {
        memory_mb: 12_000,
        timeout_s: 100,
        ..job(1, "a")
    }]);
    assert_eq!(lab.serve(vm_host("h")), [1]);
    lab.learn([large(2, "b", 15_000)]);
    lab.now += 1_000;
    let endless = |key, account, memory_mb| JobFacts {
        timeout_s: 0,
        suite: "endless".to_owned(),
        memory_mb,
        ..job(key, account)
    };
    // 5,000 MB are free beside the second job when it can begin.
    let others = [
        endless(3, "c", 6_000),
        endless(4, "d", 3_000),
        endless(5, "e", 2_500),
        endless(6, "f", 2_000),
    ];
    lab.learn(others);
    let begun = lab.serve(free(8_000));
    let needs = [(3, 6_000), (4, 3_000), (5, 2_500), (6, 2_000)];
    let taken = needs.iter().filter(|(key, _)| begun.contains(key));
    let taken: u32 = taken.map(|(_, memory_mb)| memory_mb).sum();
    assert!(!begun.contains(&3) && taken <= 5_000, "{begun:?}");
    assert_eq!(taken, 5_000, "{begun:?}");
    assert_eq!(lab.engine.stats().reservations, 1);
}

/// An empty host costs others more than a short wait costs a long job.
#[test]
fn a_job_that_takes_long_reserves_after_half_of_its_time() {
    let mut lab = reserving();
    lab.learn([job(1, "a")]);
    assert_eq!(lab.serve(vm_host("h")), [1]);
    lab.learn([JobFacts {
        timeout_s: 7_200,
        ..large(2, "b", 20_000)
    }]);
    for (pass_s, reservations) in [(3_599, 0), (1, 1)] {
        lab.now += pass_s * 1_000;
        lab.learn([job(100 + lab.now, "c")]);
        lab.serve(free(19_000));
        assert_eq!(lab.engine.stats().reservations, reservations, "{pass_s}");
    }
}

/// Jobs of one account and shape differ in how long they take.
#[test]
fn the_shortest_of_equal_jobs_enters_a_reserved_host_first() {
    let mut lab = reserving();
    lab.learn([JobFacts {
        timeout_s: 100,
        ..job(1, "a")
    }]);
    assert_eq!(lab.serve(vm_host("h")), [1]);
    lab.learn([large(2, "b", 20_000)]);
    lab.now += 1_000;
    lab.learn([takes(3, 100), takes(4, 90), takes(5, 80)]);
    assert_eq!(lab.serve(free(19_000)), [5, 4]);
}

/// A job that has run for longer than its mean is one of the long ones. Others use the time until it ends.
#[test]
fn a_job_that_outlasts_its_mean_lets_short_ones_in() {
    let mut lab = reserving();
    for (key, ran_s) in [(101, 10), (102, 10), (103, 100)] {
        lab.learn([job(key, "a")]);
        assert_eq!(lab.serve(vm_host("h")), [key]);
        lab.now += ran_s * 1_000;
        lab.end(JobKey(key));
    }
    lab.learn([job(1, "a")]);
    assert_eq!(lab.serve(vm_host("h")), [1]);
    lab.learn([large(2, "b", 20_000)]);
    lab.now += 60_000;
    lab.learn([takes(3, 30), takes(4, 60)]);
    assert_eq!(lab.serve(free(19_000)), [3]);
}
