//! Deletes the jobs of old months, in parts.

use fairlead_job::JobId;
use rusqlite::{Connection, OptionalExtension};

use super::{
    apply::{Batch, Item},
    numbers::{unsigned, version},
};
use crate::{OldMonth, query::ends};

/// Jobs, and events, that are dropped in one transaction: some 10 ms.
const PART: i64 = 500;
/// Id below all ids from January 2000 on.
const FIRST: i64 = 1_010_000_000_000_000;

/// Month of which all jobs have ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Old {
    /// Its first id.
    from: i64,
    /// First id of the next month.
    until: i64,
    /// Begin of the month and of the next one, UTC epoch ms.
    from_ms: i64,
    until_ms: i64,
}

impl Old {
    /// Returns the month of this name. `None`: there is no such month.
    pub(super) fn of(month: &str) -> Option<Self> {
        let from = JobId::first_of_month(month)?;
        let until = from.next_month();
        Some(Self {
            from: i64::try_from(from.get()).ok()?,
            until: i64::try_from(until.get()).ok()?,
            from_ms: i64::try_from(from.born_s() * 1_000).ok()?,
            until_ms: i64::try_from(until.born_s() * 1_000).ok()?,
        })
    }

    /// Returns true if any job or event of it exists.
    pub(super) fn is_there(self, conn: &Connection) -> rusqlite::Result<bool> {
        conn.prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM states WHERE job_id >= ?1 AND job_id < ?2)
                OR EXISTS (SELECT 1 FROM events WHERE at_ms >= ?3 AND at_ms < ?4)",
        )?
        .query_row(
            [self.from, self.until, self.from_ms, self.until_ms],
            |row| row.get(0),
        )
    }
}

/// Returns the months before that of `before`, oldest first, up to the first one of which all jobs have ended.
pub(super) fn look(conn: &Connection, before: JobId) -> rusqlite::Result<Vec<OldMonth>> {
    let mut first = conn.prepare("SELECT MIN(job_id) FROM states WHERE job_id >= ?1")?;
    let mut count = conn.prepare(&format!(
        "SELECT COUNT(*) FROM jobs WHERE job_id >= ?1 AND job_id < ?2 AND stage NOT IN ('{}')",
        ends().join("','")
    ))?;
    let (before, mut looked_at, mut from) = (before.month(), Vec::new(), FIRST);
    loop {
        let oldest: Option<i64> = first.query_row([from], |row| row.get(0))?;
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
            .query_row([old.from, old.until, PART], |row| row.get(0))
            .optional()?;
        let until = beyond.unwrap_or(old.until);
        for table in ["states", "bodies", "jobs", "content"] {
            self.tx
                .prepare_cached(&format!(
                    "DELETE FROM {table} WHERE job_id >= ?1 AND job_id < ?2"
                ))?
                .execute([old.from, until])?;
        }
        self.tx
            .prepare_cached(
                "DELETE FROM events WHERE event IN
                    (SELECT event FROM events WHERE at_ms >= ?1 AND at_ms < ?2 LIMIT ?3)",
            )?
            .execute([old.from_ms, old.until_ms, PART])?;
        Ok(Ok(version(self.seq)))
    }
}

#[cfg(test)]
mod tests {
    use fairlead_job::{Health, Spec, Stage};
    use serde_json::json;

    use super::*;
    use crate::{EmbeddedStore, EventRecord, JobState, JobStore, NewJob, codec, embedded::open};

    #[tokio::test]
    async fn the_events_of_a_month_go_with_it_and_no_others() {
        let dir = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(dir.path()).unwrap();
        let first = |month: &str| JobId::first_of_month(month).unwrap();
        let state: JobState =
            codec::decode_text(include_str!("../../tests/golden/state-1.json")).unwrap();
        let state = JobState {
            job_id: first("2502"),
            stage: Stage::Finish,
            health: Health::Success,
            ..state
        };
        let body = Spec::new().into();
        assert!(store.submit(vec![NewJob { state, body }]).await[0].is_ok());
        let event = |at_ms| EventRecord {
            at_ms,
            who: "ann".into(),
            what: "job.cancel".into(),
            subject: "1".into(),
            detail: json!({}),
        };
        let (begin_ms, end_ms) = (
            first("2502").born_s() * 1_000,
            first("2503").born_s() * 1_000,
        );
        let inside = (0..1_200).map(|n| event(begin_ms + n));
        let events = inside.chain([event(begin_ms - 1), event(end_ms - 1), event(end_ms)]);
        store.append_events(events.collect()).await.unwrap();
        let dropped = store.drop_oldest(first("2605")).await.unwrap();
        assert_eq!((dropped.len(), dropped[0].unfinished), (1, 0));
        drop(store);
        let conn = open::open(dir.path()).unwrap().writer;
        let left: Vec<u64> = conn
            .prepare("SELECT at_ms FROM events ORDER BY at_ms")
            .unwrap()
            .query_map([], |row| unsigned(row, 0))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        assert_eq!(left, [begin_ms - 1, end_ms]);
    }
}
