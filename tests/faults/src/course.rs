//! One job on a testbox: it reports its start, runs for the time that it asks for, and reports its end.

use std::time::Duration;

use fairlead_api::{Grant, JobUpdate};
use fairlead_cluster::clock::pause;
use fairlead_job::Stage;
use fairlead_testbox::{
    JobLine,
    protocol::{Key, Stop, Why},
};
use serde_json::Value;

/// The health of a job that has run for its time.
pub(super) const SUCCESS: &str = "success";
/// How long a job runs that does not say.
const RUN_DEFAULT_MS: u64 = 1_000;

/// What of a grant its course needs.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) key: Key,
    /// Names its grant.
    pub(super) token: String,
    pub(super) memory_mb: u32,
    run: Duration,
}

impl Job {
    pub(super) fn of(grant: &Grant) -> Self {
        let run_ms = grant.job.get("run_ms").and_then(Value::as_u64);
        Self {
            key: (grant.job_id.clone(), grant.attempt),
            token: grant.claim_token.clone(),
            memory_mb: grant.memory_mb,
            run: Duration::from_millis(run_ms.unwrap_or(RUN_DEFAULT_MS)),
        }
    }

    /// Runs it to its confirmed end.
    pub(super) async fn run(self, mut line: JobLine) -> Key {
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
            let more = JobUpdate {
                exit_code: (health.as_deref() == Some(SUCCESS)).then_some(0),
                job_health: health,
                job_data_readiness: Some("complete".to_owned()),
                ..JobUpdate::default()
            };
            // Whatever the answer is, there is nothing more to be done.
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
            () = pause(self.run) => Ok(()),
        }
    }
}
