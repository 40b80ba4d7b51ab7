//! Telling the scheduler how far a job is: in order, until it answers, however long it is away.

use std::{future::Future, time::Duration};

use fairlead_api::{Client, ClientError, ErrorCode, JobUpdate};
use fairlead_job::Stage;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::folder::Journal;
use crate::{
    executor::StopHandle,
    timer::{Backoff, pause},
};

/// How long reports of stages are still tried once the workload is over: the end, which is reported
/// next, says more than they do.
const AFTER_THE_END: Duration = Duration::from_secs(5);

/// A report of a stage, and who waits for its answer.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) update: JobUpdate,
    pub(crate) answered: Option<oneshot::Sender<()>>,
}

/// An update of this journal's attempt that says nothing yet.
pub(crate) fn update_of(journal: &Journal, stage: Stage) -> JobUpdate {
    JobUpdate {
        attempt: Some(journal.attempt),
        job_token: Some(journal.job_token.clone()),
        job_stage: Some(stage.as_str().to_owned()),
        ..JobUpdate::default()
    }
}

/// Whether asking again would bring the same answer.
pub(crate) fn is_final(error: &ClientError) -> bool {
    match error {
        ClientError::Refused { status, .. } => {
            (400..500).contains(status) && !matches!(status, 408 | 425 | 429)
        }
        ClientError::BadUrl { .. } | ClientError::File { .. } => true,
        _ => false,
    }
}

/// Asks until there is an answer that stands, a refusal included.
pub(crate) async fn until_answered<T, F>(
    job_id: &str,
    what: &'static str,
    mut ask: impl FnMut() -> F,
) -> Result<T, ClientError>
where
    F: Future<Output = Result<T, ClientError>>,
{
    let mut backoff = Backoff::patient();
    loop {
        match ask().await {
            Err(error) if !is_final(&error) => {
                tracing::warn!(job_id, what, %error, "no answer yet, trying on");
                pause(backoff.step()).await;
            }
            answer => return answer,
        }
    }
}

/// Sends all reports of one job. One that is refused means that the job is no longer this agent's:
/// it is then stopped by `stop`. `over` says that the workload has ended.
pub(crate) async fn report_all(
    client: &Client,
    job_id: &str,
    mut reports: mpsc::Receiver<Report>,
    over: &CancellationToken,
    stop: &StopHandle,
    grace: Duration,
) {
    let sending = async {
        let mut begun = false;
        while let Some(report) = reports.recv().await {
            let sent = until_answered(job_id, "report", || client.update(job_id, &report.update));
            match sent.await {
                Ok(_) => {}
                // The scheduler is further than this report. (Not so with the first: then the job was
                // put back before it was begun.)
                Err(error) if error.code() == Some(ErrorCode::WrongStage) && begun => {
                    tracing::debug!(job_id, %error, "a report came late");
                }
                Err(error) => {
                    stop.forget(error.to_string(), grace);
                    return;
                }
            }
            begun = true;
            if let Some(answered) = report.answered {
                // Whoever waited has gone on without.
                let _ = answered.send(());
            }
        }
    };
    let too_late = async {
        over.cancelled().await;
        pause(AFTER_THE_END).await;
    };
    tokio::select! {
        () = sending => {}
        () = too_late => {}
    }
}
