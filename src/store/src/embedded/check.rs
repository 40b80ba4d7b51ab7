//! Finds damage, and rows that do not fit together. Only the tables of a file show them.

use std::collections::{BTreeSet, HashMap};

use rusqlite::{Connection, ErrorCode};

use super::{
    numbers::unsigned,
    waiting::{WaitRow, is_waiting},
};
use crate::{
    JobState,
    check::{Fault, Findings, UNREADABLE},
    codec,
};

const DAMAGE: Fault = Fault {
    name: "damage",
    meaning: "faults that SQLite's integrity_check finds in the file",
    todo: "stop the scheduler, and restore a backup",
    is_wrong: true,
};
const BODY_ALONE: Fault = Fault {
    name: "body_without_state",
    meaning: "submitted texts whose job is not there",
    todo: "restore a backup if the job is missed; otherwise they do no harm",
    is_wrong: true,
};
const ROW_ALONE: Fault = Fault {
    name: "row_without_state",
    meaning: "rows for searches whose job is not there",
    todo: "restore a backup, or tell the developers: a write keeps both together",
    is_wrong: true,
};
const NO_ROW: Fault = Fault {
    name: "state_without_row",
    meaning: "jobs that searches do not find",
    todo: "restore a backup, or tell the developers: a write keeps both together",
    is_wrong: true,
};
const ROW_DIFFERS: Fault = Fault {
    name: "row_differs",
    meaning: "jobs whose row for searches differs from their state",
    todo: "fairlead edit JOB, or any other change of the job, writes some of it again; otherwise restore a backup",
    is_wrong: true,
};
const BEYOND: Fault = Fault {
    name: "version_beyond_counter",
    meaning: "documents whose version is greater than the counter of the file",
    todo: "restore a backup: two writes may get the same version",
    is_wrong: true,
};

/// Looks at all tables, in one transaction.
pub(super) fn check(conn: &Connection, mut found: Findings) -> rusqlite::Result<Findings> {
    match tables(conn, &mut found) {
        Ok(()) => {}
        Err(error) if is_damage(&error) => found.add(&DAMAGE, || error.to_string()),
        Err(error) => return Err(error),
    }
    Ok(found)
}

fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
    )
}

fn tables(conn: &Connection, found: &mut Findings) -> rusqlite::Result<()> {
    for fault in [
        &DAMAGE,
        &BODY_ALONE,
        &ROW_ALONE,
        &NO_ROW,
        &ROW_DIFFERS,
        &BEYOND,
        &UNREADABLE,
    ] {
        found.look_for(fault);
    }
    each_text(conn, "PRAGMA integrity_check", |line| {
        if line != "ok" {
            found.add(&DAMAGE, || line);
        }
    })?;
    if found.count(DAMAGE.name) > 0 {
        // Findings in a damaged file are not reliable.
        return Ok(());
    }
    for (fault, table) in [
        (&BODY_ALONE, "bodies"),
        (&ROW_ALONE, "jobs"),
        (&ROW_ALONE, "wait_keys"),
        (&ROW_ALONE, "content"),
    ] {
        let alone = format!(
            "SELECT DISTINCT printf('%019d in {table}', t.job_id) FROM {table} t
                WHERE NOT EXISTS (SELECT 1 FROM states s WHERE s.job_id = t.job_id)"
        );
        each_text(conn, &alone, |line| found.add(fault, || line))?;
    }
    let no_row = "SELECT printf('%019d', s.job_id) FROM states s
        WHERE NOT EXISTS (SELECT 1 FROM jobs j WHERE j.job_id = s.job_id)";
    each_text(conn, no_row, |line| found.add(&NO_ROW, || line))?;
    let beyond = "SELECT printf('%019d', job_id) FROM states
            WHERE seq > (SELECT value FROM meta WHERE key = 'seq')
        UNION ALL SELECT kind || '/' || id FROM docs
            WHERE seq > (SELECT value FROM meta WHERE key = 'seq')";
    each_text(conn, beyond, |line| found.add(&BEYOND, || line))?;
    rows(conn, found)
}

fn each_text(conn: &Connection, sql: &str, mut each: impl FnMut(String)) -> rusqlite::Result<()> {
    let mut statement = conn.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        each(row.get(0)?);
    }
    Ok(())
}

/// Returns the number of rows of each job in a table.
fn rows_by_job(conn: &Connection, table: &str) -> rusqlite::Result<HashMap<i64, u64>> {
    conn.prepare(&format!(
        "SELECT job_id, COUNT(*) FROM {table} GROUP BY job_id"
    ))?
    .query_map([], |row| Ok((row.get(0)?, unsigned(row, 1)?)))?
    .collect()
}

/// Compares each row with its state.
fn rows(conn: &Connection, found: &mut Findings) -> rusqlite::Result<()> {
    let keys = rows_by_job(conn, "wait_keys")?;
    let content = rows_by_job(conn, "content")?;
    let mut both = conn.prepare(
        "SELECT s.job_id, s.state, j.waiting, j.ready, j.stage, j.health, j.account, j.queue, j.host
            FROM states s LEFT JOIN jobs j USING (job_id)",
    )?;
    let mut rows = both.query([])?;
    while let Some(row) = rows.next()? {
        let (id, text): (i64, String) = (row.get(0)?, row.get(1)?);
        let state = match codec::decode_text(&text) {
            Ok(state) => state,
            Err(why) => {
                found.add(&UNREADABLE, || format!("{id:019}: {why}"));
                continue;
            }
        };
        let has_row = row.get::<_, Option<bool>>(2)?.is_some();
        if !has_row {
            continue;
        }
        let keys = keys.get(&id).copied().unwrap_or(0);
        let named: BTreeSet<&str> = state.content().collect();
        let content = content.get(&id).copied().unwrap_or(0);
        if content != u64::try_from(named.len()).unwrap_or(0) {
            found.add(&ROW_DIFFERS, || format!("{} in content", state.job_id));
        }
        if let Some(column) = difference(row, &state, keys)? {
            found.add(&ROW_DIFFERS, || format!("{} in {column}", state.job_id));
        }
    }
    Ok(())
}

/// The first column that differs.
fn difference(
    row: &rusqlite::Row<'_>,
    state: &JobState,
    keys: u64,
) -> rusqlite::Result<Option<&'static str>> {
    let flag = |column: usize| row.get::<_, bool>(column);
    let is = |column: usize, wanted: &str| -> rusqlite::Result<bool> {
        Ok(row.get_ref(column)?.as_str()? == wanted)
    };
    let waits = WaitRow::of(state).map_or(0, |row| row.host_keys.len());
    Ok(if flag(2)? != is_waiting(state) {
        Some("waiting")
    } else if flag(3)? != state.ready {
        Some("ready")
    } else if !is(4, state.stage.as_str())? {
        Some("stage")
    } else if !is(5, state.health.as_str())? {
        Some("health")
    } else if !is(6, &state.account)? {
        Some("account")
    } else if !is(7, &state.queue)? {
        Some("queue")
    } else if !is(8, &state.host)? {
        Some("host")
    } else if keys != u64::try_from(waits).unwrap_or(0) {
        Some("host keys")
    } else {
        None
    })
}
