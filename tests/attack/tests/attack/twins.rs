//! Two agents of one name: neither may harm the other one's jobs.

use fairlead_tests::{Agent, Scheduler, Store, eventually, jobs};
use serde_json::{Value, json};
use tempfile::TempDir;

#[tokio::test(flavor = "multi_thread")]
async fn a_second_agent_of_the_same_name_is_refused_and_the_first_one_s_job_goes_on() {
    let folder = TempDir::with_prefix("fairlead-twins-").expect("a temporary folder");
    let gate = folder.path().join("gate");
    let scheduler = Scheduler::start(Store::Embedded).await;
    let http = scheduler.http();
    let words = ["--kind", "vm,dc", "--memory", "4g"];
    let first = Agent::start(&scheduler.url(), "twin", &words);
    let script = format!("while [ ! -e {} ]; do sleep 0.05; done", gate.display());
    let job = jobs::with(jobs::dc("alice"), &json!({"script": script, "retry": 1}));
    let id = http.submit(&job).await.remove(0);
    eventually("the job runs", async || {
        (http.field(&id, "job_stage").await == "running").then_some(())
    })
    .await;
    let second = Agent::start(&scheduler.url(), "twin", &words);
    // The second agent is refused or, as earlier, takes the first one's place. In both cases it has asked by then.
    eventually("the second one has asked", async || {
        let log = second.log();
        (log.contains("refuses") || log.contains("a scheduler answers")).then_some(())
    })
    .await;
    let host = http.get("/scheduler/v1/hosts/twin").await.json();
    assert!(host["conflict"]["instance"].is_string(), "{host}");
    assert!(
        second.log().contains("host_conflict") || second.log().contains("another agent"),
        "{}",
        second.log()
    );
    std::fs::write(&gate, "").expect("a gate");
    let ended: Value = eventually("the job ends", async || {
        let job = http.job(&id).await;
        (job["job_stage"] == "finish").then_some(job)
    })
    .await;
    assert_eq!(ended["job_health"], "success", "{ended}");
    assert_eq!(ended["attempt"], 1, "{ended}");
    assert!(
        !first.log().contains("beginning a new one"),
        "{}",
        first.log()
    );
    assert!(!second.log().contains("job taken"), "{}", second.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_agent_has_the_host_when_the_first_is_gone() {
    // With a heartbeat each 200 ms, two of them are soon missed.
    let scheduler = Scheduler::start_with(Store::Embedded, &["--lease", "1200ms"]).await;
    let http = scheduler.http();
    let words = ["--kind", "vm,dc", "--memory", "4g", "--wait", "1"];
    let mut first = Agent::start(&scheduler.url(), "twin", &words);
    eventually("the first has the host", async || {
        first.log().contains("a scheduler answers").then_some(())
    })
    .await;
    first.kill();
    let second = Agent::start(&scheduler.url(), "twin", &words);
    let id = http.submit(&jobs::dc("alice")).await.remove(0);
    eventually("the second runs its job", async || {
        (http.field(&id, "job_health").await == "success").then_some(())
    })
    .await;
    drop(second);
}
