//! Tests that acknowledged writes hold: over `kill -9`, over a store that refuses, over lost answers.

use std::collections::BTreeSet;

use fairlead_tests::{
    Http, Metrics, Scheduler, Store, Testbox, eventually, jobs, on_both_stores, settings,
};
use reqwest::Method;
use serde_json::json;

on_both_stores!(
    row_01_restart_loses_no_pending_job,
    a_large_cache_is_whole_again_after_a_restart,
    row_01_running_jobs_go_on_after_a_restart,
    row_01_a_waiting_testbox_gets_old_jobs_after_a_restart,
    row_13_a_refused_submit_says_so,
    a_submit_with_a_key_may_be_repeated,
    row_23_an_unknown_id_is_not_found,
    an_answer_that_was_lost_is_repeated,
    a_job_that_its_host_no_longer_has_is_tried_again_at_once,
    a_stop_in_order_answers_who_waits,
);

async fn row_01_restart_loses_no_pending_job(store: Store) {
    let mut scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let submitted = http.submit(&jobs::times(100, &jobs::dc("alice"))).await;

    let mut testbox = Testbox::dc(&http, "host-1", 5 << 10);
    assert_eq!(testbox.take_all().await.len(), 5, "five fit into 5 GB");
    scheduler.kill();
    scheduler.restart().await;

    let mut seen: Vec<String> = testbox.held().iter().map(|g| g.job_id.clone()).collect();
    for grant in testbox.held().to_vec() {
        testbox.finish(&grant).await;
    }
    seen.extend(testbox.run_all(5).await);
    let distinct: BTreeSet<_> = seen.iter().collect();
    assert_eq!(distinct.len(), seen.len(), "a job was handed out twice");
    assert_eq!(
        distinct,
        submitted.iter().collect(),
        "jobs were lost or made up"
    );
    for id in &submitted {
        assert_eq!(http.field(id, "job_health").await, "success");
    }
}

/// Uses more jobs than one page of the store holds.
async fn a_large_cache_is_whole_again_after_a_restart(store: Store) {
    let mut scheduler = Scheduler::start_with(store, &["--cache-jobs-max", "20000"]).await;
    let http = scheduler.http();
    for _ in 0..3 {
        http.submit(&jobs::times(4_000, &jobs::dc("alice"))).await;
    }
    scheduler.kill();
    scheduler.restart().await;
    eventually("all jobs are in memory", async || {
        let cached = Metrics::of(&http).await.get("fairlead_jobs_cached");
        (cached >= 12_000.0).then_some(())
    })
    .await;
}

async fn row_01_running_jobs_go_on_after_a_restart(store: Store) {
    let mut scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let ids = http.submit(&jobs::times(2, &jobs::dc("alice"))).await;
    let mut testbox = Testbox::dc(&http, "host-1", 8 << 10);
    let grants = testbox.take_all().await;
    assert_eq!(grants.len(), 2);
    assert_eq!(
        testbox.report(&grants[0], "job_stage=running").await.status,
        200
    );

    scheduler.kill();
    scheduler.restart().await;

    for id in &ids {
        assert!(["dispatch", "running"].contains(&http.field(id, "job_stage").await.as_str()));
    }
    assert!(
        testbox.heartbeat().await.is_empty(),
        "nothing is to be stopped"
    );
    assert!(
        testbox.ask(0).await.is_empty(),
        "nothing is handed out again"
    );
    for grant in &grants {
        if grant.job_id != grants[0].job_id {
            assert_eq!(testbox.report(grant, "job_stage=running").await.status, 200);
        }
        let end = "job_stage=finish&job_health=success&job_data_readiness=complete";
        assert_eq!(testbox.report(grant, end).await.status, 200);
        let job = http.job(&grant.job_id).await;
        assert_eq!(job["job_stage"], "finish", "{job}");
        assert_eq!(grant.attempt, 1);
    }
}

async fn row_01_a_waiting_testbox_gets_old_jobs_after_a_restart(store: Store) {
    let mut scheduler = Scheduler::start(store).await;
    let submitted = scheduler
        .http()
        .submit(&jobs::times(3, &jobs::hw("alice")))
        .await;
    scheduler.kill();
    scheduler.restart().await;
    let mut testbox = Testbox::hw(&scheduler.http(), "host-1");
    assert_eq!(
        testbox.run_all(10).await,
        submitted,
        "all, in the order of their submit"
    );
}

async fn a_submit_with_a_key_may_be_repeated(store: Store) {
    let mut scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let keyed = "/scheduler/v1/jobs/submit?idempotency_key=nightly-2026-11-22";
    let jobs = jobs::times(3, &jobs::dc("alice"));
    let ids = |reply: fairlead_tests::Reply| -> Vec<String> {
        assert_eq!(reply.status, 200, "{}", reply.text);
        let items = reply.json().as_array().cloned().unwrap_or_default();
        let ids = items.iter().filter_map(|item| item["job_id"].as_str());
        ids.map(str::to_owned).collect()
    };
    let first = ids(http.post(keyed, &jobs).await);
    assert_eq!(ids(http.post(keyed, &jobs).await), first);
    scheduler.kill();
    scheduler.restart().await;
    assert_eq!(
        ids(http.post(keyed, &jobs).await),
        first,
        "after a restart, too"
    );
    let mut testbox = Testbox::dc(&http, "host-1", 8 << 10);
    let mut ran = testbox.run_all(3).await;
    ran.sort_unstable();
    assert_eq!(ran, first);
    assert_eq!(
        ids(http.post(keyed, &jobs).await),
        first,
        "when they have ended, too"
    );
    assert!(testbox.ask(0).await.is_empty());
    http.post(keyed, &jobs::dc("alice")).await.refused(409);
    let other = jobs::times(3, &jobs::dc("bob"));
    let others = ids(http.post(keyed, &other).await);
    assert!(
        others.iter().all(|id| !first.contains(id)),
        "everybody's keys are their own"
    );
}

async fn row_13_a_refused_submit_says_so(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();

    // Accepted jobs can be read, whatever their fields hold; the others have a reason.
    let odd = [
        json!({"nr_run": "abc"}),
        json!({"pp": {"a.b": {"c": [1, "x", null]}}}),
        json!({"priority": "very"}),
        json!({"timeout": {"h": 1}}),
        json!({"submit_id": ["a", "b"]}),
    ];
    for fields in odd {
        let job = jobs::with(jobs::dc("alice"), &fields);
        for item in http.submit_items(&job).await {
            if item.job_id == "0" {
                assert!(
                    !item.message.is_empty() && !item.hint.is_empty(),
                    "{item:?}"
                );
                assert_eq!(item.code, item.errcode);
            } else {
                assert_eq!(http.field(&item.job_id, "job_stage").await, "submit");
            }
        }
    }
    if store == Store::Elasticsearch {
        a_store_that_takes_no_writes_is_told(&scheduler, &http).await;
    }
}

async fn a_store_that_takes_no_writes_is_told(scheduler: &Scheduler, http: &Http) {
    http.submit(&jobs::dc("alice")).await;
    let elasticsearch = Http::new(&settings::elasticsearch()[0]);
    let block = async |on: bool| {
        let path = format!("/{}*/_settings?expand_wildcards=all", scheduler.prefix());
        let body = json!({"index.blocks.write": on}).to_string().into_bytes();
        let reply = elasticsearch
            .send(Method::PUT, &path, "application/json", body)
            .await;
        assert_eq!(reply.status, 200, "{}", reply.text);
    };
    block(true).await;
    let reply = http
        .post("/scheduler/v1/jobs/submit", &jobs::dc("alice"))
        .await;
    assert!(
        reply.status >= 400,
        "accepted without a store: {}",
        reply.text
    );
    assert!(reply.text.contains("\"message\":\"") && !reply.text.contains("\"message\":\"\""));
    let total = async || http.get("/scheduler/v1/jobs?limit=1").await.json()["total"].clone();
    block(false).await;
    eventually("the store takes jobs again", async || {
        let reply = http
            .post("/scheduler/v1/jobs/submit", &jobs::dc("alice"))
            .await;
        (reply.status == 200).then_some(())
    })
    .await;
    eventually("the total is known", async || total().await.as_u64()).await;
}

async fn row_23_an_unknown_id_is_not_found(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let unknown = "2611210236110700000";
    for what in ["", "/explain", "/log"] {
        let reply = http
            .get(&format!("/scheduler/v1/jobs/{unknown}{what}"))
            .await;
        assert_eq!(reply.refused(404).code.as_str(), "not_found");
    }
    for what in ["cancel", "terminate", "update?job_stage=finish&job_token=x"] {
        let path = format!("/scheduler/v1/jobs/{unknown}/{what}");
        let reply = http.post(&path, &json!({"my_account": "alice"})).await;
        assert_eq!(reply.refused(404).code.as_str(), "not_found");
    }
    assert_eq!(
        http.get("/scheduler/v1/hosts/nobody")
            .await
            .refused(404)
            .code
            .as_str(),
        "not_found"
    );
}

async fn an_answer_that_was_lost_is_repeated(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    http.submit(&jobs::times(4, &jobs::dc("alice"))).await;
    let mut testbox = Testbox::dc(&http, "host-1", 2 << 10);
    testbox.next_request(10);
    let first = testbox.ask_again().await;
    assert_eq!(first.jobs.len(), 2);
    let again = testbox.ask_again().await;
    assert_eq!(first.jobs, again.jobs, "the same request, the same answer");
}

async fn a_job_that_its_host_no_longer_has_is_tried_again_at_once(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    http.submit(&jobs::dc("alice")).await;
    let mut testbox = Testbox::dc(&http, "host-1", 5 << 10);
    let first = testbox.take().await;
    let reply = testbox.report(&first, "job_stage=running").await;
    assert_eq!(reply.status, 200, "{}", reply.text);

    // The agent gave the job up, as it must without any contact.
    testbox.drop_job(&first.job_id);
    let second = testbox.take().await;
    assert_eq!((&second.job_id, second.attempt), (&first.job_id, 2));
    let reply = testbox.report(&first, "job_stage=finish").await;
    assert_eq!(
        reply.status, 409,
        "the first attempt is over: {}",
        reply.text
    );
    testbox.finish(&second).await;
}

async fn a_stop_in_order_answers_who_waits(store: Store) {
    let mut scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let mut testbox = Testbox::dc(&http, "host-1", 2 << 10);
    testbox.next_request(100);
    let waiting = testbox.clone();
    let poll = async { waiting.send().await };
    let stop = async {
        eventually("the testbox waits", async || {
            let host = http.get("/scheduler/v1/hosts/host-1").await;
            (host.status == 200 && host.json()["state"] == "waiting").then_some(())
        })
        .await;
        scheduler.stop().await
    };
    let (answer, status) = tokio::join!(poll, stop);
    assert!(status.success(), "{status}");
    let jobs = serde_json::from_str::<serde_json::Value>(&answer.text).unwrap_or_default();
    assert!(
        answer.status == 503 || jobs["jobs"] == json!([]),
        "{}: {}",
        answer.status,
        answer.text
    );
}
