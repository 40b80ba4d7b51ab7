//! Copies of a store: recognizes incomplete ones, makes backups, and restores them.
//!
//! While a store is open, its newest writes are in a log beside the file. A copy of the file alone lacks them and looks
//! complete. So the file has a mark while it is open. A file with the mark and without a log is opened only if the user
//! confirms.

use std::{
    fs::{self, File},
    io::{ErrorKind, Read},
    path::{Path, PathBuf},
};

use rusqlite::{Connection, OpenFlags, OptionalExtension};
use tempfile::NamedTempFile;

use super::{
    folder::{DB_FILE, as_uri, log_of, take_lock, unusable},
    pairs,
};
use crate::StoreError;

/// Key of the mark among the numbers of `meta`. It is not 0 while the store is open.
const OPEN: &str = "open";
/// Position of the log version in a SQLite file: both bytes are 2 with a write-ahead log.
const LOG_VERSIONS: std::ops::Range<usize> = 18..20;

/// Marks the store as open in the file itself: the log is written back.
pub(super) fn mark_open(conn: &Connection) -> rusqlite::Result<()> {
    set_mark(conn, true)?;
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    pairs::begin_log(conn)
}

/// Clears the mark. The close that follows writes the log back.
pub(super) fn mark_closed(conn: &Connection) -> rusqlite::Result<()> {
    set_mark(conn, false)
}

fn set_mark(conn: &Connection, is_open: bool) -> rusqlite::Result<()> {
    let set = "INSERT INTO meta (key, value) VALUES (?1, ?2)
        ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    conn.execute(set, (OPEN, i64::from(is_open))).map(drop)
}

/// Refuses a file that was copied from an open store without its log.
pub(super) fn refuse_part(path: &Path, dir: &Path) -> Result<(), StoreError> {
    if !is_part(path)? {
        return Ok(());
    }
    let (shown, log) = (path.display(), log_of(path));
    Err(StoreError::Unusable {
        reason: format!(
            "{shown} was copied from an open store without its log {}: the newest jobs and states are not in it",
            log.display()
        ),
        hint: format!(
            "copy both files of a stopped scheduler, or take a backup: fairlead backup; to go on without what is missing: \
             fairlead restore --as-it-is {shown} --data {}",
            dir.display()
        ),
    })
}

/// Refuses a file and a log that were copied one after the other from an open store. No process may have it open.
pub(super) fn refuse_mismatch(path: &Path, dir: &Path) -> Result<(), StoreError> {
    let Some(what) = pairs::mismatch(path) else {
        return Ok(());
    };
    let shown = path.display();
    Err(StoreError::Unusable {
        reason: format!(
            "{shown} and its log were copied at different moments from an open store: {what}, so jobs and states are missing"
        ),
        hint: format!(
            "copy both files of a stopped scheduler, or take a backup: fairlead backup; to go on without what is missing: \
             fairlead restore --as-it-is {shown} --data {}, and then: fairlead check",
            dir.display()
        ),
    })
}

/// Returns true if a file has the mark, uses a log, and has no log beside it.
fn is_part(path: &Path) -> Result<bool, StoreError> {
    if log_of(path).exists() {
        return Ok(false);
    }
    let mut head = [0_u8; 100];
    match File::open(path).and_then(|mut file| file.read_exact(&mut head)) {
        Ok(()) => {}
        // No file, or an empty one: a new store.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::UnexpectedEof) => {
            return Ok(false);
        }
        Err(error) => return Err(cannot("read", path, error)),
    }
    if head.get(LOG_VERSIONS) != Some(&[2, 2]) {
        return Ok(false);
    }
    // A file that is not a readable store is reported when it is opened.
    Ok(mark_of(path).is_ok_and(|mark| mark.is_some_and(|mark| mark != 0)))
}

/// Returns the mark in the file itself. Creates no log beside it.
fn mark_of(path: &Path) -> rusqlite::Result<Option<i64>> {
    let conn = Connection::open_with_flags(
        as_uri(path),
        OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    let found = conn.query_row("SELECT value FROM meta WHERE key = ?1", [OPEN], |row| {
        row.get(0)
    });
    found.optional()
}

/// Copies the store in `dir` into one new file, also while a scheduler has it open. The copy is consistent.
///
/// # Errors
/// Fails if there is no store, if it cannot be read, or if the file exists or cannot be written.
pub fn backup(dir: &Path, to: &Path) -> Result<(), StoreError> {
    let path = dir.join(DB_FILE);
    if !path.exists() {
        return Err(StoreError::Unusable {
            reason: format!("{} has no store", dir.display()),
            hint: "name the --data folder of the scheduler".to_owned(),
        });
    }
    refuse_part(&path, dir)?;
    if to.exists() {
        return Err(exists(to));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    name(copied(&path.to_string_lossy(), flags, &path, to)?, to)
}

/// Options of a restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RestoreOptions {
    /// True if a copy that lacks its newest states is accepted.
    pub as_it_is: bool,
    /// True if the folder may have a store, which is kept beside the new one.
    pub replace: bool,
}

/// Puts a copy in place of a store in `dir`. Returns the path of the replaced store.
///
/// # Errors
/// Fails if a scheduler uses the folder, or if it has a store that must not be replaced. Fails if the copy is invalid
/// or lacks its newest states.
pub fn restore(
    copy: &Path,
    dir: &Path,
    options: RestoreOptions,
) -> Result<Option<PathBuf>, StoreError> {
    fs::create_dir_all(dir).map_err(|error| cannot("make folder", dir, error))?;
    let _lock = take_lock(dir)?;
    let path = dir.join(DB_FILE);
    if !options.as_it_is {
        refuse_part(copy, dir)?;
        refuse_mismatch(copy, dir)?;
    }
    if is_same(copy, &path) {
        return confirm(&path);
    }
    let has_store = path.exists() || log_of(&path).exists();
    if has_store && !options.replace {
        return Err(StoreError::Unusable {
            reason: format!("{} already has a store", dir.display()),
            hint:
                "name another --data folder; --replace keeps the present store beside the new one"
                    .to_owned(),
        });
    }
    let (from, flags) = to_read(copy);
    let new = copied(&from, flags, copy, &path)?;
    if !has_store {
        name(new, &path)?;
        return Ok(None);
    }
    let replaced = set_aside(&path)?;
    let put = new
        .persist(&path)
        .map_err(|error| cannot("write", &path, error))?;
    drop(put);
    sync_name(&path)?;
    Ok(Some(replaced))
}

/// Confirms the present store, although it may lack states.
fn confirm(path: &Path) -> Result<Option<PathBuf>, StoreError> {
    let broken = |error: rusqlite::Error| cannot("open", path, error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags).map_err(broken)?;
    mark_closed(&conn).map_err(broken)?;
    Ok(None)
}

/// Keeps a store and its log under a free name: `fairlead.db.replaced-1`, `-2` and so on. The file also keeps its own
/// name until another file takes that. A start in between finds a store without its log, and refuses it.
fn set_aside(path: &Path) -> Result<PathBuf, StoreError> {
    let named = |n: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".replaced-{n}"));
        PathBuf::from(name)
    };
    let is_free = |to: &PathBuf| !to.exists() && !log_of(to).exists();
    let to = (1..=u32::MAX).map(named).find(is_free).unwrap_or_default();
    let there = |done: std::io::Result<()>, from: &Path| match done {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(cannot("keep", from, error)),
        _ => Ok(()),
    };
    there(fs::hard_link(path, &to), path)?;
    let log = log_of(path);
    there(fs::rename(&log, log_of(&to)), &log)?;
    // The index of a log is made anew from it.
    let mut index = path.as_os_str().to_owned();
    index.push("-shm");
    let _ = fs::remove_file(index);
    Ok(to)
}

/// Returns the path or URI and the flags with which SQLite opens a file read-only. A file without a log is read
/// without one.
pub(super) fn to_read(path: &Path) -> (String, OpenFlags) {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if log_of(path).exists() {
        (path.to_string_lossy().into_owned(), flags)
    } else {
        (as_uri(path), flags | OpenFlags::SQLITE_OPEN_URI)
    }
}

fn is_same(a: &Path, b: &Path) -> bool {
    match (fs::canonicalize(a), fs::canonicalize(b)) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

fn cannot(what: &str, path: &Path, error: impl std::fmt::Display) -> StoreError {
    unusable(path, format!("cannot {what} {}: {error}", path.display()))
}

/// Writes a whole database into a new file beside `to`, as a closed store. The file has no name until it is complete,
/// and disappears if that fails.
fn copied(
    from: &str,
    flags: OpenFlags,
    shown: &Path,
    to: &Path,
) -> Result<NamedTempFile, StoreError> {
    let conn =
        Connection::open_with_flags(from, flags).map_err(|error| cannot("open", shown, error))?;
    // It must be a store of ours before anything is made of it.
    conn.query_row("SELECT value FROM meta WHERE key = 'seq'", [], |_| Ok(()))
        .map_err(|error| cannot("read as a store", shown, error))?;
    let mut prefix = to.file_name().unwrap_or_default().to_owned();
    prefix.push(".part-");
    // Only its owner reads it.
    let part = tempfile::Builder::new()
        .prefix(&prefix)
        .tempfile_in(folder_of(to))
        .map_err(|error| cannot("write", to, error))?;
    let broken = |error: rusqlite::Error| cannot("write", to, error);
    conn.execute("VACUUM INTO ?1", [part.path().to_string_lossy()])
        .map_err(broken)?;
    let copy = Connection::open(part.path()).map_err(broken)?;
    mark_closed(&copy).map_err(broken)?;
    copy.close().map_err(|(_, error)| broken(error))?;
    let synced = part.as_file().sync_all();
    synced.map_err(|error| cannot("write", to, error))?;
    Ok(part)
}

/// Gives a complete file its name, which no other file may have.
fn name(part: NamedTempFile, to: &Path) -> Result<(), StoreError> {
    part.persist_noclobber(to)
        .map_err(|error| match error.error.kind() {
            ErrorKind::AlreadyExists => exists(to),
            _ => cannot("write", to, error.error),
        })?;
    sync_name(to)
}

/// Syncs the folder, so that the name of a file survives a power cut.
fn sync_name(to: &Path) -> Result<(), StoreError> {
    let synced = File::open(folder_of(to)).and_then(|folder| folder.sync_all());
    synced.map_err(|error| cannot("write", to, error))
}

fn exists(to: &Path) -> StoreError {
    StoreError::Unusable {
        reason: format!("{} already exists", to.display()),
        hint: "name a new file".to_owned(),
    }
}

/// The folder that a file is in.
fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    folder.unwrap_or(Path::new("."))
}
