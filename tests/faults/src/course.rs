//! One job on a testbox: it reports its start, runs for the time that it asks for, uploads a file, and reports its end.

use std::{sync::Arc, time::Duration};

use fairlead_api::{Client, ErrorCode, Grant, JobUpdate, client::UploadBody};
use fairlead_cluster::clock::pause;
use fairlead_job::{DataReadiness, Stage};
use fairlead_testbox::{
    JobLine, Patience,
    protocol::{Key, Stop, Why},
    until_stored,
};
use serde_json::Value;

use super::history::{History, Upload};

/// Health of a job that has run for its time.
pub(super) const SUCCESS: &str = "success";
/// Default run time of a job, ms.
const RUN_DEFAULT_MS: u64 = 1_000;
/// Bytes of its file for each ms of its run time. The file has some pages, so a full disk may cut it in the middle.
const BYTES_PER_MS: u64 = 4;
/// Time for which a job waits for a lab that cannot store data, like an agent's `--store-wait`.
const STORE_WAIT: Duration = Duration::from_secs(3);

/// Data of a grant for its course.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) key: Key,
    /// Token of its grant.
    pub(super) token: String,
    pub(super) memory_mb: u32,
    /// Token for its upload.
    upload_token: String,
    result_root: String,
    run_ms: u64,
}

impl Job {
    pub(super) fn of(grant: &Grant) -> Self {
        let run_ms = grant.job.get("run_ms").and_then(Value::as_u64);
        Self {
            key: (grant.job_id.clone(), grant.attempt),
            token: grant.claim_token.clone(),
            memory_mb: grant.memory_mb,
            upload_token: grant.job_token.clone(),
            result_root: grant.result_root.clone(),
            run_ms: run_ms.unwrap_or(RUN_DEFAULT_MS),
        }
    }

    /// Runs it to its confirmed end.
    pub(super) async fn run(self, mut line: JobLine, client: Client, history: Arc<History>) -> Key {
        let health = match self.work(&mut line).await {
            Ok(()) => Some(SUCCESS.to_owned()),
            Err(Stop { why, .. }) => match why {
                Why::Order { health, .. } => Some(health),
                Why::Agent | Why::Forget { .. } => None,
            },
        };
        line.over(false).await;
        line.may_deliver().await;
        if health.is_some() {
            let readiness = self.upload(&client, &history).await;
            let more = JobUpdate {
                exit_code: (health.as_deref() == Some(SUCCESS)).then_some(0),
                job_health: health,
                job_data_readiness: Some(readiness.as_str().to_owned()),
                ..JobUpdate::default()
            };
            // With any answer, nothing more must be done.
            let _ = line.end(more).await;
        }
        self.key
    }

    async fn work(&self, line: &mut JobLine) -> Result<(), Stop> {
        line.report(Stage::Boot, JobUpdate::default()).await;
        line.goes_on(Stage::Boot).await?;
        line.report(Stage::Running, JobUpdate::default()).await;
        tokio::select! {
            biased;
            stop = line.stopped() => Err(stop),
            () = pause(Duration::from_millis(self.run_ms)) => Ok(()),
        }
    }

    /// Uploads its file. Returns the readiness of its data afterwards.
    async fn upload(&self, client: &Client, history: &History) -> DataReadiness {
        let (job, attempt) = self.key.clone();
        let mut file = Upload {
            job,
            attempt,
            path: format!("{}/file", self.result_root),
            bytes: usize::try_from(self.run_ms * BYTES_PER_MS).unwrap_or(usize::MAX),
            acked: false,
        };
        let mut patience = Patience::new(STORE_WAIT);
        let upload = || {
            let body = UploadBody::Bytes(file.content().into());
            client.upload(&file.path, &file.job, &self.upload_token, body)
        };
        let stored = until_stored(&file.job, "upload", &mut patience, upload).await;
        file.acked = stored.is_ok();
        history.facts().uploads.push(file);
        match stored {
            Ok(_) => DataReadiness::Uploaded,
            Err(error) => {
                history.trouble(match error.code() {
                    Some(ErrorCode::DataFull) => "files that found no room",
                    _ => "files that were refused",
                });
                DataReadiness::Incomplete
            }
        }
    }
}
