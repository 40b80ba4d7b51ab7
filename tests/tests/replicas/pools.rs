//! Pools over several replicas: one decides, and another one goes on when it dies in the middle of a launch.

use std::collections::BTreeSet;

use fairlead_tests::{Lab, Scheduler, Site, jobs, until};
use serde_json::json;

/// Time limit for everything, seconds. Another replica decides 15 seconds later.
const LIMIT_S: u64 = 600;
const JOBS: usize = 400;

fn decides(scheduler: &Scheduler) -> bool {
    scheduler
        .log()
        .contains("this replica decides for the pools")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_launch_goes_on_when_who_decided_dies_in_the_middle_of_it() {
    let site = Site::new();
    let lab = Lab::new();
    let mut replicas = lab.schedulers(3, &["--providers", &site.providers()]).await;
    site.serve(&replicas.iter().map(Scheduler::url).collect::<Vec<_>>());
    site.pauses(3);
    let machine = json!({"kinds": ["dc"], "arch": "x86_64", "memory_mb": 512});
    let pool = json!({"provider": "local", "machine": machine, "min": 1, "max": 6, "boot_s": 5});
    let http = replicas[0].http();
    let said = http.post("/scheduler/v1/pools/vms", &pool).await;
    assert_eq!(said.status, 200, "{}", said.text);
    let job = jobs::with(
        jobs::dc("alice"),
        &json!({"need_memory": "64m", "arch": "x86_64"}),
    );
    let ids = http.submit(&jobs::times(JOBS, &job)).await;
    until("machines are being made", LIMIT_S, async || {
        site.was_called("increase").then_some(())
    })
    .await;
    let holder = replicas.iter().position(decides).expect("one decides");
    let mut dead = replicas.remove(holder);
    dead.kill();
    let http = replicas[0].http();
    for id in &ids {
        let job = until("the job has ended", LIMIT_S, async || {
            let job = http.get(&format!("/scheduler/v1/jobs/{id}")).await.json();
            (job["job_stage"] == "finish").then_some(job)
        })
        .await;
        // A machine that was ended while it was busy would have lost its job.
        assert_eq!(
            (&job["job_health"], &job["attempt"]),
            (&json!("success"), &json!(1)),
            "{job}"
        );
    }
    until("the pool is back at its floor", LIMIT_S, async || {
        let pool = http.get("/scheduler/v1/pools/vms").await.json();
        let machines = pool["machines"].as_array().map_or(usize::MAX, Vec::len);
        (machines == 1).then_some(())
    })
    .await;
    assert!(replicas.iter().any(decides), "another one decides");
    let started = site.started();
    let each: BTreeSet<&String> = started.iter().collect();
    assert_eq!(
        each.len(),
        started.len(),
        "a machine was made twice: {started:?}"
    );
}
