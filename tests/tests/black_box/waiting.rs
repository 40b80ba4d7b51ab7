//! Waiting for jobs: other jobs, and clients.

use std::collections::BTreeSet;

use fairlead_tests::{Scheduler, Store, Testbox, eventually, jobs, on_both_stores};
use serde_json::json;

on_both_stores!(
    row_11_two_jobs_wait_for_the_same_job,
    jobs_of_one_submit_wait_for_those_they_need,
    jobs_of_a_sequence_run_one_at_a_time,
    as_many_jobs_run_as_their_concurrency_says,
    a_cluster_begins_and_fails_as_a_whole_through_restarts,
    who_waits_too_long_for_peers_goes_back_without_a_try,
    row_12_anything_can_be_waited_for,
    row_12_a_wait_is_answered_when_it_comes_true,
    row_18_a_new_job_goes_out_at_once,
    row_18_a_large_host_is_filled_by_one_answer,
);

async fn row_11_two_jobs_wait_for_the_same_job(store: Store) {
    let mut scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let first = http.submit(&jobs::dc("alice")).await.remove(0);
    let waits = json!({"wait_on": {first.clone(): {"job_stage": "finish"}}});
    let children = http
        .submit(&jobs::times(2, &jobs::with(jobs::dc("alice"), &waits)))
        .await;

    let mut testbox = Testbox::dc(&http, "host-1", 8 << 10);
    let grants = testbox.take_all().await;
    assert_eq!(grants.len(), 1, "only the job that waits for nothing");
    assert_eq!(grants[0].job_id, first);
    scheduler.kill();
    scheduler.restart().await;
    assert!(testbox.ask(1).await.is_empty());
    testbox.finish(&grants[0]).await;
    let both: BTreeSet<_> = testbox.run_all(5).await.into_iter().collect();
    assert_eq!(both, children.into_iter().collect());
}

async fn jobs_of_one_submit_wait_for_those_they_need(store: Store) {
    let mut scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let job = |more: serde_json::Value| jobs::with(jobs::dc("alice"), &more);
    let graph = json!([
        job(json!({"name": "report", "needs": ["test"], "if": "always"})),
        job(json!({"name": "test", "needs": ["build"]})),
        job(json!({"name": "build"})),
        job(json!({"name": "ship", "needs": ["test"]})),
    ]);
    let ids = http.submit(&graph).await;
    let mut testbox = Testbox::dc(&http, "host-1", 8 << 10);
    let build = testbox.take_all().await;
    assert_eq!(
        (build.len(), &build[0].job_id),
        (1, &ids[2]),
        "one after the other"
    );
    scheduler.kill();
    scheduler.restart().await;
    testbox.finish(&build[0]).await;
    let test = testbox.take().await;
    assert_eq!(test.job_id, ids[1]);
    assert_eq!(testbox.report(&test, "job_stage=running").await.status, 200);
    let end = "job_stage=finish&job_health=fail&exit_code=1";
    assert_eq!(testbox.report(&test, end).await.status, 200);
    testbox.drop_job(&test.job_id);
    assert_eq!(
        testbox.run_all(5).await,
        [ids[0].clone()],
        "whatever became of it"
    );
    assert_eq!(http.field(&ids[3], "job_health").await, "abort_wait");
    let circle = json!([
        job(json!({"name": "a", "needs": ["b"]})),
        job(json!({"name": "b", "needs": ["a"]})),
    ]);
    http.post("/scheduler/v1/jobs/submit", &circle)
        .await
        .refused(400);
}

/// Returns a submit of two nodes, each of which takes a host of 8 GB.
fn pair(more: &serde_json::Value) -> serde_json::Value {
    let cluster = json!({"cluster": "cs-s1-c1", "need_memory": "6g", "retry": 0});
    jobs::with(jobs::with(jobs::dc("alice"), &cluster), more)
}

async fn a_cluster_begins_and_fails_as_a_whole_through_restarts(store: Store) {
    let mut scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let ids = http.submit(&pair(&json!({}))).await;
    assert_eq!(ids.len(), 2);
    let mut boxes = [
        Testbox::dc(&http, "host-1", 8 << 10),
        Testbox::dc(&http, "host-2", 8 << 10),
    ];
    let first = boxes[0].take().await;
    let there = "job_stage=wait_peer&address=10.0.0.1";
    assert_eq!(boxes[0].report(&first, there).await.status, 200);
    boxes[0]
        .report(&first, "job_stage=running")
        .await
        .refused(409);
    scheduler.kill();
    scheduler.restart().await;
    let second = boxes[1].take().await;
    let there = "job_stage=wait_peer&address=10.0.0.2";
    assert_eq!(boxes[1].report(&second, there).await.status, 200);
    for grant in [&first, &second] {
        let path = format!(
            "/scheduler/v1/jobs/{}/wait_peer?attempt=1&job_token={}",
            grant.job_id, grant.job_token
        );
        let answer = http.post(&path, &serde_json::Value::Null).await.json();
        let addresses = [
            &answer["peers"][0]["address"],
            &answer["peers"][1]["address"],
        ];
        assert_eq!(answer["open"], true, "{answer}");
        assert!(addresses.contains(&&json!("10.0.0.1")), "{answer}");
        assert!(addresses.contains(&&json!("10.0.0.2")), "{answer}");
    }
    assert_eq!(
        boxes[0].report(&first, "job_stage=running").await.status,
        200
    );
    assert_eq!(
        boxes[1].report(&second, "job_stage=running").await.status,
        200
    );
    let end = "job_stage=finish&job_health=fail&exit_code=1";
    assert_eq!(boxes[1].report(&second, end).await.status, 200);
    scheduler.kill();
    scheduler.restart().await;
    eventually("its peer is told to stop", async || {
        let told = boxes[0].heartbeat().await;
        told.contains(&first.job_id).then_some(())
    })
    .await;
    let end = "job_stage=finish&job_health=abort_wait";
    assert_eq!(boxes[0].report(&first, end).await.status, 200);
    let reason = http.field(&first.job_id, "reason").await;
    assert!(reason.contains("ended with fail"), "{reason}");
}

async fn who_waits_too_long_for_peers_goes_back_without_a_try(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let ids = http.submit(&pair(&json!({"cluster_wait": "1s"}))).await;
    let mut testbox = Testbox::dc(&http, "host-1", 8 << 10);
    let grant = testbox.take().await;
    assert_eq!(
        testbox.report(&grant, "job_stage=wait_peer").await.status,
        200
    );
    let id = grant.job_id.as_str();
    eventually("it goes back", async || {
        let waits = http.field(id, "job_stage").await == "submit";
        waits.then_some(())
    })
    .await;
    let job = http.job(id).await;
    assert_eq!(
        (&job["attempt"], &job["cluster_round"]),
        (&json!(1), &json!(2)),
        "{job}"
    );
    testbox
        .report(&grant, "job_stage=running")
        .await
        .refused(409);
    testbox.drop_job(id);
    // The other node may not start either, and cancelling one cancels all.
    let cancel = format!("/scheduler/v1/jobs/{id}/cancel");
    let reply = http.post(&cancel, &json!({"my_account": "alice"})).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    let other = ids.iter().find(|other| *other != id).unwrap_or(&ids[0]);
    eventually("its peer ends", async || {
        let ended = http.field(other, "job_health").await == "abort_wait";
        ended.then_some(())
    })
    .await;
}

async fn jobs_of_a_sequence_run_one_at_a_time(store: Store) {
    let mut scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let member = |sequence: &str| {
        let more = json!({"sequence": sequence, "sequence_host": "same"});
        jobs::with(jobs::dc("alice"), &more)
    };
    let ids = http
        .submit(&json!([member("s"), member("s"), member("s"), member("t")]))
        .await;
    let mut testbox = Testbox::dc(&http, "host-1", 8 << 10);
    let mut first = Vec::new();
    while first.len() < 2 {
        first.extend(testbox.take_all().await);
    }
    let held: BTreeSet<_> = first.iter().map(|grant| &grant.job_id).collect();
    assert_eq!(held, BTreeSet::from([&ids[0], &ids[3]]), "one of each");
    let told = http
        .get(&format!("/scheduler/v1/jobs/{}/explain", ids[1]))
        .await
        .text;
    assert!(told.contains(&ids[0]), "who has the turn: {told}");
    scheduler.kill();
    scheduler.restart().await;
    for grant in &first {
        testbox.finish(grant).await;
    }
    // The second job stays on the first one's host; another host gets nothing.
    let mut other = Testbox::dc(&http, "host-2", 8 << 10);
    let second = testbox.take_all().await;
    assert_eq!((second.len(), &second[0].job_id), (1, &ids[1]));
    testbox.finish(&second[0]).await;
    assert!(other.ask(1).await.is_empty());
    assert_eq!(testbox.run_all(1).await, [ids[2].clone()]);
}

async fn as_many_jobs_run_as_their_concurrency_says(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let member = |n: u32, more: &serde_json::Value| {
        let mut concurrency = json!({"group": "push", "limit": 2});
        for (name, value) in more.as_object().into_iter().flatten() {
            concurrency[name] = value.clone();
        }
        let fields = json!({"submit_id": format!("push-{n}"), "concurrency": concurrency});
        jobs::with(jobs::dc("alice"), &fields)
    };
    let plain = json!({});
    let ids = http
        .submit(&json!([
            member(1, &plain),
            member(2, &plain),
            member(3, &plain)
        ]))
        .await;
    let mut testbox = Testbox::dc(&http, "host-1", 8 << 10);
    let mut held = Vec::new();
    while held.len() < 2 {
        held.extend(testbox.take_all().await);
    }
    let begun: BTreeSet<_> = held.iter().map(|grant| &grant.job_id).collect();
    assert_eq!(begun, BTreeSet::from([&ids[0], &ids[1]]));
    let told = http
        .get(&format!("/scheduler/v1/jobs/{}/explain", ids[2]))
        .await
        .text;
    assert!(told.contains("at most 2 run"), "{told}");
    // The newest job replaces the waiting one, and the two running ones go on.
    let newest = http
        .submit(&json!([member(4, &json!({"replace": "waiting"}))]))
        .await;
    let is_cancelled = async |id: &str| {
        let stage = http.field(id, "job_stage").await;
        (stage == "cancel").then_some(())
    };
    eventually("the one that waits is cancelled", async || {
        is_cancelled(&ids[2]).await
    })
    .await;
    let reason = http.field(&ids[2], "reason").await;
    assert_eq!(reason, format!("replaced by job {} of 'push'", newest[0]));
    assert_eq!(http.field(&ids[0], "job_stage").await, "dispatch");
    // The last job stops the running ones, too.
    let last = http
        .submit(&json!([member(5, &json!({"replace": true, "limit": 1}))]))
        .await;
    eventually("the newest is cancelled", async || {
        is_cancelled(&newest[0]).await
    })
    .await;
    eventually("a running one is told", async || {
        let reason = http.field(&ids[0], "reason").await;
        reason.contains(&last[0]).then_some(())
    })
    .await;
    for grant in &held {
        testbox.finish(grant).await;
    }
    assert_eq!(testbox.run_all(1).await, [last[0].clone()]);
}

async fn row_12_anything_can_be_waited_for(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let ids = http.submit(&jobs::times(2, &jobs::dc("alice"))).await;
    let mut testbox = Testbox::dc(&http, "host-1", 1 << 10);
    let grant = testbox.take().await;
    testbox.finish(&grant).await;

    let wait = async |body| http.post("/scheduler/v1/jobs/wait", &body).await;
    // The job ended before the wait: the answer comes at once, with its stage and health.
    let reply = wait(json!({"wait_on": {ids[0].clone(): {"job_stage": "finish"}}}))
        .await
        .json();
    assert_eq!(
        reply["waited_jobs"][&ids[0]]["job_stage"], "finish",
        "{reply}"
    );
    assert_eq!(
        reply["waited_jobs"][&ids[0]]["job_health"], "success",
        "{reply}"
    );
    // The other axis is the data readiness.
    let complete = json!({"wait_on": {ids[0].clone(): {"job_data_readiness": "complete"}}});
    let reply = wait(complete).await.json();
    assert!(reply["waited_jobs"][&ids[0]].is_object(), "{reply}");
    // An unknown job and invalid conditions are refused.
    wait(json!({"wait_on": {"2611210236110700000": null}}))
        .await
        .refused(404);
    for nonsense in [
        json!({}),
        json!({"wait_on": []}),
        json!({"wait_on": {}}),
        json!({"wait_on": {"abc": null}}),
        json!({"wait_on": {ids[0].clone(): {"job_stage": "done"}}}),
        json!([1, 2]),
    ] {
        wait(nonsense).await.refusal();
    }
}

async fn row_12_a_wait_is_answered_when_it_comes_true(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let id = http.submit(&jobs::dc("alice")).await.remove(0);
    let mut testbox = Testbox::dc(&http, "host-1", 1 << 10);
    let grant = testbox.take().await;
    let body = json!({"wait_on": {id.clone(): {"job_stage": "finish"}}});
    let waiting = async {
        // Asks again until nothing is open, as a client does.
        loop {
            let reply = http.post("/scheduler/v1/jobs/wait", &body).await.json();
            if reply["waited_jobs"][&id]["job_stage"] == "finish" {
                return reply;
            }
        }
    };
    let (reply, ()) = tokio::join!(waiting, testbox.finish(&grant));
    assert_eq!(reply["waited_jobs"][&id]["job_health"], "success");
}

async fn row_18_a_new_job_goes_out_at_once(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let mut testbox = Testbox::dc(&http, "host-1", 1 << 10);
    let mut other = Testbox::dc(&http, "host-2", 1 << 10);
    for _ in 0..3 {
        // One of the two waiting hosts gets the job, long before their requests end.
        let asked = async {
            tokio::select! {
                grants = testbox.ask(60) => (grants, true),
                grants = other.ask(60) => (grants, false),
            }
        };
        let (ids, (grants, first)) = tokio::join!(http_submit(&http), asked);
        assert_eq!(grants.len(), 1, "an answer before its time is a job");
        assert_eq!(grants[0].job_id, ids[0]);
        let winner = if first { &mut testbox } else { &mut other };
        winner.finish(&grants[0]).await;
    }
}

async fn http_submit(http: &fairlead_tests::Http) -> Vec<String> {
    http.submit(&jobs::dc("alice")).await
}

async fn row_18_a_large_host_is_filled_by_one_answer(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    http.submit(&jobs::times(80, &jobs::dc("alice"))).await;
    let mut testbox = Testbox::dc(&http, "host-1", 64 << 10);
    assert_eq!(
        testbox.take_all().await.len(),
        64,
        "64 of 1 GB fit into 64 GB"
    );
}
