//! A flood of names: jobs that each have a queue, an account or a testbox of their own must not stop dispatch.

use fairlead_attack::names::{Flood, flood};
use fairlead_tests::{Http, Scheduler, Store, Testbox, jobs, until};
use serde_json::json;

/// Number of jobs. There are more names than are counted, and more jobs than the cache may hold.
const JOBS: usize = 9_000;
/// Arguments for a small cache, so that the flood exceeds its limits sooner.
const CACHE: [&str; 2] = ["--cache-jobs-max", "2000"];
/// Time for the flood to be stored, and for the victim to get its testbox, seconds.
const FLOOD_LIMIT_S: u64 = 240;
const VICTIM_LIMIT_S: u64 = 60;

/// Checks that a victim's job reaches a host that can run no job of the flood.
async fn victim_is_served(http: &Http, host: &str) {
    let victim = jobs::with(jobs::dc("victim"), &json!({"need_memory": "2g"}));
    let id = http.submit(&victim).await.remove(0);
    takes(http, host, &id).await;
}

async fn takes(http: &Http, host: &str, id: &str) {
    let mut machine = Testbox::dc(http, host, 4_096);
    until(
        "the victim's job is handed out",
        VICTIM_LIMIT_S,
        async || {
            let grants = machine.ask(1).await;
            grants.iter().any(|grant| grant.job_id == id).then_some(())
        },
    )
    .await;
}

async fn a_flood_is_survived(kind: Flood) {
    let mut scheduler = Scheduler::start_with(Store::Embedded, &CACHE).await;
    let http = scheduler.http();
    flood(&http, kind, JOBS, FLOOD_LIMIT_S).await;
    victim_is_served(&http, "host-1").await;

    // A job that waits over a restart is found, although the memory has nothing of it.
    let victim = jobs::with(jobs::dc("late"), &json!({"need_memory": "2g"}));
    let id = http.submit(&victim).await.remove(0);
    scheduler.kill();
    scheduler.restart().await;
    takes(&http, "host-2", &id).await;
    victim_is_served(&http, "host-3").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_for_each_job_stops_nobody() {
    a_flood_is_survived(Flood::Queues).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_for_each_job_stops_nobody() {
    a_flood_is_survived(Flood::Accounts).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_testbox_for_each_job_stops_nobody() {
    a_flood_is_survived(Flood::Testboxes).await;
}
