//! Opens the store: folder, lock, file, connections.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
};

use rusqlite::{Connection, OpenFlags};

use super::{
    copies,
    folder::{BUSY, DB_FILE, log_of, take_lock, unusable},
    log::Log,
    schema,
};
use crate::StoreError;

/// Number of connections that read at once.
pub(super) const READERS: usize = 4;

/// Parts of an open store.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) lock: File,
    pub(super) writer: Connection,
    pub(super) readers: Vec<Connection>,
    pub(super) log: Log,
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
    copies::refuse_mismatch(&path, dir)?;
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
        log: Log::new(log_of(&path)),
    })
}

/// Opens a store, or a copy of one, read-only, also while a scheduler has it open. `path`: the folder or the file.
pub(super) fn open_to_read(path: &Path) -> Result<Vec<Connection>, StoreError> {
    let file = if path.is_dir() {
        path.join(DB_FILE)
    } else {
        path.to_owned()
    };
    if !file.exists() {
        return Err(StoreError::Unusable {
            reason: format!("there is no store {}", file.display()),
            hint: "name the --data folder of the scheduler, or a backup".to_owned(),
        });
    }
    copies::refuse_part(&file, path)?;
    let shown = file.display().to_string();
    let broken = |error: rusqlite::Error| unusable(path, format!("cannot open {shown}: {error}"));
    let (from, flags) = copies::to_read(&file);
    let readers: Vec<Connection> = (0..READERS)
        .map(|_| {
            let conn = Connection::open_with_flags(&from, flags)?;
            conn.busy_timeout(BUSY)?;
            Ok(conn)
        })
        .collect::<Result<_, _>>()
        .map_err(broken)?;
    for conn in readers.iter().take(1) {
        schema::is_newest(conn, &file)?;
    }
    Ok(readers)
}

/// Creates the file so that only its owner can read it, because it holds hashed tokens and the sealing key. SQLite
/// gives the log beside it the same rights.
fn create_private(path: &Path) -> Result<(), StoreError> {
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
