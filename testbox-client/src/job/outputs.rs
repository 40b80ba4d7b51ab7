//! Puts what a job leaves in its `outputs` folder for others, when it has ended by itself. A put that was interrupted is
//! resumed, also by a restarted agent: only chunks that are missing are sent.

use fairlead_content::transfer::{Put, PutOptions, TransferError, put_paths};
use fairlead_job::Health;

use super::{
    context::Context,
    folder::JobFolder,
    journal::{End, Journal},
    retry::{Patience, stores_nothing},
    save::save,
};
use crate::{
    blocking::blocking,
    protocol::Backoff,
    timer::{pause, seed},
};

/// Maximum number of retries for files that change while they are stored. No process of the job should run any more.
const CHANGED_MAX: u32 = 3;

/// Returns the end. A success without all of its outputs becomes a failure.
pub(super) async fn checked(
    folder: &JobFolder,
    journal: &Journal,
    end: Option<End>,
) -> Option<End> {
    let end = end?;
    if !is_success(&end) {
        return Some(end);
    }
    let (top, paths) = (folder.outputs(), journal.outputs.clone());
    let looking = move || {
        let mut paths = paths.into_iter();
        Ok(paths.find(|path| std::fs::symlink_metadata(top.join(path)).is_err()))
    };
    let missing = blocking(looking).await.ok().flatten();
    Some(match missing {
        Some(path) => end.without_output(&path),
        None => end,
    })
}

/// Stores the outputs of a job that ended by itself. Returns their id and the end, which changes if an output is
/// missing.
pub(super) async fn put(
    context: &Context,
    folder: &JobFolder,
    journal: &mut Journal,
    end: End,
    patience: &mut Patience,
) -> (End, Option<String>) {
    let by_itself = is_success(&end) || end.health == Health::Fail.as_str();
    if journal.outputs.is_empty() || !end.ran || !by_itself {
        return (end, None);
    }
    if let Some(id) = &journal.put {
        return (end, Some(id.clone()));
    }
    let put = match until_put(context, folder, journal, patience).await {
        Ok(put) => put,
        Err(error) => {
            let job_id = &journal.job_id;
            tracing::warn!(job_id, %error, "the outputs of a job cannot be put");
            let reason = format!("its outputs cannot be put: {error}");
            return (end.failed(reason), None);
        }
    };
    let end = told(end, &put);
    let id = put.id.to_string();
    tracing::info!(
        job_id = journal.job_id,
        outputs = id,
        files = put.files,
        bytes = put.bytes,
        sent_bytes = put.sent_bytes,
        "the outputs of a job are put"
    );
    journal.put = Some(id.clone());
    journal.end = Some(end.clone());
    if let Err(error) = save(folder, journal).await {
        // After a restart they would be stored once more, under the same id.
        tracing::warn!(job_id = journal.job_id, %error, "the journal cannot be written");
    }
    (end, Some(id))
}

/// Stores until there is a final answer. If the lab cannot store it, it retries only as long as `patience` lasts.
async fn until_put(
    context: &Context,
    folder: &JobFolder,
    journal: &Journal,
    patience: &mut Patience,
) -> Result<Put, TransferError> {
    let Journal {
        job_id,
        attempt,
        job_token,
        ..
    } = journal;
    let lab = context.content_for(job_id, *attempt, job_token)?;
    let options = PutOptions {
        owner: journal.owner(),
        bytes_max: context.config.result_bytes_max,
        ..PutOptions::default()
    };
    let mut backoff = Backoff::patient(seed());
    let mut changed = 0;
    loop {
        let put = put_paths(&lab, folder.outputs(), &journal.outputs, &options, &|_| {}).await;
        let error = match put {
            Ok(put) => return Ok(put),
            Err(error) => error,
        };
        let goes_on = match error.refusal() {
            Some(refusal) if stores_nothing(refusal) => !patience.is_over(),
            _ => error.may_pass(),
        };
        if !goes_on {
            return Err(error);
        }
        if matches!(error, TransferError::Changed { .. }) {
            changed += 1;
            if changed >= CHANGED_MAX {
                return Err(error);
            }
        }
        tracing::warn!(job_id, %error, "the outputs of a job are not put yet; retrying");
        pause(backoff.step()).await;
    }
}

/// Returns the end with the missing outputs.
fn told(end: End, put: &Put) -> End {
    let end = match put.missing.first() {
        Some(path) if is_success(&end) => end.without_output(path),
        _ => end,
    };
    match put.left_out.first() {
        Some(problem) => {
            let reason = format!(
                "its output '{}' was left out: {}",
                problem.path, problem.problem
            );
            end.failed(reason)
        }
        None => end,
    }
}

fn is_success(end: &End) -> bool {
    end.health == Health::Success.as_str()
}

impl End {
    fn without_output(self, path: &str) -> Self {
        self.failed(format!("its output '{path}' is missing"))
    }

    /// Returns the end as a failure with one more reason.
    fn failed(self, reason: String) -> Self {
        Self {
            health: Health::Fail.as_str().to_owned(),
            ..self
        }
        .with(Some(reason))
    }
}
