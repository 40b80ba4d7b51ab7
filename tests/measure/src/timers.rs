//! How late many timers start that are due within one minute, over three replicas.
//!
//! Timers are submitted to all three replicas. Their periods spread the first runs evenly over some seconds. Then only
//! the replicas act. Each timer must have had one run, and each run must be its own job.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use fairlead_tests::{
    Http, clock,
    history::{all_jobs, at},
    jobs, until,
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    lab::{Replicas, sum},
    table::{head, number, permille, row, say},
};

/// Number of timers of one account: the default limit of a scheduler.
const OF_ONE: usize = 1_000;
/// Number of concurrent submits of timers.
const ABREAST: usize = 64;
/// Number of submits that are certainly done in a second.
const SUBMITS_A_SECOND: usize = 200;
/// Minimum time between the submits and the first run, s. No period may be shorter than a minute.
const LEAD_S: usize = 90;
/// Time after the minute within which everything must be done, s.
const LATEST_S: u64 = 300;
/// Metric of the lateness of runs.
const LATENESS: &str = "fairlead_timer_lateness_seconds";
/// Bucket limits that are printed, s.
const LIMITS_S: [&str; 8] = ["0.1", "0.2", "0.3", "0.5", "0.75", "1.0", "2.0", "5.0"];

/// How late many timers start that are due within a short time, over three replicas
#[derive(Debug, clap::Args)]
pub(crate) struct Timers {
    /// Number of timers
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    timers: usize,
    /// Time in which they are due, seconds
    #[arg(long, value_name = "S", default_value_t = 60)]
    span: usize,
}

fn now_ms() -> usize {
    usize::try_from(clock::now_ms()).unwrap_or(usize::MAX)
}

fn account(n: usize) -> String {
    format!("user{}", n / OF_ONE)
}

/// Submits all timers. Their runs are due from `from_ms` on.
async fn submit(https: &[Http], count: usize, from_ms: usize, span_ms: usize) {
    let next = Arc::new(AtomicUsize::new(0));
    let mut submitters = JoinSet::new();
    for http in https.iter().cycle().take(ABREAST) {
        let (next, http) = (Arc::clone(&next), http.clone());
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

/// Returns all timers, page by page.
async fn all_timers(http: &Http, count: usize) -> Vec<Value> {
    let mut all = Vec::new();
    for first in (0..count).step_by(OF_ONE) {
        let path = format!("/scheduler/v1/timers?limit=1000&account={}", account(first));
        let page = http.get(&path).await.json();
        all.extend(page["timers"].as_array().cloned().unwrap_or_default());
    }
    all
}

/// Returns the number of runs so far, from the replicas' own counts.
async fn made(https: &[Http]) -> f64 {
    sum(https, &format!("{LATENESS}_count")).await
}

/// Returns all timers and all jobs, once the lists show the runs. Lists lag behind by a refresh.
async fn all_runs(http: &Http, count: usize) -> (Vec<Value>, Vec<Value>) {
    until("lists show all runs", LATEST_S, async || {
        let (timers, runs) = (all_timers(http, count).await, all_jobs(http).await);
        let told = timers.iter().filter_map(|timer| timer["runs"].as_u64());
        let told: u64 = told.sum();
        let is_all = runs.len() >= count && told >= u64::try_from(count).unwrap_or(u64::MAX);
        is_all.then_some((timers, runs))
    })
    .await
}

/// Returns the number of timers with exactly one run that is a job.
fn once(timers: &[Value], runs: &[Value]) -> usize {
    let ids: BTreeSet<_> = runs.iter().map(|job| job["job_id"].as_str()).collect();
    let is_good = |timer: &&Value| {
        let last = timer["last_run"]["job_id"].as_str();
        timer["runs"] == 1 && last.is_some() && ids.contains(&last)
    };
    timers.iter().filter(is_good).count()
}

/// Returns the lateness of each run, ms.
fn lateness_ms(timers: &[Value], runs: &[Value]) -> Vec<u64> {
    let due_of = |timer: &Value| {
        let id = timer["last_run"]["job_id"].as_str()?.to_owned();
        Some((id, timer["last_run"]["due_ms"].as_u64()?))
    };
    let due: BTreeMap<String, u64> = timers.iter().filter_map(due_of).collect();
    let late = |job: &Value| {
        let due_ms = *due.get(job["job_id"].as_str()?)?;
        Some(at(job, "submit_ms")?.saturating_sub(due_ms))
    };
    runs.iter().filter_map(late).collect()
}

impl Timers {
    pub(crate) async fn measure(&self) {
        let (count, span_ms) = (self.timers, self.span * 1_000);
        let lab = Replicas::start(3, &[]).await;
        let https = &lab.https;
        let from_ms = now_ms() + (LEAD_S + count / SUBMITS_A_SECOND) * 1_000;
        submit(https, count, from_ms, span_ms).await;
        assert!(
            now_ms() < from_ms,
            "the submits took too long for their lead"
        );
        say(&format!("{count} timers submitted"));
        let wait_s = u64::try_from((from_ms + span_ms - now_ms()) / 1_000).unwrap_or(0);
        until("all runs are made", wait_s + LATEST_S, async || {
            (made(https).await >= number(count)).then_some(())
        })
        .await;
        let (timers, runs) = all_runs(&https[0], count).await;
        let (once, late) = (once(&timers, &runs), lateness_ms(&timers, &runs));
        head(&[
            "timers",
            "with one run",
            "jobs",
            "made p50 ms",
            "p99 ms",
            "longest ms",
        ]);
        let at = |nth| permille(&late, nth);
        let jobs = runs.len();
        row(&[&count, &once, &jobs, &at(500), &at(990), &at(1_000)]);
        let all = made(https).await;
        for limit in LIMITS_S {
            let bucket = format!("{LATENESS}_bucket{{le=\"{limit}\"}}");
            let percent = sum(https, &bucket).await / all * 100.0;
            say(&format!("acknowledged within {limit} s: {percent:.2} %"));
        }
        assert_eq!((once, jobs), (count, count), "each fires once");
    }
}
