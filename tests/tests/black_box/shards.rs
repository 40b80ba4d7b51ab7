//! Tests of jobs that run in parts and have one result.

use fairlead_tests::{Http, Scheduler, Store, Testbox, eventually, jobs, on_both_stores};
use serde_json::{Value, json};

on_both_stores!(
    a_job_in_parts_has_one_result,
    the_first_failure_stops_the_others,
    one_that_is_cancelled_runs_no_further,
    shards_keep_the_limits_and_are_refused_whole,
    shards_differ_where_the_job_says_so,
    listed_tests_are_packed_by_their_times,
);

async fn submit(http: &Http, fields: &Value) -> String {
    let job = jobs::with(jobs::dc("alice"), fields);
    http.submit(&json!([job])).await.remove(0)
}

/// Returns the message about the first job of a submit.
fn message_of(items: &str) -> String {
    let items: Value = serde_json::from_str(items).expect("a list");
    let message = items[0]["message"].as_str();
    message.expect("text").to_owned()
}

async fn answer(http: &Http, id: &str) -> Value {
    http.get(&format!("/r/{id}?format=json")).await.json()
}

/// Returns the answer of a job, once `holds` is true of it.
async fn answer_when(http: &Http, id: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
    eventually(what, async || {
        let answer = answer(http, id).await;
        holds(&answer).then_some(answer)
    })
    .await
}

async fn a_job_in_parts_has_one_result(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let id = submit(&http, &json!({"shards": 3, "queue": "alice"})).await;
    let first = answer(&http, &id).await;
    assert_eq!(
        (&first["over"], &first["shards"]["count"]),
        (&json!(false), &json!(3))
    );
    let mut testbox = Testbox::dc(&http, "host-1", 8 << 10);
    let mut grants = Vec::new();
    while grants.len() < 3 {
        grants.extend(testbox.ask(1).await);
    }
    let mut places: Vec<u64> = grants
        .iter()
        .map(|grant| grant.job["shard_index"].as_u64().expect("a number"))
        .collect();
    places.sort_unstable();
    assert_eq!(places, [0, 1, 2]);
    assert!(
        grants
            .iter()
            .all(|grant| grant.job["script"] == "true" && grant.job["shard_total"] == 3)
    );
    // Its parent runs, and the shard cannot be stopped alone.
    let list = eventually("its parent is listed", async || {
        let list = http.get("/scheduler/v1/jobs").await.json();
        (list["total"] == 1).then_some(list)
    })
    .await;
    assert_eq!(list["jobs"][0]["job_stage"], "running", "{list}");
    let shard = &grants[0].job_id;
    let path = format!("/scheduler/v1/jobs/{shard}/terminate");
    let refusal = http.post(&path, &json!({})).await.refused(409);
    assert!(refusal.message.contains(&id), "{}", refusal.message);
    // One shard brings test results.
    let results = json!({
        "format": 1, "counts": {"passed": 5, "failed": 1, "skipped": 0, "error": 1},
        "cases": [{"name": "io/writes", "outcome": "failed"}, {"name": "io/reads", "outcome": "error"}],
    });
    let upload = format!(
        "{}/results.json?job_id={shard}&job_token={}&attempt=1",
        grants[0].result_root, grants[0].job_token
    );
    let sent = http.post(&upload, &results).await;
    assert_eq!(sent.status, 200, "{}", sent.text);
    testbox.report(&grants[0], "job_stage=running").await;
    let end =
        "job_stage=finish&job_health=fail&exit_code=1&job_data_readiness=uploaded&has_cases=1";
    testbox.report(&grants[0], end).await;
    testbox.drop_job(shard);
    for grant in &grants[1..] {
        assert_eq!(answer(&http, &id).await["over"], false);
        testbox.finish(grant).await;
    }
    let over = answer_when(&http, &id, "the job ends", |answer| answer["over"] == true).await;
    assert_eq!(
        (&over["job_stage"], &over["job_health"]),
        (&json!("finish"), &json!("fail"))
    );
    let counts = json!({"count": 3, "running": 0, "over": 3, "failed": 1});
    assert_eq!(over["shards"], counts);
    let n = grants[0].job["shard"].as_u64().expect("a number");
    assert_eq!(
        (&over["cases"]["passed"], &over["cases"]["failed"]),
        (&json!(5), &json!(2))
    );
    assert_eq!(
        over["cases"]["first_failures"][0],
        format!("{n}: io/writes")
    );
    assert_eq!(over["reason"], format!("1 of 3 shards failed: {n} (fail)"));
    let page = http.get(&format!("/r/{id}?format=html")).await;
    assert!(
        page.text.starts_with('{'),
        "only a browser gets a page: {}",
        page.text
    );
    let job = http.get(&format!("/scheduler/v1/jobs/{id}")).await.json();
    assert_eq!(job["shards_by_health"], json!({"success": 2, "fail": 1}));
    let waited = json!({"wait_on": {id.clone(): {"job_health": "fail"}}});
    let waited = http.post("/scheduler/v1/jobs/wait", &waited).await.json();
    assert_eq!(waited["waited_jobs"][&id]["job_health"], "fail");
}

async fn the_first_failure_stops_the_others(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let id = submit(&http, &json!({"shards": {"count": 3, "fail_fast": true}})).await;
    let mut testbox = Testbox::dc(&http, "host-1", 2 << 10);
    let mut grants = Vec::new();
    while grants.len() < 2 {
        grants.extend(testbox.ask(1).await);
    }
    for grant in &grants {
        testbox.report(grant, "job_stage=running").await;
    }
    let end = "job_stage=finish&job_health=fail&exit_code=1&job_data_readiness=uploaded";
    testbox.report(&grants[0], end).await;
    testbox.drop_job(&grants[0].job_id);
    let stops = eventually("the other one is told to stop", async || {
        let stops = testbox.heartbeat().await;
        (!stops.is_empty()).then_some(stops)
    })
    .await;
    assert_eq!(stops, [grants[1].job_id.clone()]);
    let end = "job_stage=finish&job_health=terminate&job_data_readiness=uploaded";
    testbox.report(&grants[1], end).await;
    testbox.drop_job(&grants[1].job_id);
    let over = answer_when(&http, &id, "the job ends", |answer| answer["over"] == true).await;
    assert_eq!(over["job_health"], "fail", "{over}");
    let reason = over["reason"].as_str().expect("text");
    assert!(reason.ends_with("ended with fail: fail_fast"), "{reason}");
    let healths = over["parts"].as_array().expect("a list").iter();
    let mut healths: Vec<&str> = healths
        .filter_map(|part| part["job_health"].as_str())
        .collect();
    healths.sort_unstable();
    assert_eq!(healths, ["cancel", "fail", "terminate"]);
    assert!(testbox.ask(0).await.is_empty());
}

async fn one_that_is_cancelled_runs_no_further(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let id = submit(&http, &json!({"shards": 4})).await;
    let cancel = format!("/scheduler/v1/jobs/{id}/cancel");
    let done = http.post(&cancel, &json!({})).await;
    assert_eq!(done.status, 200, "{}", done.text);
    let over = answer_when(&http, &id, "the job ends", |answer| answer["over"] == true).await;
    assert_eq!(
        (&over["job_stage"], &over["job_health"]),
        (&json!("cancel"), &json!("cancel"))
    );
    assert_eq!(over["shards"]["over"], 4, "{over}");
    let mut testbox = Testbox::dc(&http, "host-1", 8 << 10);
    assert!(testbox.ask(1).await.is_empty());
    // A second cancel changes nothing.
    assert_eq!(http.post(&cancel, &json!({})).await.status, 200);
}

async fn shards_keep_the_limits_and_are_refused_whole(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let limits = json!({"limits": {"waiting": {"hard": 5}, "shards": {"hard": 6}}});
    let set = http.post("/scheduler/v1/queues/alice", &limits).await;
    assert_eq!(set.status, 200, "{}", set.text);
    let said = async |shards: u16| {
        let job = jobs::with(jobs::dc("alice"), &json!({"shards": shards}));
        let items = http.post("/scheduler/v1/jobs/submit", &json!([job])).await;
        message_of(&items.text)
    };
    let why = said(6).await;
    assert!(
        why.contains("shards: 6 more") && why.contains("limit is 5"),
        "{why}"
    );
    assert_eq!(said(5).await, "");
    let soft = json!({"limits": {"shards": {"soft": 1}}});
    http.post("/scheduler/v1/queues/alice", &soft)
        .await
        .refused(400);
}

async fn shards_differ_where_the_job_says_so(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let by = json!({"shards": {"by": {"tags": [["ssd"], ["hdd"]]}}});
    let id = submit(&http, &by).await;
    let mut fast = Testbox::dc(&http, "fast", 8 << 10);
    fast.offer.tags = vec!["ssd".to_owned()];
    let ran = fast.run_all(2).await;
    assert_eq!(ran.len(), 1);
    let path = format!("/scheduler/v1/jobs/{id}/explain");
    let why = http.get(&path).await.text;
    assert!(why.contains("1 wait, 0 run and 1 have ended"), "{why}");
    assert!(why.contains("its shard "), "{why}");
    let mut slow = Testbox::dc(&http, "slow", 8 << 10);
    slow.offer.tags = vec!["hdd".to_owned()];
    assert_eq!(slow.run_all(1).await.len(), 1);
    let over = answer_when(&http, &id, "the job ends", |answer| answer["over"] == true).await;
    assert_eq!(over["job_health"], "success", "{over}");
    let wrong = jobs::with(
        jobs::dc("alice"),
        &json!({"shards": {"by": {"tags": [7, {}]}}}),
    );
    let refused = http
        .post("/scheduler/v1/jobs/submit", &json!([wrong]))
        .await;
    let message = message_of(&refused.text);
    assert!(message.starts_with("tags: "), "{message}");
}

/// Plays the job that lists the tests of a job.
async fn list_tests(http: &Http, testbox: &mut Testbox, tests: &str) {
    let mut grants = testbox.take_all().await;
    let grant = grants.pop().expect("the job that lists the tests");
    assert!(grants.is_empty());
    assert_eq!(
        (&grant.job["script"], &grant.job["shard"]),
        (&json!("list them"), &json!(0))
    );
    let path = format!(
        "/scheduler/v1/jobs/{}/log?offset=0&attempt=1&job_token={}",
        grant.job_id, grant.job_token
    );
    let body = tests.as_bytes().to_vec();
    let sent = http
        .send(reqwest::Method::POST, &path, "text/plain", body)
        .await;
    assert_eq!(sent.status, 200, "{}", sent.text);
    testbox.finish(&grant).await;
}

async fn listed_tests_are_packed_by_their_times(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let shards = json!({"suite": "packed", "shards": {"count": 3, "list": "list them"}});
    let mut testbox = Testbox::dc(&http, "host-1", 8 << 10);
    // One test is long, which is unknown at first.
    let tests = ["long", "a", "b", "c", "d"];
    for is_known in [false, true] {
        let id = submit(&http, &shards).await;
        list_tests(&http, &mut testbox, "# all\nlong\na\nb\nc\nd\na\n").await;
        let mut grants = Vec::new();
        while grants.len() < 3 {
            grants.extend(testbox.ask(2).await);
        }
        let mut ran: Vec<String> = Vec::new();
        for grant in &grants {
            let own = grant.job["shard_tests"].as_array().expect("a list").clone();
            let own: Vec<&str> = own.iter().filter_map(Value::as_str).collect();
            assert_eq!(grant.job["shard_total"], 3);
            assert!(
                !is_known || !own.contains(&"long") || own.len() == 1,
                "{own:?}"
            );
            let cases = own.iter().map(|name| {
                let seconds = if *name == "long" { 50.0 } else { 1.0 };
                json!({"name": name, "outcome": "passed", "seconds": seconds})
            });
            let cases: Vec<Value> = cases.collect();
            let results = json!({
                "format": 1, "cases": cases,
                "counts": {"passed": own.len(), "failed": 0, "skipped": 0, "error": 0},
            });
            ran.extend(own.iter().map(|name| (*name).to_owned()));
            let upload = format!(
                "{}/results.json?job_id={}&job_token={}&attempt=1",
                grant.result_root, grant.job_id, grant.job_token
            );
            http.post(&upload, &results).await;
            testbox.report(grant, "job_stage=running").await;
            let end = "job_stage=finish&job_health=success&exit_code=0&job_data_readiness=uploaded&has_cases=1";
            testbox.report(grant, end).await;
            testbox.drop_job(&grant.job_id);
        }
        ran.sort_unstable();
        let mut all = tests;
        all.sort_unstable();
        assert_eq!(ran, all, "each test runs once");
        let over = answer_when(&http, &id, "the job ends", |answer| answer["over"] == true).await;
        assert_eq!(
            (&over["job_health"], &over["cases"]["passed"]),
            (&json!("success"), &json!(5))
        );
        eventually("the times are written", async || {
            let times = http
                .get("/scheduler/v1/tests?suite=packed&test=long")
                .await
                .json();
            (times[0]["passed"] == 1 + u64::from(is_known)).then_some(())
        })
        .await;
    }
    // A list without tests cannot run.
    let id = submit(&http, &shards).await;
    list_tests(&http, &mut testbox, "# nothing\n").await;
    let over = answer_when(&http, &id, "the job ends", |answer| answer["over"] == true).await;
    assert_eq!(over["job_health"], "abort_invalid", "{over}");
    assert_eq!(over["reason"], "its list names no test");
}
