//! Tests of groups whose jobs are submitted one by one, and of what runs again.

use fairlead_api::Grant;
use fairlead_tests::{Http, Scheduler, Store, Testbox, eventually, jobs, on_both_stores};
use serde_json::{Value, json};

on_both_stores!(
    a_group_is_posted_job_by_job_and_closed,
    what_failed_runs_again,
    a_group_that_failed_without_a_failed_job_says_so,
    failed_tests_are_packed_anew,
);

async fn submit(http: &Http, fields: &Value) -> Value {
    let job = jobs::with(jobs::dc("alice"), fields);
    let reply = http.post("/scheduler/v1/jobs/submit", &json!([job])).await;
    let items: Value = serde_json::from_str(&reply.text).expect("a list");
    items[0].clone()
}

/// Returns the answer of a job, once it is over.
async fn over(http: &Http, id: &str) -> Value {
    eventually("the job ends", async || {
        let answer = http.get(&format!("/r/{id}?format=json")).await.json();
        (answer["over"] == true).then_some(answer)
    })
    .await
}

/// Returns the next `many` jobs.
async fn take(testbox: &mut Testbox, many: usize) -> Vec<Grant> {
    let mut grants = Vec::new();
    while grants.len() < many {
        grants.extend(testbox.ask(2).await);
    }
    grants
}

async fn end(testbox: &mut Testbox, grant: &Grant, health: &str) {
    testbox.report(grant, "job_stage=running").await;
    let end =
        format!("job_stage=finish&job_health={health}&job_data_readiness=uploaded&has_cases=1");
    testbox.report(grant, &end).await;
    testbox.drop_job(&grant.job_id);
}

async fn rerun(http: &Http, id: &str, body: &Value) -> String {
    let path = format!("/scheduler/v1/jobs/{id}/rerun");
    let items = http.post(&path, body).await.json();
    assert_eq!(items.as_array().map(Vec::len), Some(1), "{items}");
    items[0]["job_id"].as_str().expect("an id").to_owned()
}

async fn a_group_is_posted_job_by_job_and_closed(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let mut testbox = Testbox::dc(&http, "host-1", 8 << 10);
    let named = |n: u32| json!({"group": {"id": "run-7", "shard": format!("s{n}")}, "nr": n});
    let first = submit(&http, &named(1)).await;
    let whole = first["shard_of"].as_str().expect("an id").to_owned();
    // The first job runs while others have not joined yet.
    let grant = take(&mut testbox, 1).await.remove(0);
    assert_eq!(
        (&grant.job["nr"], &grant.job["shard"]),
        (&json!(1), &json!(1))
    );
    end(&mut testbox, &grant, "success").await;
    let second = submit(&http, &named(2)).await;
    assert_eq!(second["shard_of"], json!(whole));
    // A job that is posted twice joins once.
    assert_eq!(submit(&http, &named(2)).await["job_id"], second["job_id"]);
    let shown = http
        .get("/scheduler/v1/groups/run-7?account=alice")
        .await
        .json();
    assert_eq!(
        (&shown["job_id"], &shown["open"], &shown["shards"]["count"]),
        (&json!(whole), &json!(true), &json!(2)),
        "{shown}"
    );
    // A job of the group cannot be stopped alone.
    let path = format!(
        "/scheduler/v1/jobs/{}/cancel",
        second["job_id"].as_str().expect("an id")
    );
    http.post(&path, &json!({})).await.refused(409);
    let close = "/scheduler/v1/groups/run-7/close?account=alice";
    for _ in 0..2 {
        let closed = http.post(close, &json!({})).await.json();
        assert_eq!(closed.get("open"), None, "{closed}");
    }
    let late = submit(&http, &named(3)).await;
    assert_eq!(late["code"], "conflict", "{late}");
    let grant = take(&mut testbox, 1).await.remove(0);
    end(&mut testbox, &grant, "fail").await;
    let answer = over(&http, &whole).await;
    assert_eq!(answer["job_health"], "fail", "{answer}");
    assert_eq!(
        (
            &answer["group"],
            &answer["shards"]["over"],
            &answer["shards"]["failed"]
        ),
        (&json!("run-7"), &json!(2), &json!(1))
    );
    http.get("/scheduler/v1/groups/run-8?account=alice")
        .await
        .refused(404);
    // Its failed jobs run again in a new group.
    let again = rerun(&http, &whole, &json!({"failed": true})).await;
    let grant = take(&mut testbox, 1).await.remove(0);
    assert_eq!(grant.job["nr"], 2);
    end(&mut testbox, &grant, "success").await;
    let answer = over(&http, &again).await;
    assert_eq!(
        (&answer["job_health"], &answer["shards"]["count"]),
        (&json!("success"), &json!(1))
    );
}

async fn what_failed_runs_again(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let mut testbox = Testbox::dc(&http, "host-1", 8 << 10);
    let whole = submit(&http, &json!({"shards": 3})).await;
    let whole = whole["job_id"].as_str().expect("an id").to_owned();
    let path = format!("/scheduler/v1/jobs/{whole}/rerun");
    http.post(&path, &json!({"failed": true}))
        .await
        .refused(409);
    for grant in take(&mut testbox, 3).await {
        let is_second = grant.job["shard_index"] == 1;
        end(
            &mut testbox,
            &grant,
            if is_second { "fail" } else { "success" },
        )
        .await;
    }
    over(&http, &whole).await;
    let again = rerun(&http, &whole, &json!({"failed": true})).await;
    let grant = take(&mut testbox, 1).await.remove(0);
    assert_eq!(
        (&grant.job["shard_index"], &grant.job["shard_total"]),
        (&json!(1), &json!(3))
    );
    end(&mut testbox, &grant, "success").await;
    let answer = over(&http, &again).await;
    assert_eq!(
        (&answer["job_health"], &answer["shards"]["count"]),
        (&json!("success"), &json!(1))
    );
    // Nothing failed, but the whole group can run again.
    let path = format!("/scheduler/v1/jobs/{again}/rerun");
    http.post(&path, &json!({"failed": true}))
        .await
        .refused(409);
    rerun(&http, &whole, &json!({})).await;
    for grant in take(&mut testbox, 3).await {
        end(&mut testbox, &grant, "success").await;
    }
}

/// Regression: a group that was stopped after its only job had succeeded had the reason "job N succeeded: nothing
/// failed".
async fn a_group_that_failed_without_a_failed_job_says_so(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let mut testbox = Testbox::dc(&http, "host-1", 8 << 10);
    let fields = json!({"suite": "late", "group": "late"});
    let first = submit(&http, &fields).await;
    let whole = first["shard_of"].as_str().expect("a group").to_owned();
    for grant in take(&mut testbox, 1).await {
        end(&mut testbox, &grant, "success").await;
    }
    let path = format!("/scheduler/v1/jobs/{whole}/terminate");
    let stopped = http.post(&path, &json!({})).await;
    assert_eq!(stopped.status, 200, "{}", stopped.text);
    let answer = over(&http, &whole).await;
    assert_ne!(answer["job_health"], "success", "{answer}");
    let path = format!("/scheduler/v1/jobs/{whole}/rerun");
    let refused = http
        .post(&path, &json!({"failed": true}))
        .await
        .refused(409);
    let meant = format!("the group of job {whole} has no job that failed");
    assert_eq!(refused.message, meant);
}

async fn failed_tests_are_packed_anew(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let mut testbox = Testbox::dc(&http, "host-1", 8 << 10);
    let shards = json!({"suite": "again", "shards": {"count": 2, "list": "list them"}});
    let whole = submit(&http, &shards).await;
    let whole = whole["job_id"].as_str().expect("an id").to_owned();
    let list = take(&mut testbox, 1).await.remove(0);
    let path = format!(
        "/scheduler/v1/jobs/{}/log?offset=0&attempt=1&job_token={}",
        list.job_id, list.job_token
    );
    let body = b"a\nb\nc\nd\n".to_vec();
    http.send(reqwest::Method::POST, &path, "text/plain", body)
        .await;
    testbox.finish(&list).await;
    for grant in take(&mut testbox, 2).await {
        let own = grant.job["shard_tests"].as_array().expect("a list").clone();
        let is_bad = |name: &Value| matches!(name.as_str(), Some("b" | "c"));
        let cases = own.iter().map(|name| {
            let outcome = if is_bad(name) { "failed" } else { "passed" };
            json!({"name": name, "outcome": outcome})
        });
        let cases: Vec<Value> = cases.collect();
        let failed = own.iter().filter(|name| is_bad(name)).count();
        let counts =
            json!({"passed": own.len() - failed, "failed": failed, "skipped": 0, "error": 0});
        let upload = format!(
            "{}/results.json?job_id={}&job_token={}&attempt=1",
            grant.result_root, grant.job_id, grant.job_token
        );
        http.post(
            &upload,
            &json!({"format": 1, "cases": cases, "counts": counts}),
        )
        .await;
        end(
            &mut testbox,
            &grant,
            if failed > 0 { "fail" } else { "success" },
        )
        .await;
    }
    assert_eq!(over(&http, &whole).await["cases"]["failed"], 2);
    rerun(&http, &whole, &json!({"failed": true})).await;
    let list = take(&mut testbox, 1).await.remove(0);
    let script = list.job["script"].as_str().expect("a script");
    let mut tests: Vec<&str> = script.lines().filter(|line| line.len() == 1).collect();
    tests.sort_unstable();
    assert_eq!(tests, ["b", "c"], "{script}");
}
