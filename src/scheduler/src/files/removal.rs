//! Removes results and logs from a data folder.

use std::{fs, io, path::Path};

use crate::files::places::JobFiles;

/// What was removed, or would be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Removed {
    /// Folders of results.
    pub(crate) folders: u64,
    /// Logs.
    pub(crate) logs: u64,
    /// Bytes of all their files.
    pub(crate) bytes: u64,
}

/// Removes these files of jobs below a data folder, and the folders above them that are empty then. `dry_run`: only
/// counts. Blocks.
pub(crate) fn remove_files(data: &Path, all: &[JobFiles], dry_run: bool) -> io::Result<Removed> {
    let mut removed = Removed::default();
    for files in all {
        let path = &files.path;
        let about = match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            about => about?,
        };
        if about.is_dir() {
            removed.folders += 1;
            removed.bytes += bytes_in(path)?;
        } else {
            removed.logs += 1;
            removed.bytes += about.len();
        }
        if dry_run {
            continue;
        }
        if about.is_dir() {
            fs::remove_dir_all(path)?;
        } else {
            fs::remove_file(path)?;
        }
        // Folders of dates and groups that are empty now. Those of suites stay: new jobs make folders in them.
        let is_below_suite = |above: &&Path| above.ancestors().nth(2) != Some(data);
        let above = path.ancestors().skip(1);
        for folder in above.take_while(is_below_suite) {
            if fs::remove_dir(folder).is_err() {
                break;
            }
        }
    }
    Ok(removed)
}

/// Bytes of all files below a folder.
fn bytes_in(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let about = fs::symlink_metadata(entry.path())?;
        bytes += if about.is_dir() {
            bytes_in(&entry.path())?
        } else {
            about.len()
        };
    }
    Ok(bytes)
}
