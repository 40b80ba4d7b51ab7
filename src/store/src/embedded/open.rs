//! Opening: the folder, the lock, the file, the connections.
//!
//! Invariant: nobody touches the database without holding the lock file. The kernel releases the lock
//! when the process ends, however it ends.

use std::{
    fs::{DirBuilder, File, OpenOptions, TryLockError},
    io::{Read, Seek, SeekFrom, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags};

use super::{copies, schema};
use crate::StoreError;

/// The database, in the folder given.
pub(super) const DB_FILE: &str = "fairlead.db";
/// The lock, beside it. It holds the pid of its owner, for people.
const LOCK_FILE: &str = "fairlead.lock";
/// With less room than this on its file system a store cannot be opened, bytes.
const ROOM_MIN: u64 = 1 << 20;
/// How long a connection waits for SQLite's own locks (an operator's tool may hold one).
pub(super) const BUSY: Duration = Duration::from_secs(10);
/// How many connections read at once.
pub(super) const READERS: usize = 4;

/// Everything that an open store consists of.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) lock: File,
    pub(super) writer: Connection,
    pub(super) readers: Vec<Connection>,
    /// The write-ahead log.
    pub(super) log: PathBuf,
}

/// Opens or creates the store in `dir`.
pub(super) fn open(dir: &Path) -> Result<Opened, StoreError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(|error| {
        unusable(
            dir,
            format!("cannot make folder {}: {error}", dir.display()),
        )
    })?;
    let lock = take_lock(dir)?;
    let path = dir.join(DB_FILE);
    copies::refuse_part(&path, dir)?;
    create_private(&path)?;
    let shown = path.display().to_string();
    let broken = |error: rusqlite::Error| unusable(dir, format!("cannot open {shown}: {error}"));
    let mut writer = connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE, 65_536).map_err(broken)?;
    schema::migrate(&mut writer, &path)?;
    let mode: String = writer
        .pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))
        .map_err(broken)?;
    if mode != "wal" {
        return Err(unusable(
            dir,
            format!(
                "{shown}: the file system does not allow a write-ahead log (journal mode '{mode}')"
            ),
        ));
    }
    copies::mark_open(&writer).map_err(broken)?;
    let readers = (0..READERS)
        .map(|_| connect(&path, OpenFlags::SQLITE_OPEN_READ_ONLY, 16_384))
        .collect::<Result<_, _>>()
        .map_err(broken)?;
    Ok(Opened {
        lock,
        writer,
        readers,
        log: copies::log_of(&path),
    })
}

/// Something at this path cannot be used. A full disk is named, whatever the error says: not all of them do.
pub(super) fn unusable(path: &Path, reason: String) -> StoreError {
    // What is not there yet is to be made in the folder above.
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

/// The pid is only a courtesy: the owner may not have written it yet.
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

/// The file holds hashed tokens and the sealing key: only its owner reads it. SQLite gives the log
/// beside it the same rights.
fn create_private(path: &PathBuf) -> Result<(), StoreError> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    options
        .open(path)
        .map(drop)
        .map_err(|error| unusable(path, format!("cannot open {}: {error}", path.display())))
}

fn connect(path: &Path, access: OpenFlags, cache_kib: i64) -> rusqlite::Result<Connection> {
    let conn = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.busy_timeout(BUSY)?;
    conn.set_prepared_statement_cache_capacity(64);
    // FULL: a commit is on disk before it is acknowledged, also through a power cut.
    conn.pragma_update(None, "synchronous", "full")?;
    conn.pragma_update(None, "temp_store", "memory")?;
    conn.pragma_update(None, "cache_size", -cache_kib)?;
    // Pages of the log before it is written back: index pages that change again and again are written
    // once for all these changes.
    conn.pragma_update(None, "wal_autocheckpoint", 8_000)?;
    conn.pragma_update(None, "journal_size_limit", 64 << 20)?;
    Ok(conn)
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
