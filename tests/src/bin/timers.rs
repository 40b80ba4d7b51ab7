//! Measures how late many timers start that are due within one minute, over three replicas.
//!
//! `cargo run -p fairlead-tests --release --bin timers -- 100000`; build the workspace's binaries in release before.
//! `ES_URL` names an Elasticsearch.
//!
//! Timers are submitted to all three replicas. Their periods spread the first runs evenly over one minute, or over the
//! seconds of a second number. Then only the replicas act. Each timer must have had one run, and each run must be its
//! own job. It prints a table, and takes long, so it is no test.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicUsize, Ordering},
};

use fairlead_tests::{
    Http, Lab, Metrics, Scheduler, clock,
    history::{all_jobs, at},
    jobs, until,
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// Timers if no number is given: enough to see that it works.
const FEW: usize = 1_000;
/// Timers of one account: what a scheduler allows by default.
const OF_ONE: usize = 1_000;
/// Within how many seconds they are due, if no second number is given.
const SPAN_S: usize = 60;
/// Timers that are submitted side by side.
const ABREAST: usize = 64;
/// So many are surely submitted in a second.
const SUBMITS_A_SECOND: usize = 200;
/// The first run is due so long after the submits at least, s: no period may be shorter than a minute.
const LEAD_S: usize = 90;
/// After the minute everything must be done within this, s.
const LATEST_S: u64 = 300;

fn now_ms() -> usize {
    usize::try_from(clock::now_ms()).unwrap_or(usize::MAX)
}

fn account(n: usize) -> String {
    format!("user{}", n / OF_ONE)
}

/// Submits all timers; their runs are due from `from_ms` on.
async fn submit(https: &[Http], count: usize, from_ms: usize, span_ms: usize) {
    let next = std::sync::Arc::new(AtomicUsize::new(0));
    let mut submitters = JoinSet::new();
    for number in 0..ABREAST {
        let (next, http) = (
            std::sync::Arc::clone(&next),
            https[number % https.len()].clone(),
        );
        submitters.spawn(async move {
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                if n >= count {
                    return;
                }
                let due_ms = from_ms + span_ms * n / count;
                let period_s = due_ms.saturating_sub(now_ms()) / 1_000;
                let more = json!({"timer": format!("timer-{n}"), "every": period_s});
                let timer = jobs::with(jobs::dc(&account(n)), &more);
                let reply = http.post("/scheduler/v1/timers", &timer).await;
                assert_eq!(reply.status, 200, "{}", reply.text);
            }
        });
    }
    submitters.join_all().await;
}

/// All timers, page by page.
async fn all_timers(http: &Http, count: usize) -> Vec<Value> {
    let mut all = Vec::new();
    for first in (0..count).step_by(OF_ONE) {
        let path = format!("/scheduler/v1/timers?limit=1000&account={}", account(first));
        let page = http.get(&path).await.json();
        all.extend(page["timers"].as_array().cloned().unwrap_or_default());
    }
    all
}

/// How many runs were made within so many seconds, of how many, by the replicas' own counts.
async fn within(https: &[Http], seconds: &str) -> (f64, f64) {
    let (mut in_time, mut all) = (0.0, 0.0);
    for http in https {
        let metrics = Metrics::of(http).await;
        let name = "fairlead_timer_lateness_seconds";
        in_time += metrics.get(&format!("{name}_bucket{{le=\"{seconds}\"}}"));
        all += metrics.get(&format!("{name}_count"));
    }
    (in_time, all)
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "the table is what this program is for")]
async fn main() {
    let asked = |nth| std::env::args().nth(nth).and_then(|text| text.parse().ok());
    let count: usize = asked(1).unwrap_or(FEW);
    let span_ms = asked(2).unwrap_or(SPAN_S) * 1_000;
    let lab = Lab::new();
    let replicas = lab.schedulers(3, &[]).await;
    let https: Vec<Http> = replicas.iter().map(Scheduler::http).collect();
    let from_ms = now_ms() + (LEAD_S + count / SUBMITS_A_SECOND) * 1_000;
    submit(&https, count, from_ms, span_ms).await;
    assert!(
        now_ms() < from_ms,
        "the submits took too long for their lead"
    );
    println!("{count} timers submitted");
    let wait_s = u64::try_from((from_ms + span_ms - now_ms()) / 1_000).unwrap_or(0);
    until("all runs are made", wait_s + LATEST_S, async || {
        let (_, all) = within(&https, "1.0").await;
        (all >= f64::from(u32::try_from(count).unwrap_or(u32::MAX))).then_some(())
    })
    .await;
    // Lists lag behind by a refresh.
    let (timers, runs) = until("lists show all runs", LATEST_S, async || {
        let (timers, runs) = (
            all_timers(&https[0], count).await,
            all_jobs(&https[0]).await,
        );
        let told: u64 = timers
            .iter()
            .filter_map(|timer| timer["runs"].as_u64())
            .sum();
        let is_all = runs.len() >= count && told >= u64::try_from(count).unwrap_or(u64::MAX);
        is_all.then_some((timers, runs))
    })
    .await;
    let ids: BTreeSet<&str> = runs
        .iter()
        .filter_map(|job| job["job_id"].as_str())
        .collect();
    let once = timers.iter().filter(|timer| {
        let last = timer["last_run"]["job_id"].as_str();
        timer["runs"] == 1 && last.is_some_and(|id| ids.contains(id))
    });
    let once = once.count();
    let due_of = |timer: &Value| {
        let id = timer["last_run"]["job_id"].as_str()?.to_owned();
        Some((id, timer["last_run"]["due_ms"].as_u64()?))
    };
    let due: std::collections::BTreeMap<String, u64> = timers.iter().filter_map(due_of).collect();
    let mut late: Vec<u64> = runs
        .iter()
        .filter_map(|job| {
            Some(at(job, "submit_ms")?.saturating_sub(*due.get(job["job_id"].as_str()?)?))
        })
        .collect();
    late.sort_unstable();
    let part = |permille: usize| {
        let place = (late.len() * permille / 1_000).min(late.len().saturating_sub(1));
        late.get(place).copied().unwrap_or(0)
    };
    println!("| timers | with one run | jobs | made p50 ms | p99 ms | longest ms |");
    println!("|---|---|---|---|---|---|");
    println!(
        "| {count} | {once} | {} | {} | {} | {} |",
        runs.len(),
        part(500),
        part(990),
        part(1_000)
    );
    for seconds in ["0.1", "0.2", "0.3", "0.5", "0.75", "1.0", "2.0", "5.0"] {
        let (in_time, all) = within(&https, seconds).await;
        println!(
            "acknowledged within {seconds} s: {:.2} %",
            in_time / all * 100.0
        );
    }
    assert_eq!((once, runs.len()), (count, count), "each fires once");
}
