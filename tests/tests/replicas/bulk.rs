//! An action on many jobs goes on when the replica that does it dies.

use fairlead_tests::{Lab, jobs, until};
use serde_json::json;

/// Time for another replica to notice the loss and to do the rest, seconds.
const LIMIT_S: u64 = 300;
const JOBS: usize = 3_000;

#[tokio::test(flavor = "multi_thread")]
async fn an_action_outlives_the_replica_that_does_it() {
    let lab = Lab::new();
    let mut replicas = lab.schedulers(2, &[]).await;
    let (first, second) = (replicas[0].http(), replicas[1].http());
    let ids = first.submit(&jobs::times(JOBS, &jobs::dc("alice"))).await;
    let asked = json!({"action": "cancel", "jobs": ids});
    let shown = first.post("/scheduler/v1/previews", &asked).await.json();
    assert_eq!(shown["total"], JOBS, "{shown}");
    let later = first.submit(&jobs::dc("alice")).await.remove(0);
    let id = shown["preview_id"].as_str().expect("an id");
    let path = format!("/scheduler/v1/previews/{id}");
    let begun = first.post(&format!("{path}/run"), &json!({})).await;
    assert_eq!(begun.status, 200, "{}", begun.text);
    until("some of it is done", LIMIT_S, async || {
        let now = second.get(&path).await.json();
        (now["done"].as_u64() > Some(0)).then_some(())
    })
    .await;
    replicas[0].kill();
    let done = until("all of it is done", LIMIT_S, async || {
        let now = second.get(&path).await.json();
        (now["state"] == "done").then_some(now)
    })
    .await;
    assert_eq!((&done["done"], &done["failed"]), (&json!(JOBS), &json!([])));
    for (stage, jobs) in [("cancel", JOBS), ("submit", 1)] {
        until("each job is where it belongs", LIMIT_S, async || {
            let query = format!("/scheduler/v1/jobs?account=alice&stage={stage}&limit=0");
            let list = second.get(&query).await.json();
            (list["total"] == jobs).then_some(())
        })
        .await;
    }
    assert_eq!(second.field(&later, "job_stage").await, "submit");
}
