//! Writes jobs inside a transaction.
//!
//! All checks of an item come before its first write, so a refused item leaves nothing behind. An SQL error (a full
//! disk) undoes the whole transaction, so no item is half written.

use std::collections::HashMap;

use fairlead_job::Stage;
use rusqlite::{CachedStatement, OptionalExtension, Transaction, params};
use serde_json::{Map, Value};

use super::{
    merge::{Merged, merge},
    numbers::{signed, unsigned, version},
    statements::Statements,
    tally::Change,
    waiting::{self, Shape, WaitRow},
};
use crate::{
    ItemError, JobState, NewJob, Patch, StoredJob, Version,
    codec::{self, EncodedJob, check_id, refused},
};

/// The result of one item.
pub(super) type Item = Result<Version, ItemError>;

/// One transaction being filled.
pub(super) struct Batch<'t> {
    pub(super) tx: &'t Transaction<'t>,
    pub(super) statements: Statements<'t>,
    /// Last assigned version number.
    pub(super) seq: u64,
    /// Changes of the counts.
    pub(super) changes: Vec<Change>,
    pub(super) shapes: &'t mut Shapes,
}

/// Cached numbers of shapes.
pub(super) type Shapes = HashMap<Shape, i64>;

/// Maximum number of cached shapes. Beyond it all are forgotten and read again.
const SHAPES_MAX: usize = 4_096;

/// Job to submit, as text, or the reason why it cannot be stored.
pub(super) struct Submit {
    job: NewJob,
    text: Result<(i64, EncodedJob), ItemError>,
}

impl Submit {
    pub(super) fn of(job: NewJob) -> Self {
        let id = check_id(job.state.job_id);
        let text = id.and_then(|id| Ok((id, codec::encode_job(&job)?)));
        Self { job, text }
    }
}

impl Batch<'_> {
    /// Returns the last assigned version number, and the changes of the counts.
    pub(super) fn end(self) -> (u64, Vec<Change>) {
        (self.seq, self.changes)
    }

    /// Returns the next version number. Numbers only grow, over all documents and restarts: a recreated document
    /// never gets an old version.
    pub(super) fn next_seq(&mut self) -> (i64, Version) {
        self.seq += 1;
        (signed(self.seq), version(self.seq))
    }

    /// Creates a job: both documents.
    pub(super) fn submit(&mut self, submit: &Submit) -> rusqlite::Result<Item> {
        let (id, EncodedJob { state, body }) = match &submit.text {
            Ok((id, text)) => (*id, text),
            Err(error) => return Ok(Err(error.clone())),
        };
        let (seq, version) = self.next_seq();
        let insert = &mut self.statements.insert_state;
        if insert.execute(params![id, seq, state])? == 0 {
            return self.settle_repeat(&submit.job, id);
        }
        self.statements.insert_body.execute(params![id, body])?;
        self.index(id, None, &submit.job.state)?;
        Ok(Ok(version))
    }

    /// Settles a submit of an id that exists. The same job, sent twice, succeeds; another job conflicts.
    fn settle_repeat(&self, job: &NewJob, id: i64) -> rusqlite::Result<Item> {
        let (seq, state, body) = self
            .tx
            .prepare_cached(
                "SELECT seq, state, body FROM states LEFT JOIN bodies USING (job_id)
                 WHERE job_id = ?1",
            )?
            .query_row([id], |row| {
                let (state, body): (String, Option<String>) = (row.get(1)?, row.get(2)?);
                Ok((unsigned(row, 0)?, state, body))
            })?;
        let same_body = body.is_some_and(|text| {
            serde_json::from_str::<Map<String, Value>>(&text).is_ok_and(|b| b == *job.body)
        });
        let same_state = codec::decode_text(&state).is_ok_and(|state| state == job.state);
        Ok(if same_body && same_state {
            Ok(version(seq))
        } else {
            Err(ItemError::Conflict {
                current: Some(version(seq)),
            })
        })
    }

    /// Compare-and-set of a state.
    pub(super) fn patch(
        &mut self,
        patch: &Patch,
    ) -> rusqlite::Result<Result<StoredJob, ItemError>> {
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
        let merged = merge(patch.id, &stored, patch.set.fields());
        let Merged {
            before,
            after,
            text,
        } = match merged {
            Ok(merged) => merged,
            Err(reason) => return Ok(Err(refused(reason))),
        };
        let (seq, version) = self.next_seq();
        let set = &mut self.statements.set_state;
        set.execute(params![id, seq, text])?;
        self.index(id, Some(&before), &after)?;
        Ok(Ok(StoredJob {
            state: after,
            version,
        }))
    }

    fn stored(&mut self, id: i64) -> rusqlite::Result<Option<(u64, String)>> {
        let get = &mut self.statements.get_state;
        get.query_row([id], |row| Ok((unsigned(row, 0)?, row.get(1)?)))
            .optional()
    }

    /// Updates the derived tables from `before` to `after`.
    fn index(
        &mut self,
        id: i64,
        before: Option<&JobState>,
        after: &JobState,
    ) -> rusqlite::Result<()> {
        match before {
            Some(before) if only_progress(before, after) => self.progress(id, before, after)?,
            // Words never change.
            Some(_) => put_row(&mut self.statements.replace_row, id, after, None)?,
            None => {
                let words = format!("\n{}\n", after.kv.join("\n"));
                put_row(&mut self.statements.insert_row, id, after, Some(&words))?;
            }
        }
        self.name_content(id, before, after)?;
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

    /// Updates the rows of the named content from `before` to `after`.
    fn name_content(
        &mut self,
        id: i64,
        before: Option<&JobState>,
        after: &JobState,
    ) -> rusqlite::Result<()> {
        let is_in = |state: &JobState, wanted: &str| state.content().any(|one| one == wanted);
        for content in after.content() {
            if !before.is_some_and(|before| is_in(before, content)) {
                self.statements.name_content.execute(params![content, id])?;
            }
        }
        for content in before.into_iter().flat_map(JobState::content) {
            if !is_in(after, content) {
                self.statements.drop_content.execute(params![content, id])?;
            }
        }
        Ok(())
    }

    /// Writes as few columns as possible, because each index on a written column is written as well.
    fn progress(&mut self, id: i64, before: &JobState, after: &JobState) -> rusqlite::Result<()> {
        let place = |state| (waiting::is_waiting(state), alarm(state));
        if place(before) != place(after) || before.host != after.host {
            self.statements.move_row.execute(params![
                id,
                waiting::is_waiting(after),
                after.ready,
                after.stage.as_str(),
                after.health.as_str(),
                after.host,
                alarm(after),
                signed(after.used_ms),
                signed(after.used_at_ms),
                signed(after.ready_ms),
            ])?;
            return Ok(());
        }
        let step = |state: &JobState| {
            let used = (state.used_ms, state.used_at_ms);
            (state.ready, state.stage, state.health, used)
        };
        if step(before) != step(after) {
            self.statements.progress_row.execute(params![
                id,
                after.ready,
                after.stage.as_str(),
                after.health.as_str(),
                signed(after.used_ms),
                signed(after.used_at_ms),
            ])?;
        }
        Ok(())
    }

    fn drop_keys(&mut self, id: i64, row: &WaitRow) -> rusqlite::Result<()> {
        let drop = &mut self.statements.drop_key;
        for key in &row.host_keys {
            drop.execute(params![key, row.rank, id])?;
        }
        Ok(())
    }

    fn add_keys(&mut self, id: i64, row: &WaitRow) -> rusqlite::Result<()> {
        let shape = self.shape(&row.shape)?;
        let add = &mut self.statements.add_key;
        for key in &row.host_keys {
            add.execute(params![key, row.rank, id, row.queue, row.account, shape])?;
        }
        Ok(())
    }

    /// Returns the number of a shape. Shapes are never removed; there are at most as many as jobs.
    fn shape(&mut self, shape: &Shape) -> rusqlite::Result<i64> {
        if let Some(number) = self.shapes.get(shape) {
            return Ok(*number);
        }
        let text = serde_json::to_string(shape)
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
        self.tx
            .prepare_cached("INSERT INTO shapes (text) VALUES (?1) ON CONFLICT (text) DO NOTHING")?
            .execute([&text])?;
        let number = self
            .tx
            .prepare_cached("SELECT shape FROM shapes WHERE text = ?1")?
            .query_row([&text], |row| row.get(0))?;
        if self.shapes.len() >= SHAPES_MAX {
            self.shapes.clear();
        }
        self.shapes.insert(shape.clone(), number);
        Ok(number)
    }
}

/// Writes the whole row of a job, with its words if it is new.
fn put_row(
    put: &mut CachedStatement<'_>,
    id: i64,
    state: &JobState,
    words: Option<&str>,
) -> rusqlite::Result<()> {
    put.execute(params![
        id,
        waiting::is_waiting(state),
        state.ready,
        state.stage.as_str(),
        state.health.as_str(),
        state.host,
        alarm(state),
        signed(state.used_ms),
        signed(state.used_at_ms),
        waiting::rank(state.class, state.priority),
        state.account,
        state.queue,
        state.suite,
        state.submit_id,
        state.group_id,
        state.tbox_group,
        signed(state.submit_ms),
        state.sequence,
        state.fingerprint,
        state.queue_label,
        state.crash_signature,
        signed(state.shard.map_or(0, |shard| shard.of.get())),
        state.shards.as_ref().map_or(0, |shards| shards.count),
        signed(state.ready_ms),
        words,
    ])?;
    Ok(())
}

/// Returns the time at which the job must be looked at; 0: never, because it does not wait.
fn alarm(state: &JobState) -> i64 {
    let alarm_ms = if state.stage == Stage::Submit {
        state.alarm_ms
    } else {
        0
    };
    signed(alarm_ms)
}

/// Returns true if no value changed that only the full row holds.
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
        && before.crash_signature == after.crash_signature
        && before.submit_ms == after.submit_ms
}
