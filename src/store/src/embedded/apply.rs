//! Writes jobs inside a transaction.
//!
//! All checks of an item come before its first write, so a refused item leaves nothing behind. An SQL error (a full
//! disk) undoes the whole transaction, so no item is half written.

use fairlead_job::{JobId, Stage};
use rusqlite::{OptionalExtension, Transaction, params};
use serde_json::{Map, Value};

use super::{
    numbers::{signed, unsigned, version},
    tally::Change,
    waiting::{self, Shape, WaitRow},
};
use crate::{
    ItemError, JobState, NewJob, Patch, Version,
    codec::{self, EncodedJob, check_id, refused},
};

/// The result of one item.
pub(super) type Item = Result<Version, ItemError>;

/// One transaction being filled.
#[derive(Debug)]
pub(super) struct Batch<'c> {
    pub(super) tx: Transaction<'c>,
    /// The last version number given.
    pub(super) seq: u64,
    /// What it does to the counts.
    pub(super) changes: Vec<Change>,
}

impl Batch<'_> {
    /// Version numbers only go up, over all documents and restarts: a deleted document that is made
    /// again never has an old version.
    pub(super) fn next_seq(&mut self) -> (i64, Version) {
        self.seq += 1;
        (
            i64::try_from(self.seq).unwrap_or(i64::MAX),
            version(self.seq),
        )
    }

    /// Creates a job: both documents.
    pub(super) fn submit(&mut self, job: &NewJob) -> rusqlite::Result<Item> {
        let (id, text) = match check_id(job.state.job_id)
            .and_then(|id| codec::encode_job(job).map(|text| (id, text)))
        {
            Ok(checked) => checked,
            Err(error) => return Ok(Err(error)),
        };
        if let Some((seq, stored)) = self.stored(id)? {
            return self.settle_repeat(job, id, seq, &stored);
        }
        let (seq, version) = self.next_seq();
        let EncodedJob { state, body } = text;
        self.tx
            .prepare_cached("INSERT INTO states (job_id, seq, state) VALUES (?1, ?2, ?3)")?
            .execute(params![id, seq, state])?;
        self.tx
            .prepare_cached("INSERT INTO bodies (job_id, body) VALUES (?1, ?2)")?
            .execute(params![id, body])?;
        self.index(id, None, &job.state)?;
        Ok(Ok(version))
    }

    /// A submit of an id that exists: our own, sent twice, is in; anything else is a conflict.
    fn settle_repeat(
        &self,
        job: &NewJob,
        id: i64,
        seq: u64,
        stored: &str,
    ) -> rusqlite::Result<Item> {
        let body: Option<String> = self
            .tx
            .prepare_cached("SELECT body FROM bodies WHERE job_id = ?1")?
            .query_row([id], |row| row.get(0))
            .optional()?;
        let same_body = body.is_some_and(|text| {
            serde_json::from_str::<Map<String, Value>>(&text).is_ok_and(|b| b == job.body)
        });
        let same_state = codec::decode_text(stored).is_ok_and(|state| state == job.state);
        Ok(if same_body && same_state {
            Ok(version(seq))
        } else {
            Err(ItemError::Conflict {
                current: Some(version(seq)),
            })
        })
    }

    /// Compare-and-set of a state.
    pub(super) fn patch(&mut self, patch: &Patch) -> rusqlite::Result<Item> {
        let Ok(id) = check_id(patch.id) else {
            return Ok(Err(ItemError::Missing));
        };
        let Some((seq, stored)) = self.stored(id)? else {
            return Ok(Err(ItemError::Missing));
        };
        if version(seq) != patch.expect {
            return Ok(Err(ItemError::Conflict {
                current: Some(version(seq)),
            }));
        }
        let (before, after, text) = match merge(patch.id, &stored, patch.set.fields()) {
            Ok(merged) => merged,
            Err(reason) => return Ok(Err(refused(reason))),
        };
        let (seq, version) = self.next_seq();
        self.tx
            .prepare_cached("UPDATE states SET seq = ?2, state = ?3 WHERE job_id = ?1")?
            .execute(params![id, seq, text])?;
        self.index(id, Some(&before), &after)?;
        Ok(Ok(version))
    }

    fn stored(&self, id: i64) -> rusqlite::Result<Option<(u64, String)>> {
        self.tx
            .prepare_cached("SELECT seq, state FROM states WHERE job_id = ?1")?
            .query_row([id], |row| Ok((unsigned(row, 0)?, row.get(1)?)))
            .optional()
    }

    /// Brings the derived tables from `before` to `after`.
    fn index(
        &mut self,
        id: i64,
        before: Option<&JobState>,
        after: &JobState,
    ) -> rusqlite::Result<()> {
        match before {
            Some(before) if only_progress(before, after) => self
                .tx
                .prepare_cached(
                    "UPDATE jobs SET waiting = ?2, ready = ?3, stage = ?4, health = ?5, host = ?6,
                        alarm_ms = ?7, used_ms = ?8, used_at_ms = ?9
                     WHERE job_id = ?1",
                )?
                .execute(params![
                    id,
                    waiting::is_waiting(after),
                    after.ready,
                    after.stage.as_str(),
                    after.health.as_str(),
                    after.host,
                    alarm(after),
                    signed(after.used_ms),
                    signed(after.used_at_ms),
                ])?,
            Some(_) => self.put_row("REPLACE", id, after)?,
            None => self.put_row("INSERT", id, after)?,
        };
        let (old, new) = (before.and_then(WaitRow::of), WaitRow::of(after));
        if old == new {
            return Ok(());
        }
        if let Some(row) = old {
            self.drop_keys(id, &row)?;
            self.changes.push(Change::Left(row));
        }
        if let Some(row) = new {
            self.add_keys(id, &row)?;
            self.changes.push(Change::Came(row));
        }
        Ok(())
    }

    fn put_row(&self, verb: &str, id: i64, state: &JobState) -> rusqlite::Result<usize> {
        self.tx
            .prepare_cached(&format!(
                "{verb} INTO jobs (job_id, waiting, ready, rank, stage, health, account, queue,
                    host, suite, submit_id, group_id, tbox_group, submit_ms, alarm_ms, sequence,
                    used_ms, used_at_ms, fingerprint, queue_label)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)"
            ))?
            .execute(params![
                id,
                waiting::is_waiting(state),
                state.ready,
                waiting::rank(state.class, state.priority),
                state.stage.as_str(),
                state.health.as_str(),
                state.account,
                state.queue,
                state.host,
                state.suite,
                state.submit_id,
                state.group_id,
                state.tbox_group,
                signed(state.submit_ms),
                alarm(state),
                state.sequence,
                signed(state.used_ms),
                signed(state.used_at_ms),
                state.fingerprint,
                state.queue_label,
            ])
    }

    fn drop_keys(&self, id: i64, row: &WaitRow) -> rusqlite::Result<()> {
        let mut drop = self.tx.prepare_cached(
            "DELETE FROM wait_keys WHERE host_key = ?1 AND rank = ?2 AND job_id = ?3",
        )?;
        for key in &row.host_keys {
            drop.execute(params![key, row.rank, id])?;
        }
        Ok(())
    }

    fn add_keys(&self, id: i64, row: &WaitRow) -> rusqlite::Result<()> {
        let shape = self.shape(&row.shape)?;
        let mut add = self.tx.prepare_cached(
            "INSERT INTO wait_keys (host_key, rank, job_id, queue, account, shape)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?;
        for key in &row.host_keys {
            add.execute(params![key, row.rank, id, row.queue, row.account, shape])?;
        }
        Ok(())
    }

    /// The number of a shape; shapes are never removed, there are at most as many as jobs.
    fn shape(&self, shape: &Shape) -> rusqlite::Result<i64> {
        let text = serde_json::to_string(shape)
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
        let known = self
            .tx
            .prepare_cached("SELECT shape FROM shapes WHERE text = ?1")?
            .query_row([&text], |row| row.get(0))
            .optional()?;
        if let Some(number) = known {
            return Ok(number);
        }
        self.tx
            .prepare_cached("INSERT INTO shapes (text) VALUES (?1)")?
            .execute([&text])?;
        Ok(self.tx.last_insert_rowid())
    }
}

/// The state before and after, and its new text. Fields that this version does not know stay.
fn merge(
    id: JobId,
    stored: &str,
    set: &Map<String, Value>,
) -> Result<(JobState, JobState, String), String> {
    let before = codec::decode_text(stored)?;
    let mut fields: Map<String, Value> =
        serde_json::from_str(stored).map_err(|error| error.to_string())?;
    for (name, value) in set {
        if value.is_null() {
            fields.shift_remove(name);
        } else {
            fields.insert(name.clone(), value.clone());
        }
    }
    let text = serde_json::to_string(&fields).map_err(|error| error.to_string())?;
    if text.len() > codec::STATE_BYTES_MAX {
        return Err(format!(
            "the state has {} bytes of JSON, more than {}",
            text.len(),
            codec::STATE_BYTES_MAX
        ));
    }
    let after = codec::decode_state(fields)?;
    if after.job_id != id {
        return Err(format!("a patch cannot change job {id} into another"));
    }
    Ok((before, after, text))
}

/// When the job must be looked at; 0: never, it does not wait.
fn alarm(state: &JobState) -> i64 {
    let alarm_ms = if state.stage == Stage::Submit {
        state.alarm_ms
    } else {
        0
    };
    signed(alarm_ms)
}

/// Whether nothing changed that only the full row holds.
fn only_progress(before: &JobState, after: &JobState) -> bool {
    before.class == after.class
        && before.priority == after.priority
        && before.account == after.account
        && before.queue == after.queue
        && before.queue_label == after.queue_label
        && before.suite == after.suite
        && before.submit_id == after.submit_id
        && before.group_id == after.group_id
        && before.sequence == after.sequence
        && before.tbox_group == after.tbox_group
        && before.fingerprint == after.fingerprint
        && before.submit_ms == after.submit_ms
}
