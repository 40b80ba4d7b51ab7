//! Schedulers that a measurement starts, and the work that it gives them.

use std::time::Duration;

use fairlead_tests::{Http, Lab, Metrics, Scheduler, clock, until};
use serde_json::Value;
use tokio::task::JoinSet;

/// Jobs of one request.
const SUBMIT_JOBS: usize = 10_000;

/// Replicas over the Elasticsearch of `ES_URL`, with indices of their own.
pub(crate) struct Replicas {
    pub(crate) lab: Lab,
    pub(crate) schedulers: Vec<Scheduler>,
    /// Each of them, asked as nobody.
    pub(crate) https: Vec<Http>,
}

impl Replicas {
    /// Starts so many, with more arguments of `fairlead serve`.
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

/// Submits so many jobs by turns to all of them.
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

/// The sum of one number over all of them.
pub(crate) async fn sum(https: &[Http], metric: &str) -> f64 {
    let mut all = 0.0;
    for http in https {
        all += Metrics::of(http).await.get(metric);
    }
    all
}

/// Lets time pass.
pub(crate) async fn pass(time: Duration) {
    let never = std::future::pending::<()>();
    let _ = tokio::time::timeout(time, never).await;
}

/// How many requests for work wait at them.
pub(crate) async fn waiters(https: &[Http], least: f64, limit_s: u64) {
    until("hosts wait", limit_s, async || {
        (sum(https, "fairlead_waiters").await >= least).then_some(())
    })
    .await;
}

/// How long this work takes.
pub(crate) async fn timed<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let begin = clock::now();
    let done = work.await;
    (done, begin.elapsed())
}
