//! One job on a testbox: it says that it begins, runs for the time that the job asks for, and says how it ended.

use std::time::Duration;

use fairlead_api::{Client, ClientError, Grant, HeldJob, JobUpdate};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use fairlead_cluster::clock::pause;

/// Pauses between two tries of a report.
const RETRY_MIN: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(2);
/// How long a job runs that does not say.
const RUN_DEFAULT_MS: u64 = 1_000;

/// A step of a job's course is over.
#[derive(Debug)]
pub(super) enum Step {
    /// The scheduler knows that it runs, or refuses that.
    Begun(Result<(), ClientError>),
    /// It has run for its time.
    Ran,
    /// The scheduler knows its end, or refuses that.
    Ended(Result<(), ClientError>),
    /// It was forgotten on the way.
    Dropped,
}

/// What of a grant its course needs.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) named: HeldJob,
    token: String,
    pub(super) memory_mb: u32,
    run: Duration,
}

impl Job {
    pub(super) fn of(grant: &Grant) -> Self {
        let run_ms = grant.job.get("run_ms").and_then(Value::as_u64);
        Self {
            named: HeldJob {
                job_id: grant.job_id.clone(),
                attempt: grant.attempt,
                claim_token: grant.claim_token.clone(),
            },
            token: grant.job_token.clone(),
            memory_mb: grant.memory_mb,
            run: Duration::from_millis(run_ms.unwrap_or(RUN_DEFAULT_MS)),
        }
    }

    fn update(&self, stage: &str) -> JobUpdate {
        JobUpdate {
            attempt: Some(self.named.attempt),
            job_token: Some(self.token.clone()),
            job_stage: Some(stage.to_owned()),
            ..JobUpdate::default()
        }
    }

    /// Says that it begins.
    pub(super) async fn begin(self, client: Client, over: CancellationToken) -> (HeldJob, Step) {
        let update = self.update("running");
        let said = until_answered(&client, &self.named.job_id, &update);
        let step = over.run_until_cancelled(said).await;
        (self.named.clone(), step.map_or(Step::Dropped, Step::Begun))
    }

    /// Runs.
    pub(super) async fn work(self, over: CancellationToken) -> (HeldJob, Step) {
        let ran = over.run_until_cancelled(pause(self.run)).await;
        (self.named, ran.map_or(Step::Dropped, |()| Step::Ran))
    }

    /// Says that it ended well.
    pub(super) async fn end(self, client: Client, over: CancellationToken) -> (HeldJob, Step) {
        let update = JobUpdate {
            job_health: Some("success".to_owned()),
            job_data_readiness: Some("complete".to_owned()),
            exit_code: Some(0),
            ..self.update("finish")
        };
        let said = until_answered(&client, &self.named.job_id, &update);
        let step = over.run_until_cancelled(said).await;
        (self.named.clone(), step.map_or(Step::Dropped, Step::Ended))
    }
}

/// Reports until there is an answer that stands, a refusal included.
async fn until_answered(
    client: &Client,
    job_id: &str,
    update: &JobUpdate,
) -> Result<(), ClientError> {
    let mut rest = RETRY_MIN;
    loop {
        match client.update(job_id, update).await {
            Ok(_) => return Ok(()),
            Err(error) if is_final(&error) => return Err(error),
            Err(_) => pause(rest).await,
        }
        rest = (rest * 2).min(RETRY_MAX);
    }
}

fn is_final(error: &ClientError) -> bool {
    let status = error.status().unwrap_or(503);
    (400..500).contains(&status) && !matches!(status, 408 | 425 | 429)
}
