//! The pages of the dashboard in a real browser, by their own tests, against a lab with hosts and jobs.

use fairlead_tests::{Agent, Scheduler, Store, browser, eventually, jobs};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn the_pages_pass_their_tests_in_a_browser() {
    // Browsers do not treat this name as a secure context, as with plain HTTP in a lab.
    let named = ["--host-name", "fairlead.test"];
    let scheduler = Scheduler::start_with(Store::Embedded, &named).await;
    let (server, http) = (scheduler.url(), scheduler.http());
    let more = ["--kind", "dc", "--memory", "4g"];
    let _agent = Agent::start(&server, "box-1", &more);
    let quick = jobs::with(
        jobs::dc("ann"),
        &json!({"suite": "boot", "script": "echo hello", "need_memory": "64m"}),
    );
    let more = [
        json!({"suite": "again", "reuse": "14d"}),
        json!({"suite": "broken", "script": "exit 1", "retry": 0, "nr_threads": 2}),
    ];
    let more = more.map(|more| jobs::with(quick.clone(), &more));
    let mut ended = http.submit(&json!(more)).await;
    ended.extend(http.submit(&jobs::times(3, &quick)).await);
    let big = jobs::with(
        jobs::dc("ann"),
        &json!({"suite": "big", "need_memory": "900g"}),
    );
    http.submit(&jobs::times(3, &big)).await;
    for id in &ended {
        eventually("jobs have ended", async || {
            let stage = http.field(id, "job_stage").await;
            (stage == "finish").then_some(())
        })
        .await;
    }
    // Another host drains: its job goes on.
    let _leaving = Agent::start(&server, "box-2", &["--kind", "dc", "--memory", "1g"]);
    let long = json!({
        "suite": "long", "script": "sleep 3000", "need_memory": "64m", "timeout": "1h",
        "target_machines": ["box-2"],
    });
    let long = http.submit(&jobs::with(jobs::dc("bela"), &long)).await;
    eventually("it runs", async || {
        let stage = http.field(&long[0], "job_stage").await;
        (stage == "running").then_some(())
    })
    .await;
    let path = "/scheduler/v1/hosts/box-2/cordon";
    let drain = json!({"drain": true, "reason": "new disks"});
    let drained = http.post(path, &drain).await;
    assert_eq!(drained.status, 200, "{}", drained.text);
    let mut tests = browser::node(&server, &["--test", "--test-concurrency=1", "."]);
    let output = tests.output().unwrap_or_else(|error| panic!("{error}"));
    let said = String::from_utf8_lossy(&output.stdout);
    let problems = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{problems}");
}
