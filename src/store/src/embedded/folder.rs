//! The folder of a store: its files, its lock, and why it cannot be used.
//!
//! Invariant: the database is used only with the lock file held. The kernel releases the lock when the process ends, in
//! any way.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{Read, Seek, SeekFrom, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::StoreError;

/// The database, in the folder given.
pub(super) const DB_FILE: &str = "fairlead.db";
/// Lock file beside it. It holds the pid of its owner, for people.
const LOCK_FILE: &str = "fairlead.lock";
/// Time that a connection waits for SQLite's own locks (an operator's tool may hold one).
pub(super) const BUSY: Duration = Duration::from_secs(10);
/// Minimum free space of the file system for opening a store, bytes.
const ROOM_MIN: u64 = 1 << 20;

/// The log beside a database.
pub(super) fn log_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    PathBuf::from(name)
}

/// Returns the path as SQLite's URI of a file that does not change meanwhile.
pub(super) fn as_uri(path: &Path) -> String {
    let path = path.to_string_lossy();
    let escaped = path
        .replace('%', "%25")
        .replace('?', "%3f")
        .replace('#', "%23");
    format!("file:{escaped}?immutable=1")
}

/// Returns an error for a path that cannot be used. A full disk is named explicitly, because not all errors say so.
pub(super) fn unusable(path: &Path, reason: String) -> StoreError {
    // A missing folder is created in the folder above.
    let mut rooms = path.ancestors();
    let room = rooms.find_map(|path| rustix::fs::statvfs(path).ok());
    let free = room.map(|room| room.f_bavail.saturating_mul(room.f_frsize));
    unusable_with(path, reason, free)
}

fn unusable_with(path: &Path, reason: String, free: Option<u64>) -> StoreError {
    if let Some(free) = free.filter(|free| *free < ROOM_MIN) {
        let shown = path.display();
        return StoreError::Unusable {
            reason: format!(
                "{reason}: the disk is full, {} KB are free on the file system of {shown}",
                free >> 10
            ),
            hint: format!(
                "make room on the file system of {shown}, or give a --data folder on another disk"
            ),
        };
    }
    StoreError::Unusable {
        reason,
        hint: "give a --data folder on a local disk that this user can write to".to_owned(),
    }
}

/// Locks the folder for this process.
pub(super) fn take_lock(dir: &Path) -> Result<File, StoreError> {
    let path = &dir.join(LOCK_FILE);
    let shown = path.display();
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(|error| unusable(path, format!("cannot open {shown}: {error}")))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(locked(&mut file, path)),
        Err(TryLockError::Error(error)) => {
            return Err(unusable(path, format!("cannot lock {shown}: {error}")));
        }
    }
    write_pid(&mut file)
        .map_err(|error| unusable(path, format!("cannot write {shown}: {error}")))?;
    Ok(file)
}

fn write_pid(file: &mut File) -> std::io::Result<()> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    writeln!(file, "{}", std::process::id())
}

/// Returns the error for a locked folder. The pid is only a hint: the owner may not have written it yet.
fn locked(file: &mut File, path: &Path) -> StoreError {
    let mut text = String::new();
    let pid = match file.take(32).read_to_string(&mut text) {
        Ok(_) => text.trim().parse::<u32>().ok(),
        Err(_) => None,
    };
    let owner = pid.map_or_else(
        || "another process".to_owned(),
        |pid| format!("process {pid}"),
    );
    StoreError::Unusable {
        reason: format!("{} is locked by {owner}", path.display()),
        hint: "stop it, or give another --data folder: the embedded store serves one process"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_named() {
        let said = |free| unusable_with(Path::new("/lab"), "cannot open x".to_owned(), free);
        let full = said(Some(4096)).to_string();
        assert!(
            full.contains("cannot open x: the disk is full, 4 KB are free"),
            "{full}"
        );
        assert!(
            full.contains("make room on the file system of /lab"),
            "{full}"
        );
        for free in [None, Some(ROOM_MIN)] {
            let other = said(free).to_string();
            assert!(
                !other.contains("full") && other.contains("--data"),
                "{other}"
            );
        }
    }
}
