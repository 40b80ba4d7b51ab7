//! The tables, their version, and the migrations between versions.
//!
//! `states` and `bodies` hold the truth as JSON. `jobs` and `wait_keys` are derived from `states` for searches. Both
//! change in the same transaction as the state.

use std::path::Path;

use rusqlite::{Connection, ErrorCode};

use super::folder::unusable;
use crate::StoreError;

/// Marks the file as ours (`FLRD`).
const APPLICATION_ID: i64 = 0x464c_5244;
/// The newest layout, and how to get there: step n leads from version n to n + 1. Never edit a step.
const STEPS: &[&str] = &[
    STEP_1, STEP_2, STEP_3, STEP_4, STEP_5, STEP_6, STEP_7, STEP_8, STEP_9, STEP_10, STEP_11,
    STEP_12, STEP_13, STEP_14,
];

const STEP_1: &str = "
    CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
    INSERT INTO meta VALUES ('seq', 0);
    CREATE TABLE states (job_id INTEGER PRIMARY KEY, seq INTEGER NOT NULL, state TEXT NOT NULL);
    CREATE TABLE bodies (job_id INTEGER PRIMARY KEY, body TEXT NOT NULL);
    CREATE TABLE jobs (
        job_id INTEGER PRIMARY KEY, waiting INTEGER NOT NULL, ready INTEGER NOT NULL,
        rank INTEGER NOT NULL,
        stage TEXT NOT NULL, health TEXT NOT NULL, account TEXT NOT NULL, queue TEXT NOT NULL,
        host TEXT NOT NULL, suite TEXT NOT NULL, submit_id TEXT NOT NULL, group_id TEXT NOT NULL,
        tbox_group TEXT NOT NULL, submit_ms INTEGER NOT NULL);
    CREATE INDEX jobs_stage ON jobs (stage);
    CREATE INDEX jobs_account ON jobs (account);
    CREATE INDEX jobs_queue ON jobs (queue);
    CREATE INDEX jobs_host ON jobs (host) WHERE host <> '';
    CREATE INDEX jobs_submit_id ON jobs (submit_id) WHERE submit_id <> '';
    CREATE INDEX jobs_group_id ON jobs (group_id) WHERE group_id <> '';
    CREATE INDEX wait_all ON jobs (rank) WHERE waiting = 1;
    CREATE INDEX wait_account ON jobs (account, rank) WHERE waiting = 1;
    CREATE INDEX wait_queue ON jobs (queue, rank) WHERE waiting = 1;
    CREATE TABLE shapes (shape INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
    CREATE TABLE wait_keys (
        host_key TEXT NOT NULL, rank INTEGER NOT NULL, job_id INTEGER NOT NULL,
        queue TEXT NOT NULL, account TEXT NOT NULL, shape INTEGER NOT NULL,
        PRIMARY KEY (host_key, rank, job_id)) WITHOUT ROWID;
    CREATE INDEX wait_cells ON wait_keys (host_key, queue, account, shape, rank, job_id);
    CREATE TABLE docs (
        kind TEXT NOT NULL, id TEXT NOT NULL, seq INTEGER NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (kind, id)) WITHOUT ROWID;
    CREATE TABLE events (
        event INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, who TEXT NOT NULL, what TEXT NOT NULL,
        subject TEXT NOT NULL, detail TEXT NOT NULL);
";

/// Changes are read in their order.
const STEP_2: &str = "CREATE INDEX states_seq ON states (seq);";

/// Waiting jobs that must be looked at are found by when.
const STEP_3: &str = "
    ALTER TABLE jobs ADD COLUMN alarm_ms INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX jobs_alarm ON jobs (alarm_ms, job_id) WHERE alarm_ms > 0;
";

/// The jobs of a sequence are found by its key.
const STEP_4: &str = "
    ALTER TABLE jobs ADD COLUMN sequence TEXT NOT NULL DEFAULT '';
    CREATE INDEX jobs_sequence ON jobs (sequence, job_id) WHERE sequence <> '';
";

/// Small documents that must be looked at are found by when.
const STEP_5: &str = "
    ALTER TABLE docs ADD COLUMN at_ms INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX docs_at ON docs (kind, at_ms, id) WHERE at_ms > 0;
";

/// What testboxes spent is summed up, and jobs that are alike are counted.
const STEP_6: &str = "
    ALTER TABLE jobs ADD COLUMN used_ms INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE jobs ADD COLUMN used_at_ms INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE jobs ADD COLUMN fingerprint TEXT NOT NULL DEFAULT '';
    CREATE INDEX jobs_used ON jobs (used_at_ms) WHERE used_at_ms > 0;
    CREATE INDEX jobs_fingerprint ON jobs (fingerprint) WHERE fingerprint <> '';
";

/// Jobs are found by the label that they have in their account's queue.
const STEP_7: &str = "
    ALTER TABLE jobs ADD COLUMN queue_label TEXT NOT NULL DEFAULT '';
    CREATE INDEX jobs_queue_label ON jobs (queue_label) WHERE queue_label <> '';
";

/// Most jobs are in the queue of their own account: one index has them, not two with the same entries.
const STEP_8: &str = "
    DROP INDEX jobs_queue;
    DROP INDEX wait_account;
    DROP INDEX wait_queue;
    CREATE INDEX jobs_queue ON jobs (queue) WHERE queue <> account;
    CREATE INDEX wait_own ON jobs (account, rank) WHERE waiting = 1 AND queue = account;
    CREATE INDEX wait_account ON jobs (account, rank) WHERE waiting = 1 AND queue <> account;
    CREATE INDEX wait_queue ON jobs (queue, rank) WHERE waiting = 1 AND queue <> account;
";

/// Jobs are found by the title of the kernel crash that they printed.
const STEP_9: &str = "
    ALTER TABLE jobs ADD COLUMN crash_signature TEXT NOT NULL DEFAULT '';
    CREATE INDEX jobs_crash_signature ON jobs (crash_signature) WHERE crash_signature <> '';
";

/// Shards are found by their parent, and parents are told from jobs that run.
const STEP_10: &str = "
    ALTER TABLE jobs ADD COLUMN shard_of INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE jobs ADD COLUMN shards_n INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX jobs_shard_of ON jobs (shard_of, job_id) WHERE shard_of > 0;
";

/// Jobs are found by words, a line each. Such a table is cheap to write, and quick enough to read.
const STEP_11: &str = "
    CREATE TABLE words (job_id INTEGER PRIMARY KEY, words TEXT NOT NULL);
";

/// The words are in the row that searches read anyway: a submit writes one table less. Jobs of before step 11 have none.
const STEP_12: &str = "
    ALTER TABLE jobs ADD COLUMN words TEXT;
    UPDATE jobs SET words = (SELECT w.words FROM words w WHERE w.job_id = jobs.job_id);
    DROP TABLE words;
";

/// Content that jobs name: a collection asks whether any does. Most jobs name none, and have no row.
const STEP_13: &str = "
    CREATE TABLE content (id TEXT NOT NULL, job_id INTEGER NOT NULL, PRIMARY KEY (id, job_id)) WITHOUT ROWID;
    CREATE INDEX content_job ON content (job_id);
";

/// People see since when the oldest job of a queue could run, and read events by their time. Jobs of before have 0.
const STEP_14: &str = "
    ALTER TABLE jobs ADD COLUMN ready_ms INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX events_at ON events (at_ms);
";

/// Brings the file to the newest layout, or says why it cannot be used.
pub(super) fn migrate(conn: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let broken = |error: rusqlite::Error| broken(path, &error);
    let missing = missing_steps(conn, path)?;
    if missing.is_empty() {
        return Ok(());
    }
    let tx = conn.transaction().map_err(broken)?;
    for step in missing {
        tx.execute_batch(step).map_err(broken)?;
    }
    tx.pragma_update(None, "application_id", APPLICATION_ID)
        .map_err(broken)?;
    tx.pragma_update(
        None,
        "user_version",
        i64::try_from(STEPS.len()).unwrap_or(i64::MAX),
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

/// Refuses a file that is not of the newest layout, which only a writer can bring up.
pub(super) fn is_newest(conn: &Connection, path: &Path) -> Result<(), StoreError> {
    if missing_steps(conn, path)?.is_empty() {
        return Ok(());
    }
    Err(StoreError::Unusable {
        reason: format!("{} is no store of this version", path.display()),
        hint: format!(
            "use the version that wrote it; a start of the scheduler brings it up to format {}",
            STEPS.len()
        ),
    })
}

/// The steps that lead from the layout of a file to the newest.
fn missing_steps(conn: &Connection, path: &Path) -> Result<&'static [&'static str], StoreError> {
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
    let newest = STEPS.len();
    let Some(missing) = usize::try_from(version).ok().and_then(|v| STEPS.get(v..)) else {
        return Err(StoreError::Unusable {
            reason: format!("{file} has format {version}, this version knows up to {newest}"),
            hint: "start the newer fairlead that wrote it".to_owned(),
        });
    };
    Ok(missing)
}
