//! Tests by counted work: a decision costs the same with a thousand times as many jobs in memory.

use crate::lab::*;
use fairlead_dispatch::*;

const ACCOUNTS: u64 = 100;
const SHAPES: u64 = 10;

/// The nth job: each account has jobs of each shape.
fn nth(n: u64) -> JobFacts {
    let (account, shape) = (format!("account{}", n % ACCOUNTS), n / ACCOUNTS % SHAPES);
    let memory_mb = 1_000 * (1 + u32::try_from(shape).expect("few shapes"));
    let tags = if shape % 3 == 2 {
        names("nobody-has-it")
    } else {
        vec![]
    };
    JobFacts {
        memory_mb,
        tags,
        ..job(n, &account)
    }
}

fn filled(jobs: u64) -> Lab {
    let mut lab = Lab::with(
        EngineConfig {
            cache_jobs_max: u32::MAX,
            ..EngineConfig::default()
        },
        Policy::default(),
    );
    for batch in 0..jobs.div_ceil(1_000) {
        lab.on_unchecked(Event::JobsLearned(
            (batch * 1_000..(batch + 1) * 1_000).map(nth).collect(),
        ));
    }
    assert_eq!(lab.engine.stats().cached_jobs, jobs);
    lab
}

/// Work of 300 decisions; what is taken comes again.
fn work(jobs: u64, host: &Offer) -> (u64, u64, u64) {
    let mut lab = filled(jobs);
    let before = lab.engine.stats();
    let mut claimed = 0;
    for _ in 0..300 {
        lab.now += 10;
        let waits_until = Millis(lab.now);
        let offer = lab.offer_unchecked(Offer {
            waits_until,
            ..host.clone()
        });
        for job in lab.claimed() {
            claimed += 1;
            lab.commit_unchecked(JobKey(job), offer);
            lab.on_unchecked(Event::JobEnded {
                job: JobKey(job),
                version: version(u64::MAX),
                ran: true,
                at: Millis(u64::MAX),
            });
            // Far behind, of the same account and shape.
            let again = nth(job + 1_000_000_000);
            lab.on_unchecked(Event::JobsLearned(vec![again]));
        }
    }
    let after = lab.engine.stats();
    (
        after.shapes_checked - before.shapes_checked,
        after.entries_visited - before.entries_visited,
        claimed,
    )
}

#[test]
fn work_does_not_grow_with_the_jobs_in_memory() {
    let fits = vm_host("h");
    let little = Offer {
        free_memory_mb: 1_500,
        ..vm_host("h")
    };
    let nothing = Offer {
        free_memory_mb: 500,
        ..vm_host("h")
    };
    for (host, claims) in [(fits, 300), (little, 300), (nothing, 0)] {
        let (few, many) = (work(1_000, &host), work(100_000, &host));
        assert_eq!((few.2, many.2), (claims, claims));
        assert_eq!(few, many, "shapes checked, entries visited, claims");
        assert!(few.0 + few.1 <= 300 * 60, "{few:?}");
    }
}

#[test]
fn a_million_jobs_cost_what_a_thousand_do() {
    let host = vm_host("h");
    assert_eq!(work(1_000, &host), work(1_000_000, &host));
}

#[test]
fn a_new_job_looks_at_few_of_ten_thousand_waiting_hosts() {
    let mut lab = Lab::new();
    for n in 0..10_000 {
        lab.offer_unchecked(vm_host(&format!("h{n}")));
    }
    let before = lab.engine.stats();
    lab.on_unchecked(Event::JobsLearned((0..100).map(|n| job(n, "a")).collect()));
    assert_eq!(lab.claimed().len(), 100);
    let visited = lab.engine.stats().entries_visited - before.entries_visited;
    assert!(visited <= 300, "{visited}");
}

#[test]
fn nothing_is_remembered_until_something_new_could_fit() {
    let mut lab = filled(1_000);
    let little = |free_memory_mb| Offer {
        free_memory_mb,
        waits_until: Millis(0),
        ..vm_host("h")
    };
    lab.offer(little(500));
    let before = lab.engine.stats();
    lab.offer(little(400));
    assert_eq!(lab.engine.stats().shapes_checked, before.shapes_checked);
    lab.learn([JobFacts {
        memory_mb: 450,
        ..job(5_000, "new")
    }]);
    assert!(lab.serve(little(400)).is_empty());
    assert_eq!(lab.serve(little(500)), [5_000]);
    assert!(lab.serve(little(500)).is_empty());
    assert_eq!(lab.serve(little(1_000)).len(), 1, "more is free");
}
