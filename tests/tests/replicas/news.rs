//! Tests of news between replicas: jobs, vip jobs, weights and priorities act at the replica that the testbox asks. The
//! binary `hints` prints how long it takes; these tests check only that it works.

use std::time::Duration;

use fairlead_tests::{Http, Lab, Metrics, Scheduler, Testbox, clock, eventually, jobs};
use serde_json::{Value, json};

async fn lab(n: usize) -> (Vec<Scheduler>, Vec<Http>) {
    let replicas = Lab::new().schedulers(n, &[]).await;
    let https = replicas.iter().map(Scheduler::http).collect();
    (replicas, https)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_waits_elsewhere_gets_the_job() {
    let (_replicas, all) = lab(3).await;
    for (n, here) in all.iter().enumerate() {
        let there = &all[(n + 1) % all.len()];
        let mut host = Testbox::dc(there, &format!("host-{n}"), 2 << 10);
        host.next_request(30);
        let submit = async {
            eventually("the host waits", async || {
                (Metrics::of(there).await.get("fairlead_waiters") >= 1.0).then_some(())
            })
            .await;
            here.submit(&jobs::dc("alice")).await
        };
        let (answer, ids) = tokio::join!(host.ask_again(), submit);
        assert_eq!(answer.jobs[0].job_id, ids[0]);
        host.finish(&answer.jobs[0]).await;
    }
}

/// Replicas only tell each other the first jobs of a list. The rest is found in the store.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_nobody_hinted_reaches_a_host_that_waits_elsewhere() {
    let (_replicas, all) = lab(2).await;
    let elsewhere = jobs::with(jobs::dc("alice"), &json!({"target_machines": ["nowhere"]}));
    let mut list = vec![elsewhere; 300];
    list.push(jobs::dc("bob"));
    let list = Value::Array(list);
    let mut host = Testbox::dc(&all[1], "host-1", 2 << 10);
    host.next_request(60);
    let (answer, ids) = tokio::join!(host.ask_again(), all[0].submit(&list));
    assert_eq!(answer.jobs[0].job_id, ids[300]);
}

/// Runs jobs without a pause until one of `ids` arrives. There are enough normal jobs for the longest possible time.
async fn until_one_of(machine: &mut Testbox, ids: &[String]) -> String {
    eventually("the job is next", async || {
        let grant = machine.take().await;
        machine.finish(&grant).await;
        ids.contains(&grant.job_id).then_some(grant.job_id)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vip_job_is_next_at_every_replica() {
    let (_replicas, all) = lab(3).await;
    all[0].submit(&jobs::times(5000, &jobs::hw("alice"))).await;
    let vip = jobs::with(jobs::hw("bob"), &json!({"queue": "vip"}));
    for (n, here) in all.iter().enumerate() {
        for there in [&all[(n + 1) % 3], &all[(n + 2) % 3]] {
            let mut machine = Testbox::hw(there, "box-1");
            let ids = here.submit(&vip).await;
            until_one_of(&mut machine, &ids).await;
        }
        // The job is the last of a list that is never hinted completely.
        let mut list = vec![jobs::with(vip.clone(), &json!({"target_machines": ["nowhere"]})); 200];
        list.push(vip.clone());
        let ids = here.submit(&Value::Array(list)).await;
        let mut machine = Testbox::hw(&all[(n + 1) % 3], "box-1");
        until_one_of(&mut machine, &ids).await;
    }
}

async fn set(http: &Http, queue: &str, change: &Value) {
    let reply = http
        .post(&format!("/scheduler/v1/queues/{queue}"), change)
        .await;
    assert_eq!(reply.status, 200, "{}", reply.text);
}

/// Runs `n` jobs of equal length, and returns the number of those in `ids`.
async fn run(machine: &mut Testbox, n: usize, ids: &[String]) -> usize {
    let mut found = 0;
    for _ in 0..n {
        let grant = machine.take().await;
        let reply = machine.report(&grant, "job_stage=running").await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        let end = clock::now() + Duration::from_millis(150);
        eventually("the job has used its time", async || {
            (clock::now() >= end).then_some(())
        })
        .await;
        machine.finish_running(&grant).await;
        found += usize::from(ids.contains(&grant.job_id));
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_weight_said_to_one_replica_acts_at_all() {
    let (_replicas, all) = lab(2).await;
    let alice = all[0].submit(&jobs::times(300, &jobs::hw("alice"))).await;
    all[0].submit(&jobs::times(300, &jobs::hw("bob"))).await;
    let mut machine = Testbox::hw(&all[1], "box-1");
    eventually("both are known there, and half is hers", async || {
        let even = run(&mut machine, 12, &alice).await;
        (4..=8).contains(&even).then_some(())
    })
    .await;
    set(&all[0], "alice", &json!({"weight": 90})).await;
    eventually("it acts at the other replica", async || {
        (run(&mut machine, 10, &alice).await >= 8).then_some(())
    })
    .await;
    set(&all[1], "bob", &json!({"weight": 8100})).await;
    machine.turn_to(&all[0]);
    eventually("the other way round", async || {
        (run(&mut machine, 10, &alice).await <= 2).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_priority_said_to_one_replica_acts_at_all() {
    let (_replicas, all) = lab(3).await;
    all[0].submit(&jobs::times(1000, &jobs::hw("alice"))).await;
    let bob = all[1].submit(&jobs::times(1000, &jobs::hw("bob"))).await;
    for (priority, is_bobs) in [(5, true), (2, false), (5, true)] {
        set(&all[0], "bob", &json!({"priority": priority})).await;
        for (n, http) in all.iter().enumerate() {
            let mut machine = Testbox::hw(http, &format!("box-{n}"));
            eventually("nothing else is dispatched", async || {
                let mut ran = 0;
                for _ in 0..10 {
                    let grant = machine.take().await;
                    machine.finish(&grant).await;
                    ran += usize::from(bob.contains(&grant.job_id) == is_bobs);
                }
                (ran == 10).then_some(())
            })
            .await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_queue_waits_at_all_replicas() {
    let (_replicas, all) = lab(2).await;
    set(&all[0], "alice", &json!({"paused": true})).await;
    let mut machine = Testbox::hw(&all[1], "box-1");
    let waits = eventually("its jobs wait at the other replica", async || {
        let id = all[0].submit(&jobs::hw("alice")).await.remove(0);
        let ran = machine.run_next(2).await;
        (!ran.contains(&id)).then_some(id)
    })
    .await;
    let runs = all[0].submit(&jobs::hw("bob")).await.remove(0);
    assert_eq!(machine.run_all(3).await, [runs]);
    set(&all[0], "alice", &json!({"paused": false})).await;
    assert_eq!(machine.run_all(5).await, [waits]);
}
