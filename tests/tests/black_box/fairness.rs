//! Tests of shares between accounts and classes, from a submitter's view. The binary `shares` prints the figure of a
//! long run; this checks each single dispatch.

use std::time::Duration;

use fairlead_tests::{Scheduler, Store, Testbox, clock, eventually, jobs, on_both_stores};
use serde_json::{Value, json};

on_both_stores!(
    row_28_limits_of_running_and_waiting_jobs_hold_over_restarts,
    one_job_does_not_wait_behind_ten_thousand,
    vip_is_next_of_all_and_idle_is_last,
    a_share_of_dispatches_is_kept_for_a_low_class,
    row_07_weights_come_from_the_queue,
    a_paused_queue_waits,
);

async fn one_job_does_not_wait_behind_ten_thousand(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    http.submit(&jobs::times(10_000, &jobs::hw("user1"))).await;
    let mut machine = Testbox::hw(&http, "host-1");
    for _ in 0..3 {
        let grant = machine.take().await;
        machine.finish(&grant).await;
    }
    let one = http.submit(&jobs::hw("user2")).await.remove(0);
    let mut next = Vec::new();
    for _ in 0..2 {
        let grant = machine.take().await;
        next.push(grant.job_id.clone());
        machine.finish(&grant).await;
    }
    assert!(
        next.contains(&one),
        "user2's job is neither next nor next but one"
    );
}

async fn vip_is_next_of_all_and_idle_is_last(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let queued =
        |account: &str, queue: &str| jobs::with(jobs::hw(account), &json!({"queue": queue}));
    let idle = http.submit(&queued("carol", "idle")).await.remove(0);
    let mut normal = http.submit(&jobs::times(5, &jobs::hw("alice"))).await;
    normal.extend(http.submit(&jobs::hw("bob")).await);
    let vip = http.submit(&queued("bob", "vip")).await.remove(0);

    let mut machine = Testbox::hw(&http, "host-1");
    let ran = machine.run_all(3).await;
    assert_eq!(ran.len(), 8);
    assert_eq!(ran.first(), Some(&vip));
    assert_eq!(ran.last(), Some(&idle));
}

async fn a_share_of_dispatches_is_kept_for_a_low_class(store: Store) {
    let mut scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let path = "/scheduler/v1/queues/idle";
    http.post(path, &json!({"background_permille": 501}))
        .await
        .refused(400);
    let set = http.post(path, &json!({"background_permille": 250})).await;
    assert_eq!(set.json()["background_permille"], 250, "{}", set.text);
    scheduler.kill();
    scheduler.restart().await;
    http.submit(&jobs::times(6, &jobs::hw("alice"))).await;
    let idle = jobs::with(jobs::hw("carol"), &json!({"queue": "idle"}));
    let idle = http.submit(&jobs::times(3, &idle)).await;
    let explained = http
        .get(&format!("/scheduler/v1/jobs/{}/explain", idle[0]))
        .await;
    let words = "queue 'idle' gets 25.0 % of dispatches";
    assert!(explained.text.contains(words), "{}", explained.text);
    let ran = Testbox::hw(&http, "host-1").run_all(3).await;
    let turns = ran.iter().enumerate().filter(|(_, id)| idle.contains(id));
    let turns: Vec<usize> = turns.map(|(turn, _)| turn + 1).collect();
    assert_eq!(turns, [4, 8, 9], "the last one when nothing else waits");
}

async fn row_07_weights_come_from_the_queue(store: Store) {
    let mut scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    for (queue, weight) in [("alice", 3), ("bob", 1)] {
        let path = format!("/scheduler/v1/queues/{queue}");
        let reply = http.post(&path, &json!({"weight": weight})).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
    }
    scheduler.stop().await;
    scheduler.restart().await;
    let queues = http.get("/scheduler/v1/queues").await.json();
    let list = queues
        .get("queues")
        .unwrap_or(&queues)
        .as_array()
        .cloned()
        .unwrap_or_default();
    let alice = list.iter().find(|queue| queue["name"] == "alice");
    assert_eq!(
        alice.map(|queue| &queue["weight"]),
        Some(&json!(3)),
        "{queues}"
    );

    http.submit(&jobs::times(30, &jobs::hw("bob"))).await;
    let of_alice = http.submit(&jobs::times(30, &jobs::hw("alice"))).await;
    let mut machine = Testbox::hw(&http, "host-1");
    let mut alice_ran = 0;
    for _ in 0..20 {
        let grant = machine.take().await;
        assert_eq!(
            machine.report(&grant, "job_stage=running").await.status,
            200
        );
        let end = clock::now() + Duration::from_millis(150);
        eventually("the job has used its time", async || {
            (clock::now() >= end).then_some(())
        })
        .await;
        machine.finish_running(&grant).await;
        alice_ran += usize::from(of_alice.contains(&grant.job_id));
    }
    assert!(
        (12..=18).contains(&alice_ran),
        "alice, weight 3 of 4, ran {alice_ran} of 20"
    );
}

async fn a_paused_queue_waits(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let pause = async |paused: bool| {
        let reply = http
            .post("/scheduler/v1/queues/alice", &json!({"paused": paused}))
            .await;
        assert_eq!(reply.status, 200, "{}", reply.text);
    };
    pause(true).await;
    let waits = http.submit(&jobs::hw("alice")).await.remove(0);
    let runs = http.submit(&jobs::hw("bob")).await.remove(0);
    let mut machine = Testbox::hw(&http, "host-1");
    assert_eq!(machine.run_all(1).await, [runs]);
    pause(false).await;
    assert_eq!(machine.run_all(5).await, [waits]);
}

async fn row_28_limits_of_running_and_waiting_jobs_hold_over_restarts(store: Store) {
    let mut scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let set = async |what: &str, limits: Value| {
        let path = format!("/scheduler/v1/{what}");
        let reply = http.post(&path, &limits).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
    };
    let one_runs = json!({"limits": {"running": {"hard": 1}}});
    set("accounts/alice", one_runs).await;
    let two_wait = json!({"limits": {"waiting": {"hard": 2}}, "users": "all"});
    set("queues/batch", two_wait).await;
    scheduler.kill();
    scheduler.restart().await;
    let alices = http.submit(&jobs::times(2, &jobs::dc("alice"))).await;
    let batch = jobs::with(jobs::dc("bob"), &json!({"queue": "batch"}));
    let items = http.submit_items(&jobs::times(3, &batch)).await;
    let codes: Vec<&str> = items.iter().map(|item| item.code.as_str()).collect();
    assert_eq!(codes, ["", "", "quota"], "{items:?}");
    let message = &items[2].message;
    assert!(
        message.contains("queue 'batch' has 2 jobs waiting"),
        "{message}"
    );
    // Both jobs of bob and one of alice run, although there is room for all.
    let mut testbox = Testbox::dc(&http, "host-1", 64 << 10);
    let mut held = testbox.take_all().await;
    held.extend(testbox.ask(0).await);
    let of_alice = held.iter().filter(|grant| alices.contains(&grant.job_id));
    assert_eq!((held.len(), of_alice.count()), (3, 1), "{held:?}");
    let waits = alices
        .iter()
        .find(|id| held.iter().all(|grant| grant.job_id != **id));
    let waits = waits.expect("one of alice's waits");
    let told = http
        .get(&format!("/scheduler/v1/jobs/{waits}/explain"))
        .await
        .text;
    assert!(
        told.contains("account 'alice' has 1 job on testboxes; its limit is 1"),
        "{told}"
    );
    let ends = held.iter().find(|grant| alices.contains(&grant.job_id));
    let ends = ends.expect("one of alice's runs").clone();
    testbox.finish(&ends).await;
    let next = testbox.take_all().await;
    assert_eq!(next.len(), 1);
    assert_eq!(next[0].job_id, *waits);
    let bad = json!({"limits": {"running": {"soft": 5, "hard": 1}}});
    let refused = http.post("/scheduler/v1/queues/batch", &bad).await;
    assert!(refused.refused(400).message.contains("limits.running"));
}
