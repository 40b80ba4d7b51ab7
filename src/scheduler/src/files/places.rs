//! Where files of jobs lie below a data folder, and which jobs have some. No other module names such paths.

use std::{
    fs, io,
    path::{Component, Path, PathBuf},
};

use fairlead_job::JobId;

use fairlead_base::errors::{FileError, PathProblem};

/// Longest name of a file or folder, bytes: what file systems take.
const NAME_MAX: usize = 255;
/// Longest relative path of a result file, bytes.
const PATH_MAX: usize = 1024;

/// A path from a client, checked: relative, no `..`, no odd components.
pub(crate) fn checked(path: &str) -> Result<PathBuf, FileError> {
    let bad = |problem: PathProblem| {
        let shown: String = path.chars().take(80).collect();
        let shown = shown.escape_default().to_string();
        Err(FileError::BadPath { shown, problem })
    };
    if path.len() > PATH_MAX {
        return bad(PathProblem::TooLong);
    }
    if path.contains('\0') || path.contains('\\') {
        return bad(PathProblem::OddByte);
    }
    if path.split('/').any(|name| name.len() > NAME_MAX) {
        return bad(PathProblem::NameTooLong);
    }
    let path = Path::new(path.trim_start_matches('/'));
    if path
        .components()
        .all(|component| matches!(component, Component::Normal(_)))
        && path.components().next().is_some()
    {
        Ok(path.to_owned())
    } else {
        bad(PathProblem::Leaves)
    }
}

/// The folder of all results.
pub(crate) fn results_in(data: &Path) -> PathBuf {
    data.join("result")
}

fn logs_in(data: &Path) -> PathBuf {
    data.join("logs")
}

/// The name of the log of an attempt among all logs.
pub(crate) fn log_name(id: JobId, attempt: u16) -> String {
    format!("{}/{id}.{attempt}.log", id.month())
}

/// The log of an attempt.
pub(crate) fn log_in(data: &Path, id: JobId, attempt: u16) -> PathBuf {
    logs_in(data).join(log_name(id, attempt))
}

/// The folder of results that a state names.
pub(crate) fn folder_in(data: &Path, root: &str) -> Result<PathBuf, FileError> {
    let root = root.strip_prefix("/result/").unwrap_or(root);
    Ok(results_in(data).join(checked(root)?))
}

/// What lies there for an attempt: its folder of results, or its log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JobFiles {
    pub(crate) id: JobId,
    pub(crate) attempt: u16,
    pub(crate) path: PathBuf,
}

/// Folders between a date and a job: the group of testboxes, and the root file system if the job named one.
pub(super) const LEVELS_MAX: u32 = 3;

/// All folders of results, in the order of their suites and dates, to `visit`, which may end the walk with an error.
pub(crate) fn each_result<E: From<io::Error>>(
    data: &Path,
    mut visit: impl FnMut(JobFiles) -> Result<(), E>,
) -> Result<(), E> {
    for suite in folders(&results_in(data))? {
        for date in folders(&suite)? {
            below(&date, LEVELS_MAX, &mut visit)?;
        }
    }
    Ok(())
}

fn below<E: From<io::Error>>(
    folder: &Path,
    levels: u32,
    visit: &mut impl FnMut(JobFiles) -> Result<(), E>,
) -> Result<(), E> {
    for path in folders(folder)? {
        if let Some((id, attempt)) = name_of(&path).and_then(of_folder) {
            visit(JobFiles { id, attempt, path })?;
        } else if levels > 1 {
            below(&path, levels - 1, visit)?;
        }
    }
    Ok(())
}

/// All logs, to `visit`.
pub(crate) fn each_log<E: From<io::Error>>(
    data: &Path,
    mut visit: impl FnMut(JobFiles) -> Result<(), E>,
) -> Result<(), E> {
    for month in folders(&logs_in(data))? {
        for path in entries(&month)? {
            if let Some((id, attempt)) = name_of(&path).and_then(of_log) {
                visit(JobFiles { id, attempt, path })?;
            }
        }
    }
    Ok(())
}

fn name_of(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

/// Digits of an id, as folders and logs have them.
const ID_DIGITS: usize = 19;

/// The job and the attempt of a folder of results of this name.
pub(super) fn of_folder(name: &str) -> Option<(JobId, u16)> {
    let (id, attempt) = match name.split_once('.') {
        Some((id, attempt)) => (id, attempt.parse().ok().filter(|attempt| *attempt > 1)?),
        None => (name, 1),
    };
    (id.len() == ID_DIGITS).then_some(())?;
    Some((id.parse().ok()?, attempt))
}

/// The job and the attempt of a log of this name.
pub(super) fn of_log(name: &str) -> Option<(JobId, u16)> {
    let (id, attempt) = name.strip_suffix(".log")?.split_once('.')?;
    (id.len() == ID_DIGITS).then_some(())?;
    Some((id.parse().ok()?, attempt.parse().ok()?))
}

/// What is in a folder, sorted; nothing if there is none.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let read = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read?,
    };
    let paths: io::Result<Vec<PathBuf>> = read.map(|entry| Ok(entry?.path())).collect();
    let mut paths = paths?;
    paths.sort_unstable();
    Ok(paths)
}

/// Links are not followed.
fn folders(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = entries(folder)?;
    paths.retain(|path| fs::symlink_metadata(path).is_ok_and(|about| about.is_dir()));
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_job_and_the_attempt() {
        let id = JobId::new(2_611_210_236_110_700_000);
        assert_eq!(of_folder("2611210236110700000"), Some((id, 1)));
        assert_eq!(of_folder("2611210236110700000.3"), Some((id, 3)));
        assert_eq!(of_log("2611210236110700000.1.log"), Some((id, 1)));
        for other in [
            "2611210236110700000.before-restore",
            "2611210236110700000.1",
            "261121",
            "dc-8g",
            "",
        ] {
            assert_eq!(of_folder(other), None, "{other}");
        }
        assert_eq!(of_log("2611210236110700000.1.log.before-restore"), None);
    }

    #[test]
    fn all_files_are_found_where_they_are_put() {
        let data = tempfile::tempdir().unwrap();
        let id = JobId::new(2_611_210_236_110_700_000);
        let roots = [
            format!("/result/a/2026-11-21/dc-8g/{id}"),
            format!("/result/a/2026-11-21/dc-8g/os-22.03-any/{id}.2"),
        ];
        for root in &roots {
            fs::create_dir_all(folder_in(data.path(), root).unwrap().join("inner/deep")).unwrap();
        }
        let log = log_in(data.path(), id, 2);
        fs::create_dir_all(log.parent().unwrap()).unwrap();
        fs::write(&log, "x").unwrap();
        let (mut results, mut logs) = (Vec::new(), Vec::new());
        each_result(data.path(), |files| {
            results.push((files.id, files.attempt));
            io::Result::Ok(())
        })
        .unwrap();
        each_log(data.path(), |files| {
            logs.push((files.id, files.attempt));
            io::Result::Ok(())
        })
        .unwrap();
        assert_eq!(results, [(id, 1), (id, 2)]);
        assert_eq!(logs, [(id, 2)]);
    }

    #[test]
    fn paths_cannot_leave() {
        for bad in [
            "",
            "/",
            "..",
            "a/../b",
            "a/./../..",
            "x\0",
            "a\\b",
            &format!("a/{}", "x".repeat(256)),
            &"x".repeat(2000),
        ] {
            assert!(checked(bad).is_err(), "{bad:?}");
        }
        assert_eq!(checked("/a/b.txt").unwrap(), Path::new("a/b.txt"));
    }
}
