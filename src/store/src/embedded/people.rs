//! Questions of people: how many jobs are how far, and who did what.

use std::{collections::BTreeMap, str::FromStr};

use fairlead_job::{JobId, Stage};
use rusqlite::{Connection, params, params_from_iter, types::Value};

use super::numbers::{signed, unsigned};
use crate::{EventFind, EventRecord, StageCounts, store::QUEUES_MAX};

/// Counts open jobs by stage, and ended ones by health.
pub(super) fn stage_counts(conn: &Connection, since_ms: u64) -> rusqlite::Result<StageCounts> {
    let mut counts = StageCounts::default();
    let mut of_stage = conn.prepare_cached(
        "SELECT COUNT(*), COALESCE(SUM(ready = 0), 0) FROM jobs INDEXED BY jobs_stage
         WHERE stage = ?1 AND shards_n = 0",
    )?;
    for stage in Stage::ALL.iter().filter(|stage| !stage.is_terminal()) {
        let (jobs, not_ready) = of_stage.query_row([stage.as_str()], |row| {
            Ok((unsigned(row, 0)?, unsigned(row, 1)?))
        })?;
        if jobs > 0 {
            counts.open.insert(*stage, jobs);
        }
        if *stage == Stage::Submit {
            counts.not_ready = not_ready;
        }
    }
    // Ids begin with the second of the submit.
    let first = JobId::first_of(since_ms / 1_000);
    let mut ended = conn.prepare_cached(
        "SELECT stage, health, COUNT(*) FROM jobs
         WHERE job_id >= ?1 AND submit_ms >= ?2 AND shards_n = 0 GROUP BY stage, health",
    )?;
    let mut rows = ended.query(params![signed(first.get()), signed(since_ms)])?;
    while let Some(row) = rows.next()? {
        let (stage, health, jobs): (String, String, u64) =
            (row.get(0)?, row.get(1)?, unsigned(row, 2)?);
        let is_over = Stage::from_str(&stage).is_ok_and(Stage::is_terminal);
        if let (true, Ok(health)) = (is_over, health.parse()) {
            *counts.ended.entry(health).or_default() += jobs;
        }
    }
    counts.oldest_ready_ms = oldest_ready(conn)?;
    Ok(counts)
}

/// Returns by queue the earliest time since which a waiting job could run.
fn oldest_ready(conn: &Connection) -> rusqlite::Result<BTreeMap<String, u64>> {
    let mut oldest = conn.prepare_cached(
        "SELECT queue, MIN(ready_ms) FROM jobs INDEXED BY wait_all
         WHERE waiting = 1 AND ready_ms > 0 GROUP BY queue LIMIT ?1",
    )?;
    let rows = oldest.query_map([QUEUES_MAX], |row| Ok((row.get(0)?, unsigned(row, 1)?)))?;
    rows.collect()
}

/// Returns events, the newest first.
pub(super) fn events(conn: &Connection, find: &EventFind) -> rusqlite::Result<Vec<EventRecord>> {
    let mut sql = "SELECT at_ms, who, what, subject, detail FROM events
        WHERE at_ms >= ? AND at_ms < ?"
        .to_owned();
    let ms = |ms: u64| Value::Integer(signed(ms));
    let mut values = vec![ms(find.since_ms), ms(find.until_ms)];
    for (column, wanted) in [
        ("who", &find.who),
        ("what", &find.what),
        ("subject", &find.subjects),
    ] {
        if wanted.is_empty() {
            continue;
        }
        let mut ways = Vec::new();
        for name in wanted {
            ways.push(format!("{column} BETWEEN ? AND ?"));
            let (least, most) = match name.strip_suffix('*') {
                Some(begin) => (begin.to_owned(), format!("{begin}{}", char::MAX)),
                None => (name.clone(), name.clone()),
            };
            values.extend([least, most].map(Value::Text));
        }
        sql.extend([" AND (", &ways.join(" OR "), ")"]);
    }
    sql.push_str(" ORDER BY at_ms DESC, what, subject, who LIMIT ? OFFSET ?");
    values.push(Value::Integer(i64::from(find.limit.clamp(1, 1_000))));
    values.push(Value::Integer(i64::from(find.skip)));
    let mut read = conn.prepare_cached(&sql)?;
    let rows = read.query_map(params_from_iter(values), |row| {
        let detail: String = row.get(4)?;
        Ok(EventRecord {
            at_ms: unsigned(row, 0)?,
            who: row.get(1)?,
            what: row.get(2)?,
            subject: row.get(3)?,
            detail: serde_json::from_str(&detail).unwrap_or_default(),
        })
    })?;
    rows.collect()
}
