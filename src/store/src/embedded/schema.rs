//! The tables, their version, and the steps between versions.
//!
//! `states` and `bodies` hold the truth as JSON. `jobs` and `wait_keys` are derived from `states` for searches. Both
//! change in the same transaction as the state.

use std::path::Path;

use rusqlite::{Connection, ErrorCode};

use super::folder::unusable;
use crate::StoreError;

/// Marks the file as ours (`FLRD`).
const APPLICATION_ID: i64 = 0x464c_5244;
/// Oldest layout that is read. A new file begins with it.
const FIRST: usize = 14;
/// Layouts from the first one on. Each but the first leads from the one before it. Never edit one.
const LAYOUTS: &[&str] = &[LAYOUT_14];
/// The newest layout.
const NEWEST: usize = FIRST + LAYOUTS.len() - 1;

/// - Changes are read in the order of `states.seq`.
/// - Most jobs are in the queue of their own account: an index of them leaves out the queue.
/// - The words of a job are a line each. NULL: an older version stored no words.
/// - `content` has the ids that jobs name: a collection asks if any job names one. Most jobs name none, and have no
///   row.
const LAYOUT_14: &str = "
    CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
    INSERT INTO meta VALUES ('seq', 0);
    CREATE TABLE states (job_id INTEGER PRIMARY KEY, seq INTEGER NOT NULL, state TEXT NOT NULL);
    CREATE INDEX states_seq ON states (seq);
    CREATE TABLE bodies (job_id INTEGER PRIMARY KEY, body TEXT NOT NULL);
    CREATE TABLE jobs (
        job_id INTEGER PRIMARY KEY, waiting INTEGER NOT NULL, ready INTEGER NOT NULL,
        rank INTEGER NOT NULL,
        stage TEXT NOT NULL, health TEXT NOT NULL, account TEXT NOT NULL, queue TEXT NOT NULL,
        host TEXT NOT NULL, suite TEXT NOT NULL, submit_id TEXT NOT NULL, group_id TEXT NOT NULL,
        tbox_group TEXT NOT NULL, submit_ms INTEGER NOT NULL,
        alarm_ms INTEGER NOT NULL DEFAULT 0, sequence TEXT NOT NULL DEFAULT '',
        used_ms INTEGER NOT NULL DEFAULT 0, used_at_ms INTEGER NOT NULL DEFAULT 0,
        fingerprint TEXT NOT NULL DEFAULT '', queue_label TEXT NOT NULL DEFAULT '',
        crash_signature TEXT NOT NULL DEFAULT '', shard_of INTEGER NOT NULL DEFAULT 0,
        shards_n INTEGER NOT NULL DEFAULT 0, words TEXT, ready_ms INTEGER NOT NULL DEFAULT 0);
    CREATE INDEX jobs_stage ON jobs (stage);
    CREATE INDEX jobs_account ON jobs (account);
    CREATE INDEX jobs_queue ON jobs (queue) WHERE queue <> account;
    CREATE INDEX jobs_host ON jobs (host) WHERE host <> '';
    CREATE INDEX jobs_submit_id ON jobs (submit_id) WHERE submit_id <> '';
    CREATE INDEX jobs_group_id ON jobs (group_id) WHERE group_id <> '';
    CREATE INDEX jobs_alarm ON jobs (alarm_ms, job_id) WHERE alarm_ms > 0;
    CREATE INDEX jobs_sequence ON jobs (sequence, job_id) WHERE sequence <> '';
    CREATE INDEX jobs_used ON jobs (used_at_ms) WHERE used_at_ms > 0;
    CREATE INDEX jobs_fingerprint ON jobs (fingerprint) WHERE fingerprint <> '';
    CREATE INDEX jobs_queue_label ON jobs (queue_label) WHERE queue_label <> '';
    CREATE INDEX jobs_crash_signature ON jobs (crash_signature) WHERE crash_signature <> '';
    CREATE INDEX jobs_shard_of ON jobs (shard_of, job_id) WHERE shard_of > 0;
    CREATE INDEX wait_all ON jobs (rank) WHERE waiting = 1;
    CREATE INDEX wait_own ON jobs (account, rank) WHERE waiting = 1 AND queue = account;
    CREATE INDEX wait_account ON jobs (account, rank) WHERE waiting = 1 AND queue <> account;
    CREATE INDEX wait_queue ON jobs (queue, rank) WHERE waiting = 1 AND queue <> account;
    CREATE TABLE shapes (shape INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
    CREATE TABLE wait_keys (
        host_key TEXT NOT NULL, rank INTEGER NOT NULL, job_id INTEGER NOT NULL,
        queue TEXT NOT NULL, account TEXT NOT NULL, shape INTEGER NOT NULL,
        PRIMARY KEY (host_key, rank, job_id)) WITHOUT ROWID;
    CREATE INDEX wait_cells ON wait_keys (host_key, queue, account, shape, rank, job_id);
    CREATE TABLE content (id TEXT NOT NULL, job_id INTEGER NOT NULL, PRIMARY KEY (id, job_id)) WITHOUT ROWID;
    CREATE INDEX content_job ON content (job_id);
    CREATE TABLE docs (
        kind TEXT NOT NULL, id TEXT NOT NULL, seq INTEGER NOT NULL, body TEXT NOT NULL,
        at_ms INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (kind, id)) WITHOUT ROWID;
    CREATE INDEX docs_at ON docs (kind, at_ms, id) WHERE at_ms > 0;
    CREATE TABLE events (
        event INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, who TEXT NOT NULL, what TEXT NOT NULL,
        subject TEXT NOT NULL, detail TEXT NOT NULL);
    CREATE INDEX events_at ON events (at_ms);
";

/// Brings the file to the newest layout, or fails with the reason.
pub(super) fn migrate(conn: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let broken = |error: rusqlite::Error| broken(path, &error);
    let missing = missing_layouts(conn, path)?;
    if missing.is_empty() {
        return Ok(());
    }
    let tx = conn.transaction().map_err(broken)?;
    for layout in missing {
        tx.execute_batch(layout).map_err(broken)?;
    }
    tx.pragma_update(None, "application_id", APPLICATION_ID)
        .map_err(broken)?;
    tx.pragma_update(
        None,
        "user_version",
        i64::try_from(NEWEST).unwrap_or(i64::MAX),
    )
    .map_err(broken)?;
    tx.commit().map_err(broken)
}

fn broken(path: &Path, error: &rusqlite::Error) -> StoreError {
    let file = path.display();
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => StoreError::Unusable {
            reason: format!("{file} cannot be read as a store: {error}"),
            hint: "restore a backup, or give another --data folder".to_owned(),
        },
        _ => unusable(path, format!("{file} cannot be opened as a store: {error}")),
    }
}

/// Refuses a file that is not of the newest layout. Only a writer can migrate it.
pub(super) fn is_newest(conn: &Connection, path: &Path) -> Result<(), StoreError> {
    if missing_layouts(conn, path)?.is_empty() {
        return Ok(());
    }
    Err(StoreError::Unusable {
        reason: format!("{} is no store of this version", path.display()),
        hint: format!(
            "use the version that wrote it; a start of the scheduler brings it up to format {NEWEST}"
        ),
    })
}

/// Returns the layouts that lead from that of a file to the newest.
fn missing_layouts(conn: &Connection, path: &Path) -> Result<&'static [&'static str], StoreError> {
    let file = path.display();
    let broken = |error: rusqlite::Error| broken(path, &error);
    let id: i64 = conn
        .pragma_query_value(None, "application_id", |row| row.get(0))
        .map_err(broken)?;
    let version: i64 = conn
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(broken)?;
    let tables: i64 = conn
        .query_row("SELECT COUNT(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(broken)?;
    if id != APPLICATION_ID && (version != 0 || tables != 0) {
        return Err(StoreError::Unusable {
            reason: format!("{file} is another program's database"),
            hint: "give another --data folder".to_owned(),
        });
    }
    let version = usize::try_from(version).unwrap_or(usize::MAX);
    let after = match version {
        0 => Some(0),
        version => version.checked_sub(FIRST).map(|n| n + 1),
    };
    after.and_then(|after| LAYOUTS.get(after..)).ok_or_else(|| {
        let (age, known) = if version < FIRST {
            ("older", format!("from {FIRST} on"))
        } else {
            ("newer", format!("up to {NEWEST}"))
        };
        StoreError::Unusable {
            reason: format!("{file} has format {version}, this version knows formats {known}"),
            hint: format!("start the {age} fairlead that wrote it"),
        }
    })
}
