//! Sequences: the jobs of one account with the same `sequence` run one at a time, in the order of their submits (ids).
//! Jobs with the same `concurrency` run beside each other, as many as their limits say.
//!
//! A member waits like a job that waits for others, until it has its turn. It takes its place once it waits for nothing
//! else: no time, no other job, no person. So nobody with a turn waits for a member without one. A small document by
//! account and key names the jobs with a turn. A compare-and-set passes the turn of one to the oldest member with a
//! place. It does so once that one has certainly ended, or certainly waits for something else again. So no more run than
//! may, however many replicas check. A replica that stores or ends a member, or gives it its place, checks at once. One replica also
//! checks each sequence periodically, for whatever was missed.

mod turns;

use std::{collections::BTreeSet, sync::Arc};

use fairlead_job::JobId;
use fairlead_store::{DocKind, DocWrite, Expect, JobState};

use crate::waiting::{WaitingFlow, sequences::turns::Looked};
use fairlead_base::errors::Refusal;
use fairlead_known::sequences::{Key, SequenceTurn};

/// How often one look begins anew because somebody else was faster or the store did not say.
const TRIES_MAX: usize = 8;
/// How long the document of a sequence is kept when nothing happens in it, ms: a day.
const KEPT_MS: u64 = 86_400_000;

impl WaitingFlow {
    /// Looks again at the sequences that this replica comes first for.
    pub(crate) fn sweep_sequences(&self) {
        let sequences = &self.known.sequences;
        let now_ms = sequences.looks.now_ms();
        for key in sequences.waiting() {
            if self.ctx.turn_for(key.number()) == 0 {
                sequences.looks.look_at(key, now_ms, ());
            }
        }
    }

    /// Passes turns on. One refresh serves all of them: members that were stored before are found.
    pub(crate) async fn look_at_sequences(
        self: Arc<Self>,
        due: Vec<(Key, ())>,
    ) -> Result<(), Refusal> {
        self.ctx.store.refresh().await?;
        let sequences = &self.known.sequences;
        for (key, ()) in due {
            // Before: a member that is seen meanwhile stays known.
            sequences.note(key.clone(), false);
            match self.pass_on(&key).await {
                Ok(false) => continue,
                Ok(true) => {}
                Err(refusal) => sequences.looks.failed(key.clone(), (), &refusal),
            }
            sequences.note(key, true);
        }
        Ok(())
    }

    /// Sees to it that as many members have a turn as may, of those that a search finds; `false`: all have ended.
    async fn pass_on(self: &Arc<Self>, key: &Key) -> Result<bool, Refusal> {
        for _ in 0..TRIES_MAX {
            match Box::pin(self.pass_on_once(key)).await? {
                Looked::Changed => self.ctx.store.refresh().await?,
                Looked::Settled => return Ok(true),
                Looked::Over => return Ok(false),
            }
        }
        Ok(true)
    }

    /// What a member waits for.
    pub(crate) async fn why_no_turn(&self, state: &JobState) -> Option<String> {
        let key = Key::of(state).filter(|_| !state.sequence_turn)?;
        let turn = self.read_sequence(&key).await.ok().flatten();
        let holders = turn.map(|turn| turn.doc.holders()).unwrap_or_default();
        let who = match holders.as_slice() {
            [] => String::new(),
            [one] if *one == state.job_id => String::new(),
            [one] => format!(": job {one} has it"),
            [first, ..] => format!(": {} jobs have one, job {first} among them", holders.len()),
        };
        let limits = limits_text(state);
        Some(format!(
            "waits for its turn in sequence '{}'{limits}{who}",
            key.key
        ))
    }

    /// Forgets sequences in which nothing happened for a day.
    pub(crate) async fn forget_sequences(&self) -> Result<(), Refusal> {
        let before_ms = self.ctx.clock.wall_ms().saturating_sub(KEPT_MS);
        let mut old = self.ctx.docs.list::<SequenceTurn>().await?;
        old.retain(|(_, turn)| turn.doc.at_ms < before_ms);
        let holders: Vec<JobId> = old
            .iter()
            .flat_map(|(_, turn)| turn.doc.holders())
            .collect();
        let found = self.ctx.store.get(&holders).await?.into_iter().flatten();
        let open: BTreeSet<JobId> = found
            .filter(|job| !job.state.stage.is_terminal())
            .map(|job| job.state.job_id)
            .collect();
        old.retain(|(_, turn)| turn.doc.holders().iter().all(|id| !open.contains(id)));
        let deletes = old.into_iter().map(|(id, turn)| DocWrite {
            id,
            expect: Expect::Version(turn.version),
            body: None,
        });
        let deletes: Vec<DocWrite> = deletes.collect();
        if !deletes.is_empty() {
            // Another replica may have been faster.
            drop(self.ctx.store.put_docs(DocKind::Sequence, deletes).await);
        }
        Ok(())
    }
}

/// The limits of a job in a sequence, in words; empty: one at a time.
fn limits_text(state: &JobState) -> String {
    let mut limits = Vec::new();
    if state.sequence_limit > 1 {
        limits.push(format!("at most {} run", state.sequence_limit));
    }
    if state.sequence_per_minute > 0 {
        limits.push(format!(
            "at most {} begin in a minute",
            state.sequence_per_minute
        ));
    }
    if limits.is_empty() {
        String::new()
    } else {
        format!(" ({})", limits.join(", "))
    }
}

#[cfg(test)]
mod tests;
