//! Tests of results that are not computed twice, with a real agent.

use fairlead_tests::{
    Agent, Http, Scheduler, Store,
    content::{Input, digest},
    jobs, on_both_stores, until,
};
use reqwest::Method;
use serde_json::{Value, json};

on_both_stores!(
    a_job_in_200_parts_runs_once,
    each_part_of_the_key_changed_in_turn_makes_it_run,
    a_test_that_passes_and_fails_is_never_reused,
    a_job_whose_output_was_deleted_runs_again,
);

/// Time limit for all parts of a job, seconds.
const END_S: u64 = 240;

fn agent(scheduler: &Scheduler) -> Agent {
    let more = ["--kind", "dc", "--memory", "16g"];
    Agent::start(&scheduler.url(), "host-1", &more)
}

async fn submitted(http: &Http, fields: &Value) -> String {
    let job = jobs::with(
        jobs::dc("alice"),
        &json!({"need_memory": "64M", "reuse": "14d"}),
    );
    http.submit(&jobs::with(job, fields)).await.remove(0)
}

/// Returns the answer of a job that has ended.
async fn answer(http: &Http, id: &str) -> Value {
    let path = format!("/r/{id}?format=json");
    until("the job has ended", END_S, async || {
        let answer = http.get(&path).await.json();
        (answer["over"] == true).then_some(answer)
    })
    .await
}

/// Turns audits off, so that each reuse counts.
async fn without_audits(http: &Http) {
    let set = json!({"audit_percent": 0});
    let said = http.post("/scheduler/v1/reuse", &set).await;
    assert_eq!(said.status, 200, "{}", said.text);
}

/// Submits a job, and returns the job whose result it has. Empty: it ran.
async fn taken(http: &Http, fields: &Value) -> String {
    let id = submitted(http, fields).await;
    let answer = answer(http, &id).await;
    answer["reused_from"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// Repeats a job until it takes a result. The result is noted shortly after the end, so a job right behind it may run,
/// too.
async fn taken_soon(http: &Http, fields: &Value) {
    until("a result is taken", END_S, async || {
        (!taken(http, fields).await.is_empty()).then_some(())
    })
    .await;
}

async fn a_job_in_200_parts_runs_once(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let _agent = agent(&scheduler);
    let script = "touch \"$TEST_SHARD_STATUS_FILE\"; echo \"$TEST_SHARD_INDEX\"";
    let job = json!({"suite": "same", "shards": 200, "script": script});
    let first = submitted(&http, &job).await;
    let ran = answer(&http, &first).await;
    assert_eq!(ran["job_health"], "success", "{ran}");
    assert_eq!(ran["shards"]["reused"].as_u64().unwrap_or(0), 0);
    let second = submitted(&http, &job).await;
    let again = answer(&http, &second).await;
    assert_eq!(again["job_health"], "success", "{again}");
    let reused = again["shards"]["reused"].as_u64().unwrap_or(0);
    let mut audits = 0;
    for part in again["parts"].as_array().expect("its shards") {
        let id = part["job_id"].as_str().unwrap_or_default();
        let from = part["reused_from"].as_str().unwrap_or_default();
        if from.is_empty() {
            let job = http.job(id).await;
            assert!(
                job["audit_of"].is_string(),
                "{id} ran, and is no audit: {job}"
            );
            audits += 1;
        }
    }
    assert_eq!(reused + audits, 200);
    assert!(
        audits <= 12,
        "one in a hundred runs as an audit, not {audits} of 200"
    );
}

async fn each_part_of_the_key_changed_in_turn_makes_it_run(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let _agent = agent(&scheduler);
    let inputs = [Input::of("one"), Input::of("two")];
    for input in &inputs {
        input.put(&http, "").await;
    }
    let usual = json!({
        "suite": "keyed", "inputs": inputs[0].id, "depth": 1, "outputs": ["x"],
        "script": "echo $depth > $FAIRLEAD_OUTPUTS/x",
    });
    assert_eq!(taken(&http, &usual).await, "");
    let changes = [
        json!({"inputs": inputs[1].id}),
        json!({"depth": 2}),
        json!({"script": "echo other > $FAIRLEAD_OUTPUTS/x"}),
        json!({"need_memory": "65M"}),
        json!({"os": "debian"}),
        json!({"shards": 2, "outputs": null, "script": "touch \"$TEST_SHARD_STATUS_FILE\""}),
    ];
    for change in changes {
        let job = jobs::with(usual.clone(), &change);
        let id = submitted(&http, &job).await;
        let answer = answer(&http, &id).await;
        let reused = answer["shards"]["reused"].as_u64().unwrap_or(0);
        let from = answer["reused_from"].as_str().unwrap_or_default();
        assert_eq!((from, reused), ("", 0), "{change}: {answer}");
    }
    // Another priority, limit or label changes nothing.
    let same = json!({"priority": 7, "timeout": "7m", "labels": ["x"]});
    let same = jobs::with(usual.clone(), &same);
    without_audits(&http).await;
    assert_ne!(taken(&http, &same).await, "");
}

async fn a_test_that_passes_and_fails_is_never_reused(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let _agent = agent(&scheduler);
    let mark = scheduler.folder().join("mark");
    // The job fails once, and passes at each retry.
    let script = format!(
        "test -e '{0}' || {{ touch '{0}'; exit 1; }}",
        mark.display()
    );
    let flaky = json!({"suite": "flaky", "script": script});
    for health in ["fail", "success", "success"] {
        let id = submitted(&http, &flaky).await;
        let answer = answer(&http, &id).await;
        assert_eq!(answer["job_health"], health, "{answer}");
        assert!(answer["reused_from"].is_null(), "{answer}");
    }
    // The test is repaired: results are reused again from the next success on.
    let id = submitted(&http, &flaky).await;
    assert!(answer(&http, &id).await["reused_from"].is_null());
    let at = format!("/scheduler/v1/jobs/{id}/reuse");
    let told = http.send(Method::DELETE, &at, "", Vec::new()).await.json();
    let was = told["was"].as_str().unwrap_or_default();
    assert!(was.contains("it is flaky"), "{told}");
    let good = submitted(&http, &flaky).await;
    assert!(answer(&http, &good).await["reused_from"].is_null());
    without_audits(&http).await;
    taken_soon(&http, &flaky).await;
}

async fn a_job_whose_output_was_deleted_runs_again(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let _agent = agent(&scheduler);
    without_audits(&http).await;
    let fields = json!({
        "suite": "deleted", "outputs": ["x"], "script": "echo left > $FAIRLEAD_OUTPUTS/x",
    });
    let first = submitted(&http, &fields).await;
    answer(&http, &first).await;
    let outputs = http.field(&first, "outputs").await;
    let chunk = digest(b"left\n");
    for (kind, digest) in [("chunks", &chunk), ("manifests", &outputs)] {
        taken_soon(&http, &fields).await;
        let content = scheduler.data().join("content");
        let stored = content.join(kind).join(&digest[..2]).join(digest);
        std::fs::remove_file(&stored).expect("what the job left");
        let again = submitted(&http, &fields).await;
        let answer = answer(&http, &again).await;
        assert_eq!(answer["job_health"], "success", "{kind}: {answer}");
        assert!(answer["reused_from"].is_null(), "{kind}: {answer}");
        assert!(stored.exists(), "{kind}: the job left it again");
        assert_eq!(http.field(&again, "outputs").await, outputs);
    }
}
