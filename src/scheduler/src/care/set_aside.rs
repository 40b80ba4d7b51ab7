//! Gives files of attempts that have not begun another name.
//!
//! A restored store is older than the files beside it. Its jobs begin attempts again that have files already, and a file
//! is written once. So the files make way. Nothing is deleted.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use fairlead_job::Stage;
use fairlead_store::{DocKind, JobState, JobStore, Search, SearchOrder, StoreError, Version};

use crate::{
    Clock, StartError,
    files::places::{folder_in, log_in},
};
use fairlead_lifecycle::{result_paths::attempt_root, stages::HELD};

/// The ending of files that were set aside.
const ENDING: &str = ".before-restore";
/// Jobs of one page.
const PAGE: u32 = 1_000;

/// Sets aside what lies below `data` for attempts of jobs that have not begun. Answers how much.
pub(super) async fn set_aside(store: &dyn JobStore, data: &Path) -> Result<u64, StartError> {
    let stages = std::iter::once(Stage::Submit).chain(HELD.iter().copied());
    let mut search = Search {
        stages: stages.collect(),
        order: SearchOrder::OldestFirst,
        limit: PAGE,
        ..Search::default()
    };
    let mut moved = 0;
    loop {
        let page = store.search(&search).await?;
        for job in &page.jobs {
            moved += of_job(&job.state, data).map_err(|cause| StartError::Data {
                path: data.display().to_string(),
                cause,
            })?;
        }
        search.after = page.jobs.last().map(|job| job.state.job_id);
        if !page.more || search.after.is_none() {
            return Ok(moved);
        }
    }
}

/// A replica changes its document more often than this.
const BEATS: Duration = Duration::from_secs(5);

/// Refuses a lab that a scheduler works on: its files are in use. It is known by its document, which changes.
pub(super) async fn refuse_running(store: &dyn JobStore) -> Result<(), StartError> {
    let versions = async || -> Result<Vec<(String, Version)>, StoreError> {
        let docs = store.list_docs(DocKind::Replica).await?;
        let ids: Vec<String> = docs.into_iter().map(|doc| doc.id).collect();
        let now = store.doc_versions(DocKind::Replica, &ids).await?;
        let known = ids.into_iter().zip(now);
        Ok(known
            .filter_map(|(id, version)| Some((id, version?)))
            .collect())
    };
    let before = versions().await?;
    if before.is_empty() {
        return Ok(());
    }
    Clock::system().sleep(BEATS).await;
    let after = versions().await?;
    let running = after.into_iter().find(|one| !before.contains(one));
    match running {
        None => Ok(()),
        Some((replica, _)) => Err(StoreError::Unusable {
            reason: format!("replica {replica} works on this lab"),
            hint: "stop all replicas first".to_owned(),
        }
        .into()),
    }
}

/// The first attempt of a job that has not begun.
fn first_to_come(state: &JobState) -> u16 {
    if state.stage == Stage::Submit {
        state.attempt
    } else {
        state.attempt.saturating_add(1)
    }
}

fn of_job(state: &JobState, data: &Path) -> io::Result<u64> {
    let mut moved = 0;
    for attempt in first_to_come(state)..=u16::MAX {
        let root = attempt_root(&state.result_root, state.attempt, attempt);
        let mut found = 0;
        for path in [
            folder_in(data, &root).ok(),
            Some(log_in(data, state.job_id, attempt)),
        ] {
            if let Some(path) = path.filter(|path| path.exists()) {
                fs::rename(&path, free_name(&path))?;
                found += 1;
            }
        }
        if found == 0 {
            break;
        }
        moved += found;
    }
    Ok(moved)
}

fn free_name(path: &Path) -> PathBuf {
    let named = |n: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(ENDING);
        if n > 1 {
            name.push(format!("-{n}"));
        }
        PathBuf::from(name)
    };
    let mut names = (1..=u32::MAX).map(named);
    names.find(|path| !path.exists()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{embedded, state};
    use fairlead_job::Spec;
    use fairlead_store::NewJob;

    #[tokio::test]
    async fn files_of_attempts_to_come_make_way_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let store = embedded(&folder);
        let data = folder.path();
        let mut expected = 0;
        for (n, stage, attempts, moved) in [
            (1, Stage::Submit, 1, 2),
            (2, Stage::Submit, 3, 6),
            (3, Stage::Running, 2, 2),
            (4, Stage::Finish, 1, 0),
        ] {
            let mut job = state(n);
            job.stage = stage;
            job.ready = false;
            job.result_root = format!("/result/s/2026-11-21/dc/{}", job.job_id);
            for attempt in 1..=attempts {
                let root = attempt_root(&job.result_root, job.attempt, attempt);
                fs::create_dir_all(folder_in(data, &root).unwrap()).unwrap();
                let log = log_in(data, job.job_id, attempt);
                fs::create_dir_all(log.parent().unwrap()).unwrap();
                fs::write(log, "").unwrap();
            }
            let body = Spec::new().into();
            let taken = store.submit(vec![NewJob { state: job, body }]).await;
            assert!(taken[0].is_ok(), "{taken:?}");
            expected += moved;
        }
        assert_eq!(set_aside(store.as_ref(), data).await.unwrap(), expected);
        assert_eq!(set_aside(store.as_ref(), data).await.unwrap(), 0);
        let job = state(1);
        let log = log_in(data, job.job_id, 1);
        assert!(!log.exists());
        fs::write(&log, "again").unwrap();
        assert_eq!(set_aside(store.as_ref(), data).await.unwrap(), 1);
        let kept = fs::read_to_string(free_name(&log).with_extension("before-restore-2"));
        assert_eq!(kept.unwrap(), "again");
    }
}
