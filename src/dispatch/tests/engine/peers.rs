//! Tests of several replicas that see the same jobs. Each begins with its own, no job is left behind, and remote jobs
//! are charged for their real time.

use crate::lab::*;
use fairlead_dispatch::*;

/// A replica among three, with the same 30 jobs as the others.
fn replica(own: u64) -> (Lab, Peers) {
    let mut lab = Lab::new();
    let others = [11, 22, 33].into_iter().filter(|other| *other != own);
    let peers = Peers {
        own,
        others: others.collect(),
    };
    lab.on(Event::PeersChanged(peers.clone()));
    lab.learn((1..=30).map(|n| job(n, "a")));
    (lab, peers)
}

#[test]
fn replicas_begin_with_jobs_of_their_own_in_submit_order() {
    let mut all = Vec::new();
    for own in [11, 22, 33] {
        let (mut lab, peers) = replica(own);
        let mine: Vec<u64> = (1..=30).filter(|n| peers.rank(JobKey(*n)) == 0).collect();
        let got: Vec<u64> = mine
            .iter()
            .flat_map(|n| lab.serve(vm_host(&format!("h{n}"))))
            .collect();
        assert_eq!(got, mine);
        all.extend(got);
    }
    all.sort_unstable();
    assert_eq!(all, (1..=30).collect::<Vec<_>>(), "no job is claimed twice");
}

#[test]
fn a_replica_that_finds_none_of_its_own_takes_first_those_that_it_is_next_for() {
    let mut taken = Vec::new();
    for own in [11, 22, 33] {
        let (mut lab, peers) = replica(own);
        let got: Vec<u64> = (1..=30)
            .flat_map(|n| lab.serve(vm_host(&format!("h{n}"))))
            .collect();
        let rank = |n: &u64| peers.rank(JobKey(*n));
        let mut all: Vec<u64> = (1..=30).collect();
        all.sort_by_key(rank);
        assert_eq!(got, all);
        taken.extend(got.into_iter().filter(|n| rank(n) == 1));
    }
    taken.sort_unstable();
    let each_once: Vec<u64> = (1..=30).collect();
    assert_eq!(taken, each_once, "no two help with the same job first");
}

#[test]
fn priority_comes_before_whose_a_job_is() {
    let (mut lab, peers) = replica(11);
    let urgent = (31..99).find(|n| peers.rank(JobKey(*n)) > 0).expect("one");
    lab.learn([JobFacts {
        priority: 5,
        ..job(urgent, "a")
    }]);
    assert_eq!(lab.serve(vm_host("h")), [urgent]);
}

#[test]
fn a_job_that_is_left_to_another_for_a_moment_is_taken_after_it() {
    let mut lab = Lab::new();
    let offer = lab.offer(vm_host("h"));
    let not_before = Millis(lab.now + 25);
    lab.learn([JobFacts {
        not_before,
        ..job(1, "a")
    }]);
    assert!(lab.claims().is_empty());
    assert_eq!(lab.wake(), Some(not_before.0));
    lab.pass(25);
    assert_eq!(lab.claims(), [(1, offer.0)]);
}

#[test]
fn what_ran_elsewhere_is_charged_until_it_ended_and_not_until_it_was_heard_of() {
    let mut lab = Lab::new();
    lab.learn([job(1, "a"), job(2, "b")]);
    let since = Millis(lab.now);
    for (key, account) in [(10, "a"), (20, "b")] {
        lab.on(Event::JobHeld(Box::new(Running {
            facts: job(key, account),
            host: format!("elsewhere{key}"),
            group: "group".to_owned(),
            total_memory_mb: 20_000,
            total_cpus: CPUS_UNCHECKED,
            since,
        })));
    }
    lab.pass(60_000);
    // `a`'s job ran for 5 s, `b`'s for 2 s; both ends are heard of late, `b`'s later.
    for (key, took_ms) in [(10, 5_000), (20, 2_000)] {
        lab.on(Event::JobEnded {
            job: JobKey(key),
            version: version(u64::MAX),
            ran: true,
            at: Millis(since.0 + took_ms),
        });
        lab.pass(30_000);
    }
    assert_eq!(lab.serve(vm_host("h")), [2], "b had less");
}

#[test]
fn a_claim_is_charged_from_the_decision_as_the_other_replicas_charge_it() {
    let mut lab = Lab::new();
    lab.learn([job(1, "a"), job(10, "a"), job(2, "b")]);
    let offer = lab.offer(vm_host("h"));
    assert_eq!(lab.claimed(), [1]);
    // The store takes 3 s for the claim, and the job runs for 1 s: 4 s in all.
    lab.pass(3_000);
    lab.commit(JobKey(1), offer);
    lab.pass(1_000);
    lab.end(JobKey(1));
    // The other account had 3 s elsewhere.
    let since = Millis(lab.now);
    lab.on(Event::JobHeld(Box::new(Running {
        facts: job(20, "b"),
        host: "elsewhere".to_owned(),
        group: "group".to_owned(),
        total_memory_mb: 20_000,
        total_cpus: CPUS_UNCHECKED,
        since,
    })));
    lab.pass(3_000);
    lab.end(JobKey(20));
    assert_eq!(lab.serve(vm_host("h")), [2], "b had less");
}

/// Another replica had it and put it back, and this one heard so only while it claimed a newer state. Such a job was as
/// good as gone for this replica, or one that ran counted as over. Seed 707574740.
#[test]
fn old_news_of_a_job_in_flight_change_nothing() {
    let at = |seq_no| JobFacts {
        version: version(seq_no),
        ..job(1, "a")
    };
    let in_flight = || {
        let mut lab = Lab::new();
        lab.learn([at(76)]);
        let offer = lab.offer(vm_host("h"));
        lab.on(Event::JobHeld(Box::new(Running {
            facts: at(67),
            host: "elsewhere".to_owned(),
            group: "group".to_owned(),
            total_memory_mb: 20_000,
            total_cpus: CPUS_UNCHECKED,
            since: Millis(0),
        })));
        lab.learn([at(68)]);
        lab.on(Event::JobEnded {
            job: JobKey(1),
            version: version(68),
            ran: false,
            at: Millis(u64::MAX),
        });
        (lab, offer)
    };
    let (mut lab, offer) = in_flight();
    lab.refuse(JobKey(1), offer, Refusal::Unavailable { until: Millis(0) });
    assert_eq!(lab.serve(vm_host("i")), [1], "it waits");
    let (mut lab, offer) = in_flight();
    lab.on(Event::ClaimCommitted {
        job: JobKey(1),
        offer,
        version: version(77),
    });
    assert_eq!(lab.engine.stats().running, 1);
}
