//! Tests of leases while replicas or the store are away: a job is put back only when its host is lost.

use std::time::Duration;

use fairlead_api::Grant;
use fairlead_tests::{Gate, Http, Lab, Scheduler, Testbox, clock, eventually, jobs};
use reqwest::Method;
use serde_json::json;

const LEASE: Duration = Duration::from_secs(5);
const LEASE_WORDS: [&str; 2] = ["--lease", "5s"];

/// Returns a host with a running job, all of it at one replica.
async fn running(http: &Http) -> (Testbox, Grant) {
    http.submit(&jobs::dc("alice")).await;
    let mut host = Testbox::dc(http, "host-1", 2 << 10);
    let grant = host.take().await;
    assert_eq!(host.report(&grant, "job_stage=running").await.status, 200);
    (host, grant)
}

/// Sends heartbeats of the host's agent at the usual rate, with or without an answer.
async fn beats_for(host: &Testbox, time: Duration) {
    let end = clock::now() + time;
    let mut ticks = tokio::time::interval(LEASE / 6);
    while clock::now() < end {
        ticks.tick().await;
        let _ = tokio::time::timeout(LEASE / 3, host.try_heartbeat()).await;
    }
}

/// Checks that every replica shows the job in its first attempt, and that its host may go on with it.
async fn goes_on(replicas: &[Http], host: &Testbox, grant: &Grant) {
    for http in replicas {
        let job = http.job(&grant.job_id).await;
        assert_eq!(
            (&job["job_stage"], &job["attempt"]),
            (&json!("running"), &json!(1)),
            "{job}"
        );
    }
    assert_eq!(host.heartbeat().await, [""; 0], "nothing is to be stopped");
}

async fn comes_back(http: &Http, id: &str) {
    eventually("the lost host's job is put back", async || {
        (http.field(id, "attempt").await == "2").then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_goes_on_when_the_replica_that_gave_it_is_killed() {
    let lab = Lab::new();
    let mut replicas = lab.schedulers(2, &LEASE_WORDS).await;
    let (a, b) = (replicas[0].http(), replicas[1].http());
    let (mut host, grant) = running(&a).await;
    replicas[0].kill();
    host.turn_to(&b);
    beats_for(&host, LEASE * 3).await;
    goes_on(std::slice::from_ref(&b), &host, &grant).await;
    // The lease also holds when the replica is back, and the other one is gone.
    replicas[0].restart().await;
    replicas[1].kill();
    host.turn_to(&a);
    beats_for(&host, LEASE * 2).await;
    goes_on(std::slice::from_ref(&a), &host, &grant).await;
    host.finish_running(&grant).await;
    assert_eq!(a.field(&grant.job_id, "job_health").await, "success");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_replica_hears_counts_at_all() {
    let lab = Lab::new();
    let replicas = lab.schedulers(3, &LEASE_WORDS).await;
    let all: Vec<Http> = replicas.iter().map(Scheduler::http).collect();
    let (mut host, grant) = running(&all[0]).await;
    beats_for(&host, LEASE * 3).await;
    goes_on(&all, &host, &grant).await;
    host.turn_to(&all[1]);
    beats_for(&host, LEASE * 2).await;
    goes_on(&all, &host, &grant).await;
    host.finish_running(&grant).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_is_left_puts_a_lost_host_s_job_back() {
    let lab = Lab::new();
    let mut replicas = lab.schedulers(2, &LEASE_WORDS).await;
    let (a, b) = (replicas[0].http(), replicas[1].http());
    let (_lost, grant) = running(&a).await;
    replicas[0].kill();
    comes_back(&b, &grant.job_id).await;
    let mut other = Testbox::dc(&b, "host-2", 2 << 10);
    let second = eventually("another host gets it", async || {
        other.ask(2).await.into_iter().next()
    })
    .await;
    assert_eq!((&second.job_id, second.attempt), (&grant.job_id, 2));
    other.finish(&second).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_away_for_longer_than_a_lease_costs_no_job() {
    let lab = Lab::new();
    let gate = Gate::open().await;
    let replicas = [
        lab.scheduler_behind(&gate, &LEASE_WORDS).await,
        lab.scheduler_behind(&gate, &LEASE_WORDS).await,
    ];
    let all: Vec<Http> = replicas.iter().map(Scheduler::http).collect();
    let (host, grant) = running(&all[0]).await;
    gate.hold();
    beats_for(&host, LEASE * 4).await;
    gate.release();
    for http in &all {
        eventually("the replica has its store again", async || {
            let reply = http.try_send(Method::GET, "/scheduler/v1/health", "", vec![]);
            reply
                .await
                .is_ok_and(|reply| reply.status == 200)
                .then_some(())
        })
        .await;
    }
    beats_for(&host, LEASE * 2).await;
    goes_on(&all, &host, &grant).await;
    // Leases still expire: the same host is now lost for good.
    comes_back(&all[1], &grant.job_id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_was_paused_puts_nothing_back() {
    let lab = Lab::new();
    let replicas = lab.schedulers(2, &LEASE_WORDS).await;
    let all: Vec<Http> = replicas.iter().map(Scheduler::http).collect();
    let (mut host, grant) = running(&all[0]).await;
    host.turn_to(&all[1]);
    replicas[0].pause();
    beats_for(&host, LEASE * 2).await;
    replicas[0].resume();
    beats_for(&host, LEASE * 2).await;
    goes_on(&all, &host, &grant).await;
    // Both replicas are paused, so none hears the host.
    replicas.iter().for_each(Scheduler::pause);
    beats_for(&host, LEASE * 2).await;
    replicas.iter().for_each(Scheduler::resume);
    beats_for(&host, LEASE * 2).await;
    goes_on(&all, &host, &grant).await;
    host.finish_running(&grant).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_cut_off_from_the_store_puts_nothing_back_and_refuses_submits() {
    let lab = Lab::new();
    let gate = Gate::open().await;
    let replicas = [
        lab.scheduler_behind(&gate, &LEASE_WORDS).await,
        lab.scheduler(&LEASE_WORDS).await,
    ];
    let all: Vec<Http> = replicas.iter().map(Scheduler::http).collect();
    let (mut host, grant) = running(&all[0]).await;
    gate.hold();
    host.turn_to(&all[1]);
    beats_for(&host, LEASE * 4).await;
    let job = jobs::dc("alice");
    let submit = all[0].post("/scheduler/v1/jobs/submit", &job);
    let reply = tokio::select! {
        reply = submit => reply,
        () = beats_for(&host, LEASE * 30) => panic!("a submit without a store was not answered"),
    };
    assert_eq!(reply.status, 503, "{}", reply.text);
    gate.release();
    beats_for(&host, LEASE * 2).await;
    eventually("the replica has its store again", async || {
        let reply = all[0].get("/scheduler/v1/health").await;
        (reply.status == 200).then_some(())
    })
    .await;
    goes_on(&all, &host, &grant).await;
    host.finish_running(&grant).await;
}
