//! Reads: by id, pages of waiting jobs, and changes.

use fairlead_job::{JobId, Spec};
use rusqlite::{Connection, OptionalExtension, Row, Rows, params};

use super::{
    numbers::{signed, unsigned, version},
    waiting::rank,
};
use crate::{ChangeMark, ChangePage, Changes, Page, Pull, PullBy, StoredJob, Usage, codec};

/// State by id, or the reason why this version cannot read it.
type Read = Option<Result<StoredJob, String>>;

/// Returns states by id.
pub(super) fn states(conn: &Connection, ids: &[JobId]) -> rusqlite::Result<Vec<Read>> {
    let mut one = conn.prepare_cached("SELECT seq, state FROM states WHERE job_id = ?1")?;
    ids.iter()
        .map(|id| {
            let Ok(raw) = codec::check_id(*id) else {
                return Ok(None);
            };
            one.query_row([raw], |row| {
                let (seq, text): (u64, String) = (unsigned(row, 0)?, row.get(1)?);
                let state = codec::decode_text(&text).map_err(|why| format!("{id}: {why}"));
                Ok(state.map(|state| StoredJob {
                    state,
                    version: version(seq),
                }))
            })
            .optional()
        })
        .collect()
}

/// Returns bodies by id.
pub(super) fn bodies(conn: &Connection, ids: &[JobId]) -> rusqlite::Result<Vec<Option<Spec>>> {
    let mut one = conn.prepare_cached("SELECT body FROM bodies WHERE job_id = ?1")?;
    ids.iter()
        .map(|id| {
            let Ok(id) = codec::check_id(*id) else {
                return Ok(None);
            };
            one.query_row([id], |row| {
                let text: String = row.get(0)?;
                serde_json::from_str(&text).map_err(|error| {
                    rusqlite::Error::FromSqlConversionFailure(
                        0,
                        rusqlite::types::Type::Text,
                        Box::new(error),
                    )
                })
            })
            .optional()
        })
        .collect()
}

/// Reads a row of `(job_id, seq, state)`. Returns `None` and logs a warning if this version cannot read it: a
/// document of a newer version must not hide all others.
pub(super) fn read_job(row: &Row<'_>) -> rusqlite::Result<Option<StoredJob>> {
    let (id, seq, text): (i64, u64, String) = (row.get(0)?, unsigned(row, 1)?, row.get(2)?);
    Ok(match codec::decode_text(&text) {
        Ok(state) => Some(StoredJob {
            state,
            version: version(seq),
        }),
        Err(reason) => {
            tracing::warn!(job_id = id, %reason, "a stored job is malformed and was skipped");
            None
        }
    })
}

/// Returns one page of waiting jobs.
pub(super) fn pull(conn: &Connection, request: &Pull) -> rusqlite::Result<Page> {
    let limit = request.limit.clamp(1, 10_000);
    let own = "jobs w INDEXED BY wait_own WHERE waiting = 1 AND queue = account AND account = ?1";
    let (from, binding): (&[&str], _) = match &request.by {
        PullBy::All => (
            &["jobs w INDEXED BY wait_all WHERE waiting = 1 AND ?1 IS NULL"],
            None,
        ),
        PullBy::Account(name) => (
            &[
                own,
                "jobs w INDEXED BY wait_account WHERE waiting = 1 AND queue <> account AND account = ?1",
            ],
            Some(name),
        ),
        PullBy::Queue(name) => (
            &[
                own,
                "jobs w INDEXED BY wait_queue WHERE waiting = 1 AND queue <> account AND queue = ?1",
            ],
            Some(name),
        ),
        PullBy::HostKey(name) => (&["wait_keys w WHERE host_key = ?1"], Some(name)),
    };
    let (after_rank, after_id) = request.after.map_or((-1, 0), |(class, priority, id)| {
        (
            rank(class, priority),
            i64::try_from(id.get()).unwrap_or(i64::MAX),
        )
    });
    let parts = from.iter().map(|from| {
        format!(
            "SELECT w.job_id AS id, w.rank AS rank FROM {from} AND (w.rank, w.job_id) > (?2, ?3)"
        )
    });
    let sql = format!(
        "SELECT s.job_id, s.seq, s.state FROM ({} ORDER BY rank, id LIMIT ?4) p
            CROSS JOIN states s ON s.job_id = p.id ORDER BY p.rank, p.id",
        parts.collect::<Vec<_>>().join(" UNION ALL ")
    );
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query(params![binding, after_rank, after_id, limit + 1])?;
    first_of(&mut rows, limit)
}

/// Returns jobs in stage submit whose alarm is before `before_ms`, earliest first.
pub(super) fn alarms(conn: &Connection, before_ms: u64, limit: u32) -> rusqlite::Result<Page> {
    let limit = limit.clamp(1, 10_000);
    let before_ms = i64::try_from(before_ms).unwrap_or(i64::MAX);
    let mut statement = conn.prepare_cached(
        "SELECT s.job_id, s.seq, s.state FROM
            (SELECT job_id AS id, alarm_ms FROM jobs INDEXED BY jobs_alarm
                WHERE alarm_ms > 0 AND alarm_ms < ?1 ORDER BY alarm_ms, job_id LIMIT ?2) p
            CROSS JOIN states s ON s.job_id = p.id ORDER BY p.alarm_ms, p.id",
    )?;
    let mut rows = statement.query(params![before_ms, limit + 1])?;
    first_of(&mut rows, limit)
}

/// Returns the time that testboxes spent on jobs of these accounts and queues, ms, then the bytes that jobs uploaded.
pub(super) fn usage(conn: &Connection, usage: &Usage) -> rusqlite::Result<Vec<u64>> {
    let since_ms = i64::try_from(usage.since_ms.max(1)).unwrap_or(i64::MAX);
    let mut sums = Vec::new();
    for (column, names) in [("account", &usage.accounts), ("queue", &usage.queues)] {
        let mut sum = conn.prepare_cached(&format!(
            "SELECT COALESCE(SUM(used_ms), 0) FROM jobs INDEXED BY jobs_used
             WHERE used_at_ms > 0 AND used_at_ms >= ?1 AND {column} = ?2"
        ))?;
        for name in names {
            sums.push(sum.query_row(params![since_ms, name], |row| unsigned(row, 0))?);
        }
    }
    let mut sum = conn.prepare_cached(
        "SELECT COALESCE(SUM(s.state ->> '$.result_bytes'), 0) FROM jobs j INDEXED BY jobs_account
            CROSS JOIN states s ON s.job_id = j.job_id WHERE j.account = ?1",
    )?;
    for name in &usage.uploads_of {
        sums.push(sum.query_row(params![name], |row| unsigned(row, 0))?);
    }
    Ok(sums)
}

/// Returns the first `limit` jobs of these rows, and notes if there are more.
fn first_of(rows: &mut Rows<'_>, limit: u32) -> rusqlite::Result<Page> {
    let mut page = Page::default();
    let mut seen = 0;
    while let Some(row) = rows.next()? {
        if seen == limit {
            page.more = true;
            break;
        }
        seen += 1;
        page.jobs.extend(read_job(row)?);
    }
    Ok(page)
}

/// Name of the only place of changes.
pub(super) const PLACE: &str = "states";

/// Returns the mark of the last change.
pub(super) fn change_mark(conn: &Connection) -> rusqlite::Result<ChangeMark> {
    let last = conn
        .prepare_cached("SELECT seq FROM states ORDER BY seq DESC LIMIT 1")?
        .query_row([], |row| unsigned(row, 0))
        .optional()?;
    let marks = last.map(|seq| (PLACE.to_owned(), seq));
    Ok(ChangeMark(marks.into_iter().collect()))
}

/// Returns the changes behind a mark, or in some ranges.
pub(super) fn changes(conn: &Connection, request: &Changes) -> rusqlite::Result<ChangePage> {
    let limit = request.limit.clamp(1, 10_000);
    let since = request.since.0.get(PLACE).map(|since| since + 1);
    let since = since.unwrap_or(0);
    let all = [(since, u64::MAX)];
    let ranges = if request.within.is_empty() {
        &all[..]
    } else {
        request.within.get(PLACE).map_or(&[][..], Vec::as_slice)
    };
    let mut statement = conn.prepare_cached(
        "SELECT s.job_id, s.seq FROM states s INDEXED BY states_seq
         CROSS JOIN jobs j ON j.job_id = s.job_id
         WHERE s.seq BETWEEN ?1 AND ?2 AND j.waiting = ?3 ORDER BY s.seq LIMIT ?4",
    )?;
    let mut page = ChangePage {
        mark: request.since.clone(),
        ..ChangePage::default()
    };
    let mut left = limit + 1;
    for &(first, last) in ranges {
        let (first, last) = (signed(first.max(since)), signed(last));
        let mut rows = statement.query(params![first, last, request.waiting, left])?;
        while let Some(row) = rows.next()? {
            left -= 1;
            if left == 0 {
                page.more = true;
                return Ok(page);
            }
            let (id, seq) = (unsigned(row, 0)?, unsigned(row, 1)?);
            page.mark.0.insert(PLACE.to_owned(), seq);
            page.jobs.push((JobId::new(id), version(seq)));
        }
    }
    Ok(page)
}
