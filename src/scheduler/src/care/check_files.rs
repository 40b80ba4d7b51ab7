//! Compares results and logs of data folders with the jobs of a store.

use std::{collections::BTreeMap, path::PathBuf};

use fairlead_job::{DataReadiness, JobId, Stage};
use fairlead_store::{Fault, Findings, JobState, JobStore};

use crate::{
    StartError,
    files::{
        places::{JobFiles, folder_in, log_in},
        walk::Walk,
    },
};

const ALONE: Fault = Fault {
    name: "files_without_job",
    meaning: "folders of results and logs whose job is not there",
    todo: "fairlead prune removes old ones; jobs that a restored lab does not have leave some, too",
    is_wrong: false,
};
const EARLY: Fault = Fault {
    name: "files_of_attempt_to_come",
    meaning: "folders of results and logs of attempts that have not begun, which could not store their own",
    todo: "stop all schedulers, and: fairlead check --set-aside",
    is_wrong: true,
};
const NONE: Fault = Fault {
    name: "ended_without_files",
    meaning: "ended jobs whose results were uploaded, and that have neither results nor a log here",
    todo: "name the data folders of all replicas (--files); of pruned days none is left",
    is_wrong: false,
};

/// The data folders.
#[derive(Debug, Clone)]
pub(super) struct Folders(Vec<PathBuf>);

impl Folders {
    pub(super) fn new(folders: &[PathBuf]) -> Self {
        Self(folders.to_vec())
    }

    pub(super) fn look_for(&self, found: &mut Findings) {
        if !self.0.is_empty() {
            for fault in [&ALONE, &EARLY, &NONE] {
                found.look_for(fault);
            }
        }
    }

    /// Whether an ended job has what it should have.
    pub(super) fn check_job(&self, state: &JobState, found: &mut Findings) {
        use DataReadiness::{Complete, Uploaded};
        let should_have = state.stage.is_terminal()
            && matches!(state.data_readiness, Complete | Uploaded)
            // Parents have the files of their shards.
            && state.shards.is_none();
        if self.0.is_empty() || !should_have {
            return;
        }
        // Results that it took are files of the job that ran.
        let id = state.reused_from.unwrap_or(state.job_id);
        let has_some = |data: &PathBuf| {
            folder_in(data, &state.result_root).is_ok_and(|path| path.exists())
                || log_in(data, id, state.attempt).exists()
        };
        if !self.0.iter().any(has_some) {
            found.add(&NONE, || state.job_id.to_string());
        }
    }
}

/// Looks at all files.
pub(super) async fn check(
    store: &dyn JobStore,
    folders: &Folders,
    found: &mut Findings,
) -> Result<(), StartError> {
    for data in &folders.0 {
        let mut walk = Walk::begin(data, |_| true);
        while let Some(batch) = walk.next().await {
            look_at(store, &batch, found).await?;
        }
        walk.end().await.map_err(|cause| StartError::Data {
            path: data.display().to_string(),
            cause,
        })?;
    }
    Ok(())
}

async fn look_at(
    store: &dyn JobStore,
    batch: &[JobFiles],
    found: &mut Findings,
) -> Result<(), StartError> {
    let ids: Vec<JobId> = batch.iter().map(|files| files.id).collect();
    let jobs: BTreeMap<JobId, JobState> = store
        .get_readable(&ids)
        .await?
        .into_iter()
        .map(|job| (job.state.job_id, job.state))
        .collect();
    for files in batch {
        let shown = || files.path.display().to_string();
        match jobs.get(&files.id) {
            None => found.add(&ALONE, shown),
            Some(job) if job.stage == Stage::Submit && files.attempt >= job.attempt => {
                found.add(&EARLY, shown);
            }
            Some(_) => {}
        }
    }
    Ok(())
}
