//! Schedulers that a measurement starts, and the work that it gives them.

use std::time::Duration;

use fairlead_tests::{Http, Lab, Metrics, Scheduler, clock, until};
use serde_json::Value;
use tokio::task::JoinSet;

/// Number of jobs in one request.
const SUBMIT_JOBS: usize = 10_000;

/// Replicas over the Elasticsearch of `ES_URL`, with their own indices.
pub(crate) struct Replicas {
    pub(crate) lab: Lab,
    pub(crate) schedulers: Vec<Scheduler>,
    /// Clients of the replicas, without an account.
    pub(crate) https: Vec<Http>,
}

impl Replicas {
    /// Starts `count` replicas, with more arguments of `fairlead serve`.
    pub(crate) async fn start(count: usize, more: &[&str]) -> Self {
        let lab = Lab::new();
        let schedulers = lab.schedulers(count, more).await;
        let https = schedulers.iter().map(Scheduler::http).collect();
        Self {
            lab,
            schedulers,
            https,
        }
    }
}

/// Submits `count` jobs, alternating over the replicas.
pub(crate) async fn submit_all(https: &[Http], count: usize, job: impl Fn(usize) -> Value) {
    let mut sending = JoinSet::new();
    for (first, http) in (0..count).step_by(SUBMIT_JOBS).zip(https.iter().cycle()) {
        let jobs: Value = (first..count.min(first + SUBMIT_JOBS)).map(&job).collect();
        let http = http.clone();
        sending.spawn(async move { http.submit(&jobs).await.len() });
        if sending.len() == https.len() {
            sending.join_next().await.transpose().expect("a submit");
        }
    }
    sending.join_all().await;
}

/// Returns the sum of one metric over all replicas.
pub(crate) async fn sum(https: &[Http], metric: &str) -> f64 {
    let mut all = 0.0;
    for http in https {
        all += Metrics::of(http).await.get(metric);
    }
    all
}

/// Waits for this time.
pub(crate) async fn pass(time: Duration) {
    let never = std::future::pending::<()>();
    let _ = tokio::time::timeout(time, never).await;
}

/// Waits until at least this number of requests for work wait at the replicas.
pub(crate) async fn waiters(https: &[Http], least: f64, limit_s: u64) {
    until("hosts wait", limit_s, async || {
        (sum(https, "fairlead_waiters").await >= least).then_some(())
    })
    .await;
}

/// Returns the result and the duration of `work`.
pub(crate) async fn timed<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let begin = clock::now();
    let done = work.await;
    (done, begin.elapsed())
}
