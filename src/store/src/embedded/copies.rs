//! Copies of a store: recognizes incomplete ones, makes backups, and restores them.
//!
//! While a store is open, its newest writes are in a log beside the file. A copy of the file alone lacks them and looks
//! complete. So the file has a mark while it is open. A file with the mark and without a log is opened only if the user
//! confirms.

use std::{
    fs::{self, File, OpenOptions},
    io::{ErrorKind, Read},
    path::{Path, PathBuf},
};

use rusqlite::{Connection, OpenFlags, OptionalExtension};

use super::folder::{DB_FILE, take_lock, unusable};
use crate::StoreError;

/// The mark, among the numbers of `meta`: not 0 while the store is open.
const OPEN: &str = "open";
/// Where SQLite writes which log a file uses: both bytes are 2 with a write-ahead log.
const LOG_VERSIONS: std::ops::Range<usize> = 18..20;

/// The log beside a database.
pub(super) fn log_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    PathBuf::from(name)
}

/// Marks the store as open, in the file itself: the log is written back.
pub(super) fn mark_open(conn: &Connection) -> rusqlite::Result<()> {
    set_mark(conn, true)?;
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

/// Takes the mark back: what follows is the close, which writes the log back.
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

/// Whether a file bears the mark, uses a log, and has none beside it.
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
    // What cannot be read as a store is told by who opens it.
    Ok(mark_of(path).is_ok_and(|mark| mark.is_some_and(|mark| mark != 0)))
}

/// The mark in the file itself. Makes no log beside it.
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

/// The path as SQLite's URI of a file that nobody changes meanwhile.
fn as_uri(path: &Path) -> String {
    let path = path.to_string_lossy();
    let escaped = path
        .replace('%', "%25")
        .replace('?', "%3f")
        .replace('#', "%23");
    format!("file:{escaped}?immutable=1")
}

/// Copies the store in `dir` into one new file, also while a scheduler has it open: all of one moment.
///
/// # Errors
/// There is no store, it cannot be read, or the file exists or cannot be written.
pub fn backup(dir: &Path, to: &Path) -> Result<(), StoreError> {
    let path = dir.join(DB_FILE);
    if !path.exists() {
        return Err(StoreError::Unusable {
            reason: format!("{} has no store", dir.display()),
            hint: "name the --data folder of the scheduler".to_owned(),
        });
    }
    refuse_part(&path, dir)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    copy_into(&path.to_string_lossy(), flags, &path, to)
}

/// Puts a copy in place of a store in `dir`, which must have none. `as_it_is`: also one that lacks its newest states.
///
/// # Errors
/// A scheduler uses the folder, it has a store, or the copy is none or lacks its newest states.
pub fn restore(copy: &Path, dir: &Path, as_it_is: bool) -> Result<(), StoreError> {
    fs::create_dir_all(dir).map_err(|error| cannot("make folder", dir, error))?;
    let _lock = take_lock(dir)?;
    let path = dir.join(DB_FILE);
    if !as_it_is {
        refuse_part(copy, dir)?;
    }
    let is_lone = !log_of(copy).exists();
    let broken = |error: rusqlite::Error| cannot("open", copy, error);
    if is_same(copy, &path) {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(&path, flags).map_err(broken)?;
        return mark_closed(&conn).map_err(broken);
    }
    if path.exists() {
        return Err(StoreError::Unusable {
            reason: format!("{} already has a store", dir.display()),
            hint: "move the store and its log away, or name another --data folder".to_owned(),
        });
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if is_lone {
        copy_into(
            &as_uri(copy),
            flags | OpenFlags::SQLITE_OPEN_URI,
            copy,
            &path,
        )
    } else {
        copy_into(&copy.to_string_lossy(), flags, copy, &path)
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

/// Writes all of a database into a new file, which is a closed store then. What was begun goes if it cannot be ended.
fn copy_into(from: &str, flags: OpenFlags, shown: &Path, to: &Path) -> Result<(), StoreError> {
    let conn =
        Connection::open_with_flags(from, flags).map_err(|error| cannot("open", shown, error))?;
    // It must be a store of ours before anything is made of it.
    conn.query_row("SELECT value FROM meta WHERE key = 'seq'", [], |_| Ok(()))
        .map_err(|error| cannot("read as a store", shown, error))?;
    create_new(to)?;
    let copied = conn
        .execute("VACUUM INTO ?1", [to.to_string_lossy()])
        .and_then(|_| Connection::open(to))
        .and_then(|copy| mark_closed(&copy))
        .map_err(|error| cannot("write", to, error))
        .and_then(|()| {
            let synced = File::open(to).and_then(|file| file.sync_all());
            synced.map_err(|error| cannot("write", to, error))
        });
    if copied.is_err() {
        // Half of a copy helps nobody.
        let _ = fs::remove_file(to);
    }
    copied
}

/// Makes an empty file that only its owner reads; one that is there is not touched.
fn create_new(to: &Path) -> Result<(), StoreError> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(to) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(StoreError::Unusable {
            reason: format!("{} already exists", to.display()),
            hint: "name a new file".to_owned(),
        }),
        Err(error) => Err(cannot("write", to, error)),
    }
}
