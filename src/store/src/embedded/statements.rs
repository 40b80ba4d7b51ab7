//! The statements that write jobs, looked up once a transaction and not once an item.

use rusqlite::{CachedStatement, Connection};

/// SQL of a row with all columns. The argument is the value of the last one.
macro_rules! row {
    ($words:literal) => {
        concat!(" INTO jobs (job_id, waiting, ready, stage, health, host, alarm_ms, used_ms, used_at_ms,
            rank, account, queue, suite, submit_id, group_id, tbox_group, submit_ms, sequence,
            fingerprint, queue_label, crash_signature, shard_of, shards_n, ready_ms, words)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,
            ?19, ?20, ?21, ?22, ?23, ?24, ", $words, ")")
    };
}

/// Statements of one transaction.
pub(super) struct Statements<'t> {
    pub(super) get_state: CachedStatement<'t>,
    /// Does nothing when the id exists.
    pub(super) insert_state: CachedStatement<'t>,
    pub(super) set_state: CachedStatement<'t>,
    pub(super) insert_body: CachedStatement<'t>,
    pub(super) insert_row: CachedStatement<'t>,
    /// Replaces the row of a job. It costs more than an insert even if there is none.
    pub(super) replace_row: CachedStatement<'t>,
    /// Updates a job that came to a host, left it, or began or ceased to wait.
    pub(super) move_row: CachedStatement<'t>,
    /// Updates a job that stays in its place: touches the fewest indexes.
    pub(super) progress_row: CachedStatement<'t>,
    pub(super) add_key: CachedStatement<'t>,
    pub(super) drop_key: CachedStatement<'t>,
    pub(super) name_content: CachedStatement<'t>,
    pub(super) drop_content: CachedStatement<'t>,
}

impl<'t> Statements<'t> {
    pub(super) fn of(conn: &'t Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            get_state: conn.prepare_cached("SELECT seq, state FROM states WHERE job_id = ?1")?,
            insert_state: conn.prepare_cached(
                "INSERT OR IGNORE INTO states (job_id, seq, state) VALUES (?1, ?2, ?3)",
            )?,
            set_state: conn
                .prepare_cached("UPDATE states SET seq = ?2, state = ?3 WHERE job_id = ?1")?,
            insert_body: conn
                .prepare_cached("INSERT INTO bodies (job_id, body) VALUES (?1, ?2)")?,
            insert_row: conn.prepare_cached(concat!("INSERT", row!("?25")))?,
            replace_row: conn.prepare_cached(concat!(
                "REPLACE",
                row!("COALESCE((SELECT words FROM jobs WHERE job_id = ?1), ?25)")
            ))?,
            move_row: conn.prepare_cached(
                "UPDATE jobs SET waiting = ?2, ready = ?3, stage = ?4, health = ?5, host = ?6,
                    alarm_ms = ?7, used_ms = ?8, used_at_ms = ?9, ready_ms = ?10
                 WHERE job_id = ?1",
            )?,
            progress_row: conn.prepare_cached(
                "UPDATE jobs SET ready = ?2, stage = ?3, health = ?4, used_ms = ?5, used_at_ms = ?6
                 WHERE job_id = ?1",
            )?,
            add_key: conn.prepare_cached(
                "INSERT INTO wait_keys (host_key, rank, job_id, queue, account, shape)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?,
            drop_key: conn.prepare_cached(
                "DELETE FROM wait_keys WHERE host_key = ?1 AND rank = ?2 AND job_id = ?3",
            )?,
            name_content: conn
                .prepare_cached("INSERT OR IGNORE INTO content (id, job_id) VALUES (?1, ?2)")?,
            drop_content: conn
                .prepare_cached("DELETE FROM content WHERE id = ?1 AND job_id = ?2")?,
        })
    }
}
