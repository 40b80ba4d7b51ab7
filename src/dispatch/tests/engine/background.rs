//! Tests of the shares of dispatches for queues of low classes.

use crate::lab::*;
use fairlead_dispatch::*;

fn kept(share: u16) -> Policy {
    let idle = QueuePolicy {
        background_permille: share,
        ..queue(1, 10)
    };
    policy(&[("idle", idle)])
}

/// A lab with this share for queue `idle`, 200 jobs before it (1 to 200), and 20 in it (1,001 to 1,020).
fn lab(share: u16) -> Lab {
    let mut lab = Lab::with(EngineConfig::default(), kept(share));
    lab.learn((1..=200).map(|n| job(n, "a")));
    lab.learn((1_001..=1_020).map(|n| queued("idle", job(n, "b"))));
    lab
}

/// Which of the next so many hosts get a job of `idle`, counted from 1.
fn turns(lab: &mut Lab, hosts: usize) -> Vec<usize> {
    let mut turns = Vec::new();
    for turn in 1..=hosts {
        let got = lab.serve(vm_host(&format!("h{turn}")));
        if got.iter().any(|job| *job > 1_000) {
            turns.push(turn);
        }
        for job in got {
            lab.end(JobKey(job));
        }
    }
    turns
}

#[test]
fn of_each_twenty_hosts_one_gets_a_job_of_a_low_class() {
    assert_eq!(turns(&mut lab(50), 60), [20, 40, 60]);
    assert_eq!(turns(&mut lab(300), 12), [4, 7, 10]);
    assert!(turns(&mut lab(0), 60).is_empty());
}

#[test]
fn who_is_due_comes_first_on_the_next_host_that_could_run_it() {
    let mut lab = Lab::with(EngineConfig::default(), kept(500));
    lab.learn((1..=10).map(|n| job(n, "a")));
    let large = JobFacts {
        memory_mb: 15_000,
        ..job(1_001, "b")
    };
    lab.learn([queued("idle", large)]);
    let small = |n| Offer {
        free_memory_mb: 2_000,
        ..vm_host(&format!("s{n}"))
    };
    let got: Vec<u64> = (0..4).flat_map(|n| lab.serve(small(n))).collect();
    assert_eq!(got, [1, 2, 3, 4]);
    assert_eq!(lab.serve(vm_host("h")), [1_001]);
}

#[test]
fn a_share_acts_at_once_and_ends_at_once() {
    let mut lab = lab(0);
    assert!(turns(&mut lab, 10).is_empty());
    lab.on(Event::PolicyChanged(kept(500)));
    assert_eq!(turns(&mut lab, 4), [2, 4]);
    lab.on(Event::PolicyChanged(kept(0)));
    assert!(turns(&mut lab, 10).is_empty());
}

#[test]
fn what_runs_by_itself_is_owed_nothing_and_higher_classes_have_no_share() {
    let mut policy = kept(500);
    let share = |priority| QueuePolicy {
        background_permille: 500,
        ..queue(priority, 10)
    };
    policy.queues.insert("a".to_owned(), share(3));
    let mut lab = Lab::with(EngineConfig::default(), policy);
    lab.learn([job(1, "c"), queued("idle", job(1_001, "b"))]);
    assert_eq!(turns(&mut lab, 2), [2], "nothing else waits");
    lab.learn((2..=9).map(|n| job(n, "c")));
    lab.learn((10..=19).map(|n| job(n, "a")));
    lab.learn((1_002..=1_009).map(|n| queued("idle", job(n, "b"))));
    // Class 3 shares its turns by weight, whatever share is set of a queue in it.
    assert_eq!(turns(&mut lab, 6), [2, 4, 6]);
}

#[test]
fn a_paused_queue_is_owed_nothing() {
    let mut lab = lab(500);
    let mut paused = kept(500);
    paused
        .queues
        .entry("idle".to_owned())
        .and_modify(|queue| queue.paused = true);
    lab.on(Event::PolicyChanged(paused));
    assert!(turns(&mut lab, 6).is_empty());
    lab.on(Event::PolicyChanged(kept(500)));
    assert_eq!(turns(&mut lab, 2), [2]);
}

#[test]
fn a_job_is_told_what_is_kept_for_its_queue() {
    let lab = lab(50);
    let explained = lab.engine.explain_job(Millis(lab.now), JobKey(1_001));
    let kept = explained.map(|explained| explained.standing.background_permille);
    assert_eq!(kept, Some(50));
}
