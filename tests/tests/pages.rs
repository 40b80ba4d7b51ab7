//! The pages of the dashboard in a real browser, by their own tests, against a lab with hosts and jobs.

use fairlead_tests::{Agent, Scheduler, Store, browser, jobs, until};
use serde_json::json;

/// How long the lab may take until there is something to see, seconds.
const LIMIT_S: u64 = 120;

#[tokio::test(flavor = "multi_thread")]
async fn the_pages_pass_their_tests_in_a_browser() {
    // A name that no browser takes for a secure place, as plain HTTP in a lab has it.
    let named = ["--host-name", "fairlead.test"];
    let scheduler = Scheduler::start_with(Store::Embedded, &named).await;
    let (server, http) = (scheduler.url(), scheduler.http());
    let more = ["--kind", "dc", "--memory", "4g"];
    let _agent = Agent::start(&server, "box-1", &more);
    let quick = jobs::with(
        jobs::dc("ann"),
        &json!({"suite": "boot", "script": "echo hello", "need_memory": "64m"}),
    );
    let again = jobs::with(quick.clone(), &json!({"suite": "again", "reuse": "14d"}));
    http.submit(&again).await;
    let ended = http.submit(&jobs::times(3, &quick)).await;
    let big = jobs::with(
        jobs::dc("ann"),
        &json!({"suite": "big", "need_memory": "900g"}),
    );
    http.submit(&jobs::times(3, &big)).await;
    until("jobs have ended", LIMIT_S, async || {
        let stage = http.field(&ended[2], "job_stage").await;
        (stage == "finish").then_some(())
    })
    .await;
    let mut tests = browser::node(&server, &["--test", "--test-concurrency=1", "."]);
    let output = tests.output().unwrap_or_else(|error| panic!("{error}"));
    let said = String::from_utf8_lossy(&output.stdout);
    let problems = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{problems}");
}
