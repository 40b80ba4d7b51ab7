//! Months that are old: their jobs are dropped, a part at a time.

use fairlead_job::JobId;
use rusqlite::{Connection, OptionalExtension, params};

use super::apply::{Batch, Item, unsigned, version};
use crate::{OldMonth, query::ends};

/// Jobs, and events, that are dropped in one transaction: some 10 ms.
const PART: i64 = 500;
/// No id of January 2000 is less.
const FIRST: i64 = 1_010_000_000_000_000;
/// Longer than a month, s.
const MONTH_S: u64 = 31 * 86_400;

/// A month of which all jobs have ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Old {
    /// Its first id.
    from: i64,
    /// The first one of the month after it.
    until: i64,
    /// When that begins, UTC epoch ms.
    until_ms: i64,
}

impl Old {
    /// `None`: there is no such month.
    pub(super) fn of(month: &str) -> Option<Self> {
        let from = JobId::first_of_month(month)?;
        let next = JobId::first_of(from.born_s() + MONTH_S).month();
        let until = JobId::first_of_month(&next)?;
        Some(Self {
            from: i64::try_from(from.get()).ok()?,
            until: i64::try_from(until.get()).ok()?,
            until_ms: i64::try_from(until.born_s() * 1_000).ok()?,
        })
    }

    /// Whether anything of it is there.
    pub(super) fn is_there(self, conn: &Connection) -> rusqlite::Result<bool> {
        let events = "SELECT MIN(event) FROM events";
        conn.prepare_cached(&format!(
            "SELECT EXISTS (SELECT 1 FROM states WHERE job_id >= ?1 AND job_id < ?2)
                OR EXISTS (SELECT 1 FROM events WHERE event = ({events}) AND at_ms < ?3)"
        ))?
        .query_row(params![self.from, self.until, self.until_ms], |row| {
            row.get(0)
        })
    }
}

/// The months before that of `before`, oldest first, to the first one of which all jobs have ended.
pub(super) fn look(conn: &Connection, before: JobId) -> rusqlite::Result<Vec<OldMonth>> {
    let mut first = conn.prepare("SELECT MIN(job_id) FROM states WHERE job_id >= ?1")?;
    let mut count = conn.prepare(&format!(
        "SELECT COUNT(*) FROM jobs WHERE job_id >= ?1 AND job_id < ?2 AND stage NOT IN ('{}')",
        ends().join("','")
    ))?;
    let (before, mut looked_at, mut from) = (before.month(), Vec::new(), FIRST);
    loop {
        let oldest: Option<i64> = first
            .query_row([from], |row| row.get(0))
            .optional()?
            .flatten();
        let oldest = oldest.and_then(|id| u64::try_from(id).ok()).map(JobId::new);
        let month = oldest.map(JobId::month).filter(|month| *month < before);
        let Some((old, month)) = month.and_then(|month| Some((Old::of(&month)?, month))) else {
            return Ok(looked_at);
        };
        let unfinished = count.query_row([old.from, old.until], |row| unsigned(row, 0))?;
        looked_at.push(OldMonth { month, unfinished });
        if unfinished == 0 {
            return Ok(looked_at);
        }
        from = old.until;
    }
}

impl Batch<'_> {
    /// Drops a part of a month.
    pub(super) fn drop_part(&mut self, old: Old) -> rusqlite::Result<Item> {
        let beyond: Option<i64> = self
            .tx
            .prepare_cached(
                "SELECT job_id FROM states WHERE job_id >= ?1 AND job_id < ?2
                    ORDER BY job_id LIMIT 1 OFFSET ?3",
            )?
            .query_row(params![old.from, old.until, PART], |row| row.get(0))
            .optional()?;
        let until = beyond.unwrap_or(old.until);
        for table in ["states", "bodies", "jobs"] {
            self.tx
                .prepare_cached(&format!(
                    "DELETE FROM {table} WHERE job_id >= ?1 AND job_id < ?2"
                ))?
                .execute([old.from, until])?;
        }
        self.tx
            .prepare_cached(
                "DELETE FROM events WHERE at_ms < ?1
                    AND event IN (SELECT event FROM events ORDER BY event LIMIT ?2)",
            )?
            .execute([old.until_ms, PART])?;
        Ok(Ok(version(self.seq)))
    }
}
