//! The write-ahead log beside the database: how long it may become, and when it is written back.
//!
//! SQLite starts anew at the beginning of the log when all of it is written back and nobody reads from it. So whoever
//! reads for long lets it grow. The writer then waits for readers a moment at each step, and writes nothing at the limit.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::Connection;

use super::{folder::BUSY, pairs::begin_log};

/// Length up to which an idle log stays as it is, bytes.
const IDLE_MAX: u64 = 1 << 20;
/// Length at which a log has readers that delay it, bytes. It exceeds the length that SQLite keeps of an emptied log.
const LONG: u64 = 96 << 20;
/// Growth after which the writer waits for these readers once more, bytes.
const STEP: u64 = 16 << 20;
/// Maximum length of the log, bytes. At this length nothing is written until the reader ends.
pub(super) const LOG_BYTES_MAX: u64 = 4 << 30;
/// Time that readers may delay each try.
const PATIENCE: Duration = Duration::from_millis(50);

/// The log of an open store.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    bytes_max: u64,
    /// Its length at the last try to empty it, bytes.
    tried: u64,
}

impl Log {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            bytes_max: LOG_BYTES_MAX,
            tried: 0,
        }
    }

    fn length(&self) -> u64 {
        fs::metadata(&self.path).map_or(0, |log| log.len())
    }

    /// Writes a long log back into the file, and empties it, when there is nothing else to do. Best effort: a present
    /// reader may prevent it.
    pub(super) fn shorten(&self, conn: &Connection) {
        if self.length() > IDLE_MAX {
            note(empty(conn));
        }
    }

    /// Waits a moment for readers of a long log before a write. Fails with the reason if the log is at its limit.
    pub(super) fn make_room(&mut self, conn: &Connection) -> Result<(), String> {
        let (length, long) = (self.length(), LONG.min(self.bytes_max));
        if length < long {
            self.tried = 0;
            return Ok(());
        }
        let is_full = length >= self.bytes_max;
        if !is_full && length < self.tried.saturating_add(STEP) {
            return Ok(());
        }
        self.tried = length;
        note(empty(conn));
        if is_full && self.length() >= self.bytes_max {
            return Err(said(&self.path, self.bytes_max));
        }
        Ok(())
    }

    /// Returns the same log with another limit.
    #[cfg(test)]
    pub(super) fn up_to(self, bytes_max: u64) -> Self {
        Self { bytes_max, ..self }
    }
}

fn said(path: &Path, bytes_max: u64) -> String {
    format!(
        "the log {} is at its limit of {} MB, because a program has read from the database since (hint: end the \
         backup or the sqlite3 that reads it)",
        path.display(),
        bytes_max >> 20
    )
}

fn empty(conn: &Connection) -> rusqlite::Result<()> {
    conn.busy_timeout(PATIENCE)?;
    let is_busy = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0));
    conn.busy_timeout(BUSY)?;
    if is_busy? {
        return Ok(());
    }
    begin_log(conn)
}

fn note(emptied: rusqlite::Result<()>) {
    if let Err(error) = emptied {
        tracing::debug!(%error, "the log of the embedded store is emptied later");
    }
}
