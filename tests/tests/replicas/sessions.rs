//! Tests of agents that move between replicas: one host has one job, whichever replica serves it.

use std::collections::BTreeSet;

use fairlead_api::{ConsumeAnswer, Grant};
use fairlead_tests::{Lab, Reply, Testbox, eventually, jobs};
use serde_json::json;
use tokio::task::JoinSet;

const SHORT_LEASE: [&str; 2] = ["--lease", "4s"];
const END: &str = "job_stage=finish&job_health=success&job_data_readiness=complete";

/// Returns the grants for a request that may have lost its turn.
fn given(reply: &Reply) -> Vec<Grant> {
    if reply.status == 409 {
        return Vec::new();
    }
    let answer: ConsumeAnswer = serde_json::from_value(reply.json()).expect("an answer");
    answer.jobs
}

#[tokio::test(flavor = "multi_thread")]
async fn a_box_that_moves_in_mid_request_has_one_job() {
    const ROUNDS: usize = 25;
    let lab = Lab::new();
    let replicas = lab.schedulers(2, &[]).await;
    let all = [replicas[0].http(), replicas[1].http()];
    let mut machine = Testbox::hw(&all[0], "box-1");
    let (mut submitted, mut ran) = (BTreeSet::new(), Vec::new());
    for round in 0..ROUNDS {
        let (here, there) = (&all[round % 2], &all[(round + 1) % 2]);
        machine.offer.seen = Some(machine.offer.request);
        machine.turn_to(here);
        machine.next_request(20);
        let first = machine.clone();
        // Its agent abandons the first request at some moment, and asks elsewhere.
        machine.turn_to(there);
        machine.next_request(20);
        let second = machine.clone();
        let mut work = JoinSet::new();
        work.spawn(async move { given(&first.send().await) });
        work.spawn(async move { given(&second.send().await) });
        let (one, two) = (jobs::hw("alice"), jobs::hw("bob"));
        let (one, two) = tokio::join!(here.submit(&one), there.submit(&two));
        submitted.extend([one, two].concat());
        let grants: Vec<Grant> = work.join_all().await.concat();
        let distinct: BTreeSet<&str> = grants.iter().map(|grant| grant.job_id.as_str()).collect();
        assert_eq!(distinct.len(), 1, "round {round}: {distinct:?}");
        // An answer of the first request may have arrived too; the agent has its job from either.
        let grant = grants.last().expect("one at least");
        machine.finish(grant).await;
        ran.push(grant.job_id.clone());
        machine.offer.seen = None;
        machine.turn_to(here);
        let other = machine.take().await;
        machine.finish(&other).await;
        ran.push(other.job_id);
    }
    let distinct: BTreeSet<_> = ran.iter().cloned().collect();
    assert_eq!(distinct.len(), ran.len(), "a job was handed out twice");
    assert_eq!(distinct, submitted);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ended_at_one_replica_frees_the_box_at_the_other() {
    let lab = Lab::new();
    let replicas = lab.schedulers(2, &[]).await;
    let all = [replicas[0].http(), replicas[1].http()];
    let submitted = all[0].submit(&jobs::times(20, &jobs::hw("alice"))).await;
    let mut machine = Testbox::hw(&all[0], "box-1");
    let mut ran = Vec::new();
    for http in all.iter().rev().cycle().take(submitted.len()) {
        let grant = machine.take().await;
        machine.finish(&grant).await;
        ran.push(grant.job_id);
        machine.turn_to(http);
    }
    // Each replica begins with its own of several equal jobs, so the order is nearly that of their submit.
    let distinct: BTreeSet<_> = ran.iter().collect();
    assert_eq!(distinct, submitted.iter().collect(), "all, each once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_repeated_by_the_other_replica() {
    let lab = Lab::new();
    let mut replicas = lab.schedulers(2, &[]).await;
    let (a, b) = (replicas[0].http(), replicas[1].http());
    a.submit(&jobs::times(4, &jobs::dc("alice"))).await;
    let mut host = Testbox::dc(&a, "host-1", 2 << 10);
    host.next_request(10);
    // Their order is not guaranteed.
    let sorted = |mut jobs: Vec<Grant>| {
        jobs.sort_by(|one, other| one.job_id.cmp(&other.job_id));
        jobs
    };
    let first = sorted(host.ask_again().await.jobs);
    assert_eq!(first.len(), 2);
    host.turn_to(&b);
    assert_eq!(sorted(host.ask_again().await.jobs), first);
    // The same holds when the replica that granted it is gone, and when it is back.
    replicas[0].kill();
    assert_eq!(sorted(host.ask_again().await.jobs), first);
    replicas[0].restart().await;
    host.turn_to(&a);
    assert_eq!(sorted(host.ask_again().await.jobs), first);
    // The answer is read at last, and the rest follows.
    for grant in first {
        host.finish(&grant).await;
    }
    host.turn_to(&b);
    assert_eq!(host.run_all(5).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_session_elsewhere_loses_the_running_job() {
    let lab = Lab::new();
    let replicas = lab.schedulers(2, &[]).await;
    let (a, b) = (replicas[0].http(), replicas[1].http());
    let id = a.submit(&jobs::hw("alice")).await.remove(0);
    let mut machine = Testbox::hw(&a, "box-1");
    let first = machine.take().await;
    assert_eq!(
        machine.report(&first, "job_stage=running").await.status,
        200
    );
    let before = machine.clone();
    machine.reboot();
    machine.turn_to(&b);
    let second = eventually("the job comes again", async || {
        machine.ask(2).await.into_iter().next()
    })
    .await;
    assert_eq!((&second.job_id, second.attempt), (&id, 2));
    // Sessions from before the reboot are invalid at every replica.
    for http in [&a, &b] {
        let mut before = before.clone();
        before.turn_to(http);
        before.report(&first, END).await.refused(409);
        before.next_request(0);
        before.send().await.refused(409);
    }
    machine.turn_to(&a);
    machine.finish(&second).await;
    let job = b.job(&id).await;
    assert_eq!(
        (&job["job_health"], &job["attempt"]),
        (&json!("success"), &json!(2)),
        "{job}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_session_elsewhere_gets_an_unstarted_job_again() {
    let lab = Lab::new();
    let replicas = lab.schedulers(2, &[]).await;
    let (a, b) = (replicas[0].http(), replicas[1].http());
    let id = a.submit(&jobs::hw("alice")).await.remove(0);
    let mut machine = Testbox::hw(&a, "box-1");
    assert_eq!(machine.take_all().await[0].job_id, id);
    machine.reboot();
    machine.turn_to(&b);
    let again = machine.take().await;
    assert_eq!((&again.job_id, again.attempt), (&id, 1));
    machine.turn_to(&a);
    machine.finish(&again).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_end_counts_at_any_replica_while_the_next_attempt_is_unclaimed() {
    let lab = Lab::new();
    let replicas = lab.schedulers(2, &SHORT_LEASE).await;
    let (a, b) = (replicas[0].http(), replicas[1].http());
    let ids = a.submit(&jobs::times(2, &jobs::dc("alice"))).await;
    let mut lost = Testbox::dc(&a, "host-1", 2 << 10);
    let grants = lost.take_all().await;
    assert_eq!(grants.len(), 2);
    for grant in &grants {
        assert_eq!(lost.report(grant, "job_stage=running").await.status, 200);
    }
    for id in &ids {
        eventually("its lease is lost", async || {
            (b.field(id, "attempt").await == "2").then_some(())
        })
        .await;
    }
    // The next attempt has not started, so the work counts.
    lost.turn_to(&b);
    let reply = lost.report(&grants[0], END).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    let job = a.job(&grants[0].job_id).await;
    assert_eq!(
        (&job["job_health"], &job["attempt"]),
        (&json!("success"), &json!(1)),
        "{job}"
    );

    // The next attempt has started, so the report does not count, at any replica.
    let mut other = Testbox::dc(&a, "host-2", 2 << 10);
    let second = eventually("the other job goes to another host", async || {
        other.ask(2).await.into_iter().next()
    })
    .await;
    assert_eq!((&second.job_id, second.attempt), (&grants[1].job_id, 2));
    for http in [&a, &b] {
        lost.turn_to(http);
        lost.report(&grants[1], END).await.refused(409);
    }
    other.turn_to(&b);
    other.finish(&second).await;
    for id in &ids {
        assert_eq!(a.field(id, "job_health").await, "success");
    }
    assert!(other.ask(1).await.is_empty(), "nothing is left");
}
