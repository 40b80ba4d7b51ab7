//! Tests of the order: classes, shares, accounts, priority, submit order (I4, I5).

use crate::lab::*;
use fairlead_dispatch::*;

#[test]
fn one_account_runs_by_priority_then_submit_order() {
    let mut lab = Lab::new();
    let urgent = JobFacts {
        priority: 5,
        ..job(3, "a")
    };
    lab.learn([
        job(2, "a"),
        job(1, "a"),
        urgent,
        JobFacts {
            priority: -1,
            ..job(0, "a")
        },
    ]);
    let order: Vec<u64> = (0..4)
        .flat_map(|n| lab.serve(vm_host(&format!("h{n}"))))
        .collect();
    assert_eq!(order, [3, 1, 2, 0]);
}

#[test]
fn ten_thousand_jobs_of_one_do_not_make_another_wait() {
    let mut lab = Lab::new();
    lab.learn((0..10_000).map(|n| job(n, "user1")));
    for n in 0..20 {
        let got = lab.serve(vm_host("h"));
        lab.now += 3_000 + n;
        lab.end(JobKey(got[0]));
    }
    lab.learn([job(20_000, "user2")]);
    let next: Vec<u64> = (0..2)
        .flat_map(|n| lab.serve(vm_host(&format!("h{n}"))))
        .collect();
    assert!(next.contains(&20_000), "{next:?}");
}

/// Jobs are charged in advance with what such jobs took before; when they take less, whoever came meanwhile must not
/// wait until all of that is used up.
#[test]
fn who_comes_while_others_are_charged_in_advance_does_not_wait_for_that() {
    let mut lab = Lab::new();
    lab.learn((0..1_000).map(|n| job(n, "user1")));
    for _ in 0..5 {
        let got = lab.serve(vm_host("h"));
        lab.pass(3_600_000);
        lab.end(JobKey(got[0]));
    }
    let running: Vec<u64> = (0..10)
        .flat_map(|n| lab.serve(vm_host(&format!("h{n}"))))
        .collect();
    lab.learn([job(2_000, "user2"), queued("user1", job(2_001, "user3"))]);
    lab.pass(10_000);
    for job in running {
        lab.end(JobKey(job));
    }
    let next: Vec<u64> = (0..2)
        .flat_map(|n| lab.serve(vm_host(&format!("h{n}"))))
        .collect();
    assert!(next.contains(&2_000) && next.contains(&2_001), "{next:?}");
}

#[test]
fn vip_is_next_of_all_and_idle_is_last() {
    let mut lab = Lab::new();
    lab.learn(
        (0..10)
            .map(|n| job(n, "a"))
            .chain([queued("idle", job(10, "b")), queued("vip", job(11, "c"))]),
    );
    let order: Vec<u64> = (0..12)
        .flat_map(|n| lab.serve(vm_host(&format!("h{n}"))))
        .collect();
    assert_eq!((order[0], order[11]), (11, 10));
}

#[test]
fn idle_runs_where_nothing_else_can() {
    let mut lab = Lab::new();
    lab.learn([job(1, "a"), queued("idle", hw(2, "b"))]);
    assert_eq!(lab.serve(hw_host("m")), [2]);
}

#[test]
fn a_vip_job_goes_to_the_offer_that_a_lower_one_could_also_use() {
    let mut lab = Lab::new();
    let low = lab.offer(vm_host("h"));
    lab.learn([job(1, "a"), queued("vip", job(2, "b"))]);
    assert_eq!(lab.claims(), [(2, low.0)]);
}

#[test]
fn accounts_in_a_shared_queue_take_turns() {
    let mut lab = Lab::new();
    lab.learn((0..100).map(|n| queued("shared", job(n, "a"))));
    lab.learn((100..103).map(|n| queued("shared", job(n, "b"))));
    let order: Vec<u64> = (0..6)
        .flat_map(|n| lab.serve(vm_host(&format!("h{n}"))))
        .collect();
    assert_eq!(
        order.iter().filter(|job| **job >= 100).count(),
        3,
        "{order:?}"
    );
}

#[test]
fn a_paused_queue_waits_and_goes_on_at_once() {
    let paused = QueuePolicy {
        paused: true,
        ..QueuePolicy::default()
    };
    let mut lab = Lab::with(EngineConfig::default(), policy(&[("a", paused)]));
    lab.learn([job(1, "a"), job(2, "a")]);
    let offer = lab.offer(vm_host("h"));
    assert!(lab.claims().is_empty());
    lab.on(Event::PolicyChanged(Policy::default()));
    assert_eq!(lab.claims(), [(1, offer.0)]);
}

#[test]
fn a_class_changes_at_once() {
    let mut lab = Lab::new();
    lab.learn([job(1, "a"), job(2, "b")]);
    lab.on(Event::PolicyChanged(policy(&[("b", queue(8, 10))])));
    assert_eq!(lab.serve(vm_host("h")), [2]);
}
