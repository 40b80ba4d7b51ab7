//! Checks a store, and the files of its jobs, without a replica. Reads only.

use std::path::{Path, PathBuf};

use fairlead_store::{ElasticStore, EmbeddedStore, Finding, Findings, JobStore, check_jobs};
use futures_util::future::BoxFuture;

use super::{check_files, check_files::Folders, set_aside};
use crate::{Clock, Config, StartError, StoreChoice};
use fairlead_base::storage::open::{open_existing, open_to_read};

/// What is checked.
#[derive(Debug, Clone, Default)]
pub struct CheckOptions {
    /// A file of the embedded store, such as a backup. `None`: the store that the configuration names.
    pub file: Option<PathBuf>,
    /// Data folders whose results and logs are compared with the jobs.
    pub files: Vec<PathBuf>,
    /// How many examples of each kind are kept.
    pub examples_max: usize,
}

/// What a check found.
#[derive(Debug, Clone)]
pub struct Checked {
    /// Jobs that were read.
    pub jobs: u64,
    /// Each kind that was looked for.
    pub findings: Vec<Finding>,
}

/// Checks a lab that runs, or one that does not.
pub fn check_lab<'a>(
    config: &'a Config,
    options: &'a CheckOptions,
) -> BoxFuture<'a, Result<Checked, StartError>> {
    Box::pin(async move {
        let now_ms = Clock::system().wall_ms();
        let mut found = Findings::new(options.examples_max);
        let folders = Folders::new(&options.files);
        let jobs = match (&options.file, &config.store) {
            (None, StoreChoice::Elasticsearch(elastic)) => {
                let store = ElasticStore::open_to_read(elastic.as_ref().clone()).await?;
                found = store.check_bodies(now_ms, found).await?;
                compare(&store, now_ms, &folders, &mut found).await?
            }
            (file, _) => {
                let path: &Path = file.as_ref().unwrap_or(&config.data_dir);
                let store = EmbeddedStore::open_to_read(path)?;
                found = store.check_tables(found).await?;
                if found.count("damage") > 0 {
                    0
                } else {
                    compare(&store, now_ms, &folders, &mut found).await?
                }
            }
        };
        Ok(Checked {
            jobs,
            findings: found.kinds().to_vec(),
        })
    })
}

async fn compare(
    store: &dyn JobStore,
    now_ms: u64,
    folders: &Folders,
    found: &mut Findings,
) -> Result<u64, StartError> {
    folders.look_for(found);
    let jobs = check_jobs(store, now_ms, found, |state, found| {
        folders.check_job(state, found);
    })
    .await?;
    check_files::check(store, folders, found).await?;
    Ok(jobs)
}

/// Sets aside files of attempts that have not begun, after a restore of the store that the configuration names. No
/// scheduler may run on it. Answers how many folders and logs got another name.
pub fn set_files_aside<'a>(
    config: &'a Config,
    files: &'a [PathBuf],
) -> BoxFuture<'a, Result<u64, StartError>> {
    Box::pin(async move {
        let store = if matches!(config.store, StoreChoice::Embedded) {
            // A scheduler has it to itself.
            open_existing(config).await?
        } else {
            let store = open_to_read(config).await?;
            set_aside::refuse_running(store.as_ref()).await?;
            store
        };
        all_aside(store.as_ref(), files).await
    })
}

async fn all_aside(store: &dyn JobStore, files: &[PathBuf]) -> Result<u64, StartError> {
    let mut moved = 0;
    for data in files {
        moved += set_aside::set_aside(store, data).await?;
    }
    Ok(moved)
}
