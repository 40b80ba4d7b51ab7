//! Removes results and logs of old jobs from data folders.
//!
//! Invariant: a dry run and a real one select in the same place ([`ended`]). Files of a job that has not ended, or that
//! this version cannot read, stay.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::PathBuf,
};

use fairlead_job::JobId;
use fairlead_store::{JobStore, Search, StoreError};
use futures_util::future::BoxFuture;

use crate::{
    Clock, Config, StartError,
    files::{places::JobFiles, removal::remove_files, walk::Walk},
};
use fairlead_base::storage::open::open_to_read;

const DAY_S: u64 = 86_400;

/// Which files go.
#[derive(Debug, Clone)]
pub struct PruneOptions {
    /// The data folders.
    pub files: Vec<PathBuf>,
    /// Files of jobs that were submitted so many days ago or later stay.
    pub keep_days: u32,
    /// Only counts.
    pub dry_run: bool,
}

/// What went, or would go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Jobs with any of it.
    pub jobs: u64,
    /// Folders of results.
    pub folders: u64,
    /// Logs.
    pub logs: u64,
    /// Bytes of all their files.
    pub bytes: u64,
    /// Old jobs whose files stay, because they have not ended.
    pub kept: u64,
}

/// Removes files of old jobs, or counts them. A scheduler may run meanwhile.
pub fn prune<'a>(
    config: &'a Config,
    options: &'a PruneOptions,
) -> BoxFuture<'a, Result<Pruned, StartError>> {
    Box::pin(async move {
        let store = open_to_read(config).await?;
        in_folders(store.as_ref(), options).await
    })
}

async fn in_folders(store: &dyn JobStore, options: &PruneOptions) -> Result<Pruned, StartError> {
    let age_s = u64::from(options.keep_days) * DAY_S;
    // If the clocks differ, nobody is older than the one that is behind says.
    let own_s = Clock::system().wall_s();
    let now_s = store
        .wall_ms()
        .await?
        .map_or(own_s, |ms| own_s.min(ms / 1000));
    let before = JobId::first_of(now_s.saturating_sub(age_s));
    let (mut pruned, mut jobs, mut kept) = (Pruned::default(), BTreeSet::new(), BTreeSet::new());
    // Of another lab, most likely: each of its files would be one of a job that is gone.
    let is_empty = store.search(&Search::default()).await?.total == 0;
    for data in &options.files {
        let broken = |cause: io::Error| StartError::Data {
            path: data.display().to_string(),
            cause,
        };
        let mut walk = Walk::begin(data, move |files| files.id < before);
        while let Some(all) = walk.next().await {
            if is_empty && !all.is_empty() {
                let path = data.display().to_string();
                return Err(StartError::EmptyStore { path });
            }
            let ended = ended(store, &all).await?;
            let (go, stay): (Vec<_>, Vec<_>) =
                all.into_iter().partition(|files| ended.contains(&files.id));
            kept.extend(stay.iter().map(|files| files.id));
            jobs.extend(go.iter().map(|files| files.id));
            let (top, dry_run) = (data.clone(), options.dry_run);
            let done = tokio::task::spawn_blocking(move || remove_files(&top, &go, dry_run)).await;
            let done = done.unwrap_or_else(|error| Err(io::Error::other(error)));
            let done = done.map_err(broken)?;
            pruned.folders += done.folders;
            pruned.logs += done.logs;
            pruned.bytes += done.bytes;
        }
        walk.end().await.map_err(broken)?;
    }
    pruned.jobs = u64::try_from(jobs.len()).unwrap_or(u64::MAX);
    pruned.kept = u64::try_from(kept.len()).unwrap_or(u64::MAX);
    Ok(pruned)
}

/// Those whose jobs have ended, or are not there any more.
async fn ended(store: &dyn JobStore, files: &[JobFiles]) -> Result<BTreeSet<JobId>, StoreError> {
    let ids: BTreeSet<JobId> = files.iter().map(|files| files.id).collect();
    let ids: Vec<JobId> = ids.into_iter().collect();
    let readable: BTreeMap<JobId, bool> = store
        .get_readable(&ids)
        .await?
        .into_iter()
        .map(|job| (job.state.job_id, job.state.stage.is_terminal()))
        .collect();
    let mut ended = BTreeSet::new();
    for id in ids {
        let goes = match readable.get(&id) {
            Some(is_terminal) => *is_terminal,
            // Not there, or not readable: the second may run.
            None => matches!(store.get(&[id]).await.as_deref(), Ok([None])),
        };
        if goes {
            ended.insert(id);
        }
    }
    Ok(ended)
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path, sync::Arc};

    use fairlead_fault_store::FaultStore;
    use fairlead_job::{Spec, Stage};
    use fairlead_store::{EmbeddedStore, NewJob};

    use super::*;
    use crate::{
        files::places::{folder_in, log_in},
        testing::state,
    };

    fn put(data: &Path, id: JobId) -> PathBuf {
        let folder = folder_in(data, &format!("/result/s/2024-01-01/dc/{id}")).unwrap();
        fs::create_dir_all(folder.join("inner")).unwrap();
        fs::write(folder.join("inner/x"), "12345").unwrap();
        let log = log_in(data, id, 1);
        fs::create_dir_all(log.parent().unwrap()).unwrap();
        fs::write(log, "123").unwrap();
        folder
    }

    #[tokio::test]
    async fn a_dry_run_counts_what_a_real_one_removes() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().to_owned();
        let store = EmbeddedStore::open(&data).unwrap();
        let old = JobId::first_of_month("2401").unwrap();
        let now = JobId::first_of(Clock::system().wall_s());
        let mut expected = Vec::new();
        for (id, stage, stays) in [
            (old, Some(Stage::Finish), false),
            (old.behind(1), Some(Stage::Running), true),
            (old.behind(2), Some(Stage::Submit), true),
            (old.behind(3), None, false),
            (now, Some(Stage::Finish), true),
        ] {
            expected.push((put(&data, id), stays));
            let Some(stage) = stage else { continue };
            let mut job = state(1);
            (job.job_id, job.stage) = (id, stage);
            let body = Spec::new().into();
            assert!(store.submit(vec![NewJob { state: job, body }]).await[0].is_ok());
        }
        drop(store);
        let config = Config::embedded(data.clone());
        let mut options = PruneOptions {
            files: vec![data],
            keep_days: 30,
            dry_run: true,
        };
        let would = prune(&config, &options).await.unwrap();
        let counts = (
            would.jobs,
            would.folders,
            would.logs,
            would.bytes,
            would.kept,
        );
        assert_eq!(counts, (2, 2, 2, 16, 2));
        assert!(expected.iter().all(|(folder, _)| folder.exists()));
        options.dry_run = false;
        assert_eq!(prune(&config, &options).await.unwrap(), would);
        for (folder, stays) in expected {
            assert_eq!(folder.exists(), stays, "{}", folder.display());
        }
        let again = prune(&config, &options).await.unwrap();
        assert_eq!((again.jobs, again.bytes, again.kept), (0, 0, 2));
    }

    /// The clock of this machine is two years ahead.
    #[tokio::test]
    async fn nothing_is_old_by_one_clock_alone() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().to_owned();
        let old = JobId::first_of_month("2401").unwrap();
        put(&data, old);
        let store = FaultStore::new(Arc::new(EmbeddedStore::open(&data).unwrap()), []);
        let mut job = state(1);
        (job.job_id, job.stage) = (old, Stage::Finish);
        let body = Spec::new().into();
        assert!(store.submit(vec![NewJob { state: job, body }]).await[0].is_ok());
        let options = PruneOptions {
            files: vec![data],
            keep_days: 30,
            dry_run: true,
        };
        for (days, jobs) in [(1, 0), (40, 1)] {
            store.tells_time((old.born_s() + days * DAY_S) * 1000);
            let pruned = in_folders(&store, &options).await.unwrap();
            assert_eq!(pruned.jobs, jobs, "{days}");
        }
    }

    /// To another store all files are of jobs that are gone.
    #[tokio::test]
    async fn a_store_without_jobs_is_refused_beside_files() {
        let [data, empty] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        put(data.path(), JobId::first_of_month("2401").unwrap());
        let others = Config::embedded(empty.path().to_owned());
        let options = PruneOptions {
            files: vec![data.path().to_owned()],
            keep_days: 30,
            dry_run: true,
        };
        assert!(prune(&others, &options).await.is_err());
        assert_eq!(
            fs::read_dir(empty.path()).unwrap().count(),
            0,
            "it was made"
        );
        drop(EmbeddedStore::open(empty.path()).unwrap());
        let refused = prune(&others, &options).await.unwrap_err();
        assert!(
            matches!(refused, StartError::EmptyStore { .. }),
            "{refused}"
        );
    }
}
