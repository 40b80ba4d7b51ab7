//! A steady load of a client with several URLs: its submits, and every failed request.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use fairlead_api::{Client, ClientConfig, ClientError, JobQuery};
use fairlead_tests::{eventually, jobs};
use tokio::task::JoinSet;

/// Pause between two requests of one stream.
const EVERY: Duration = Duration::from_millis(25);

/// Result of a load.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Acknowledged jobs.
    pub(crate) ids: Vec<String>,
    /// Failed requests, with the client's messages.
    pub(crate) failed: Vec<String>,
    /// Submits without an answer, which were then submitted once more. It is unknown whether they were carried out.
    pub(crate) unknown: Vec<String>,
    /// Number of answered requests.
    pub(crate) answered: usize,
}

/// A load that runs until it is stopped.
#[derive(Debug)]
pub(crate) struct Load {
    over: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    streams: JoinSet<Outcome>,
}

impl Load {
    /// Starts one stream of submits and one of queries, with a client of these URLs.
    pub(crate) fn start(urls: &[String], account: &str) -> Self {
        let client = Client::new(ClientConfig::new(urls)).expect("URLs");
        let over = Arc::new(AtomicBool::new(false));
        let answered = Arc::new(AtomicUsize::new(0));
        let mut streams = JoinSet::new();
        let counts = (Arc::clone(&over), Arc::clone(&answered));
        streams.spawn(submits(client.clone(), account.to_owned(), counts.clone()));
        streams.spawn(questions(client, counts));
        Self {
            over,
            answered,
            streams,
        }
    }

    /// Waits until this number of further requests is answered.
    pub(crate) async fn after(&self, more: usize) {
        let enough = self.answered.load(Ordering::Relaxed) + more;
        eventually("the load goes on", async || {
            (self.answered.load(Ordering::Relaxed) >= enough).then_some(())
        })
        .await;
    }

    /// Stops it, and returns the result.
    pub(crate) async fn stop(self) -> Outcome {
        self.over.store(true, Ordering::Relaxed);
        let mut all = Outcome::default();
        for mut one in self.streams.join_all().await {
            all.ids.append(&mut one.ids);
            all.failed.append(&mut one.failed);
            all.unknown.append(&mut one.unknown);
            all.answered += one.answered;
        }
        all
    }
}

type Counts = (Arc<AtomicBool>, Arc<AtomicUsize>);

async fn submits(client: Client, account: String, (over, answered): Counts) -> Outcome {
    let mut outcome = Outcome::default();
    let mut ticks = tokio::time::interval(EVERY);
    while !over.load(Ordering::Relaxed) {
        ticks.tick().await;
        match client.submit(&jobs::dc(&account)).await {
            Ok(items) if items.iter().all(|item| item.job_id != "0") => {
                outcome.answered += 1;
                answered.fetch_add(1, Ordering::Relaxed);
                outcome
                    .ids
                    .extend(items.into_iter().map(|item| item.job_id));
            }
            Ok(items) => outcome.failed.push(format!("submit: {items:?}")),
            Err(error) if is_unknown(&error) => outcome.unknown.push(error.to_string()),
            Err(error) => outcome.failed.push(format!("submit: {error}")),
        }
    }
    outcome
}

/// Returns true if the request was sent, and lost with the replica that had it. Only its sender may repeat it.
fn is_unknown(error: &ClientError) -> bool {
    matches!(error, ClientError::OutcomeUnknown { .. }) || matches!(error.status(), Some(502 | 504))
}

async fn questions(client: Client, (over, answered): Counts) -> Outcome {
    let mut outcome = Outcome::default();
    let mut ticks = tokio::time::interval(EVERY);
    let query = JobQuery {
        limit: Some(5),
        ..JobQuery::default()
    };
    while !over.load(Ordering::Relaxed) {
        ticks.tick().await;
        match client.jobs(&query).await {
            Ok(_) => {
                outcome.answered += 1;
                answered.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => outcome.failed.push(format!("jobs: {error}")),
        }
    }
    outcome
}

/// Waits until all these jobs have ended successfully.
pub(crate) async fn all_end_well(urls: &[String], ids: &[String]) {
    let client = Client::new(ClientConfig::new(urls)).expect("URLs");
    let mut open: Vec<&String> = ids.iter().collect();
    let what = format!("{} jobs end well", ids.len());
    eventually(&what, async || {
        while let Some(id) = open.last() {
            let job = client.job(id).await.ok()?;
            let health = job["job_health"].as_str().unwrap_or_default();
            if job["job_stage"] != "finish" {
                return None;
            }
            assert_eq!(health, "success", "{job:?}");
            open.pop();
        }
        Some(())
    })
    .await;
}
