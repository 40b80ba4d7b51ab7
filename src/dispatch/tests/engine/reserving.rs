//! Jobs that enter a host that is reserved for a large job.

use crate::lab::*;
use fairlead_dispatch::*;

#[test]
fn short_jobs_still_enter_a_reserved_host() {
    let mut lab = Lab::with(
        EngineConfig {
            reserve_after_ms: 1_000,
            ..EngineConfig::default()
        },
        Policy::default(),
    );
    let long = JobFacts {
        suite: "long".to_owned(),
        timeout_s: 100,
        ..job(1, "a")
    };
    lab.learn([long.clone()]);
    assert_eq!(lab.serve(vm_host("h")), [1]);
    lab.learn([JobFacts {
        memory_mb: 20_000,
        ..job(2, "b")
    }]);
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
    let free = Offer {
        free_memory_mb: 19_000,
        jobs_max: 5,
        ..vm_host("h")
    };
    assert_eq!(lab.serve(free.clone()), [4]);
    assert_eq!(lab.engine.stats().reservations, 1);
    let vip = JobFacts {
        timeout_s: 5_000,
        suite: "any".to_owned(),
        ..queued("vip", job(5, "e"))
    };
    lab.learn([vip]);
    assert_eq!(
        lab.serve(Offer {
            free_memory_mb: 18_000,
            jobs_max: 1,
            ..free
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

/// An offer that is made while a claim is in flight does not count its job; when that job ends, the offer is as
/// large as it said.

#[test]
fn a_job_that_fits_beside_the_reserved_one_enters_however_long_it_runs() {
    let mut lab = Lab::with(
        EngineConfig {
            reserve_after_ms: 1_000,
            ..EngineConfig::default()
        },
        Policy::default(),
    );
    lab.learn([JobFacts {
        memory_mb: 12_000,
        timeout_s: 100,
        ..job(1, "a")
    }]);
    assert_eq!(lab.serve(vm_host("h")), [1]);
    lab.learn([JobFacts {
        memory_mb: 15_000,
        ..job(2, "b")
    }]);
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
    let free = Offer {
        free_memory_mb: 8_000,
        jobs_max: 5,
        ..vm_host("h")
    };
    let begun = lab.serve(free);
    let needs = [(3, 6_000), (4, 3_000), (5, 2_500), (6, 2_000)];
    let taken = needs.iter().filter(|(key, _)| begun.contains(key));
    let taken: u32 = taken.map(|(_, memory_mb)| memory_mb).sum();
    assert!(!begun.contains(&3) && taken <= 5_000, "{begun:?}");
    assert_eq!(taken, 5_000, "{begun:?}");
    assert_eq!(lab.engine.stats().reservations, 1);
}
