//! The jobs that testboxes hold, and the one way in which a job's state changes.
//!
//! [`Core::change`] reads, computes and writes by compare-and-set; what follows from a change (engine,
//! waiters, dependants) follows in [`Core::changed`], once, whoever made it. Stages only move forward
//! within an attempt (I9): the closures that compute a change check it, the store's version enforces it.

use std::sync::Arc;

use fairlead_dispatch::{Event, JobKey, Millis};
use fairlead_job::{Health, JobId, Stage};
use fairlead_store::{ItemError, JobState, Patch, StatePatch, StoredJob};

use crate::{
    base::errors::Refusal,
    core::Core,
    known::{live_jobs::Sight, seen_versions::Noted},
    lifecycle::{
        attempt::count_used,
        engine_facts::{engine_version, facts, running},
        touch::touch,
    },
};

/// How often a change is tried again when somebody else was faster.
const CHANGE_TRIES_MAX: usize = 16;

/// What a change came to.
#[derive(Debug, Clone)]
pub(crate) struct Changed {
    /// The state before.
    pub(crate) before: StoredJob,
    /// The state after; the same when nothing had to change.
    pub(crate) after: StoredJob,
}

impl Changed {
    /// Whether anything was written.
    pub(crate) fn is_change(&self) -> bool {
        self.before.version != self.after.version
    }

    /// How the attempt that a testbox had ended by it, if it did.
    pub(crate) fn attempt_ended(&self) -> Option<Health> {
        let (before, after) = (&self.before.state, &self.after.state);
        let health = if after.attempt > before.attempt {
            after.attempts.last().map(|last| last.health)
        } else {
            after.stage.is_terminal().then_some(after.health)
        };
        health.filter(|_| before.stage.is_held())
    }
}

impl Core {
    /// A job's state as the store has it now; while it cannot be read, as it was last known.
    pub(crate) async fn job(&self, id: JobId) -> Result<StoredJob, Refusal> {
        match (self.store.get(&[id]).await, self.live.get(id)) {
            (Ok(mut found), _) => {
                let stored = found.pop().flatten().ok_or_else(|| Refusal::no_job(id))?;
                self.observe(&stored);
                Ok(stored)
            }
            (Err(_), Some(live)) => Ok(Arc::unwrap_or_clone(live.stored)),
            (Err(error), None) => Err(error.into()),
        }
    }

    /// A job's state from the store, in real time.
    pub(crate) async fn stored_job(&self, id: JobId) -> Result<StoredJob, Refusal> {
        let mut found = self.store.get(&[id]).await?;
        found.pop().flatten().ok_or_else(|| Refusal::no_job(id))
    }

    /// Changes a job's state by compare-and-set. `compute` sees the present state and returns the wanted
    /// one, `None` to leave it, or a refusal; it may be called again when somebody else was faster.
    ///
    /// Whoever asked may hang up at any moment: a write that was begun is carried through with all that
    /// follows from it.
    pub(crate) async fn change(
        self: &Arc<Self>,
        id: JobId,
        compute: impl FnMut(&JobState) -> Result<Option<JobState>, Refusal> + Send,
    ) -> Result<Changed, Refusal> {
        if let Some(live) = self.live.get(id) {
            let known = Arc::unwrap_or_clone(live.stored);
            return Box::pin(self.change_from(known, true, compute)).await;
        }
        let stored = self.stored_job(id).await?;
        Box::pin(self.change_from(stored, false, compute)).await
    }

    /// Changes the state of a job that was read a while ago, which saves reading it.
    pub(crate) async fn change_known(
        self: &Arc<Self>,
        known: StoredJob,
        compute: impl FnMut(&JobState) -> Result<Option<JobState>, Refusal> + Send,
    ) -> Result<Changed, Refusal> {
        self.change_from(known, true, compute).await
    }

    async fn change_from(
        self: &Arc<Self>,
        mut before: StoredJob,
        mut from_memory: bool,
        mut compute: impl FnMut(&JobState) -> Result<Option<JobState>, Refusal> + Send,
    ) -> Result<Changed, Refusal> {
        let id = before.state.job_id;
        for _ in 0..CHANGE_TRIES_MAX {
            let computed = compute(&before.state)
                .map(|wanted| wanted.map(|wanted| self.with_what_follows(&before.state, wanted)));
            let set = match &computed {
                Ok(Some(wanted)) => StatePatch::between(&before.state, wanted),
                Ok(None) | Err(_) => StatePatch::default(),
            };
            if set.is_empty() && from_memory {
                // What is in memory may be behind: only the store can say that there is nothing to do.
                from_memory = false;
                before = self.stored_job(id).await?;
                self.observe(&before);
                continue;
            }
            if set.is_empty() && before.state.stage.is_terminal() {
                let confirmed;
                (before, confirmed) = Box::pin(self.confirm(before)).await?;
                if !confirmed {
                    continue;
                }
            }
            let wanted = match computed? {
                Some(wanted) if !set.is_empty() => wanted,
                _ => {
                    return Ok(Changed {
                        after: before.clone(),
                        before,
                    });
                }
            };
            match self.write(before, wanted, set).await {
                Ok(changed) => return Ok(changed),
                Err(ItemError::Conflict { .. }) => {
                    from_memory = false;
                    before = self.stored_job(id).await?;
                    self.observe(&before);
                }
                Err(ItemError::Missing) => return Err(Refusal::no_job(id)),
                Err(other) => return Err(other.into()),
            }
        }
        Err(Refusal::contended(id))
    }

    /// What a change brings with it, whoever makes it.
    fn with_what_follows(&self, before: &JobState, wanted: JobState) -> JobState {
        let wanted = self.elsewhere(before, wanted);
        count_used(before, wanted, self.clock.wall_ms()).set_alarm()
    }

    /// Makes sure that a state which was read is the store's: what is read may vanish with the node that shows it,
    /// and only a write that is acknowledged says that it stays. False: somebody else was faster, this is the
    /// newer state.
    pub(crate) async fn confirm(
        self: &Arc<Self>,
        read: StoredJob,
    ) -> Result<(StoredJob, bool), Refusal> {
        let id = read.state.job_id;
        let (wanted, patch) = touch(&read);
        match self.write(read, wanted, patch.set).await {
            Ok(changed) => Ok((changed.after, true)),
            Err(ItemError::Conflict { .. }) => Ok((self.stored_job(id).await?, false)),
            Err(ItemError::Missing) => Err(Refusal::no_job(id)),
            Err(other) => Err(other.into()),
        }
    }

    /// Writes one change in a task of its own, which nobody's hanging up ends.
    async fn write(
        self: &Arc<Self>,
        before: StoredJob,
        wanted: JobState,
        set: StatePatch,
    ) -> Result<Changed, ItemError> {
        let core = Arc::clone(self);
        let writing = self.tasks.spawn(async move {
            let patch = Patch {
                id: wanted.job_id,
                expect: before.version,
                set,
            };
            let version = core.writer.patch(patch).await?;
            let changed = Changed {
                before,
                after: StoredJob {
                    state: wanted,
                    version,
                },
            };
            core.changed(&changed);
            core.count_end(&changed);
            let is_over = |job: &StoredJob| job.state.stage.is_terminal();
            if is_over(&changed.after) && !is_over(&changed.before) {
                core.sequences.stirred(&changed.after.state);
            }
            core.clusters.stirred(&changed.after.state);
            core.outbox.job(Arc::new(changed.after.clone()));
            Ok(changed)
        });
        writing.await.unwrap_or_else(|error| {
            Err(ItemError::Unknown {
                reason: error.to_string(),
            })
        })
    }

    /// Counts an attempt that this replica's own write ended.
    fn count_end(&self, changed: &Changed) {
        if let Some(health) = changed.attempt_ended() {
            self.metrics.attempt_ended(health.cause());
        }
    }

    /// What follows here from an acknowledged change of a state. What the engine is told depends on what it
    /// knows, which may be older than what was changed.
    pub(crate) fn changed(&self, changed: &Changed) {
        let (before, after) = (&changed.before.state, &changed.after.state);
        let id = after.job_id;
        if self.seen.note(&changed.after, self.clock.now()) == Noted::Old {
            // The answer to the write came late: what was seen since has had its effects.
            self.changes.announce(id);
            return;
        }
        let known = self.live.get(id).map(|live| live.stored);
        let is_held = after.stage.is_held();
        if is_held {
            self.live.put(changed.after.clone(), self.sight());
        } else {
            self.live.remove(id);
        }
        let is_same = |known: &Arc<StoredJob>| known.state.claim_token == after.claim_token;
        let stays = is_held && known.as_ref().is_some_and(is_same);
        let waits = after.stage == Stage::Submit && after.ready;
        if waits {
            // Before its end: else its host gets another one while nobody knows that this one waits again.
            self.engine
                .tell(Event::JobsLearned(vec![facts(&changed.after)]));
        }
        if known.is_some() && !stays {
            self.tell_ended(after);
        }
        if is_held && !stays {
            self.engine
                .tell(Event::JobHeld(Box::new(running(&changed.after))));
        }
        if after.stage == Stage::Submit && !waits {
            self.dependants.add(after);
            self.sequences.seen(after);
        }
        self.set_alarm(&changed.after);
        if !waits && !is_held {
            // Also one that was held: it may have waited in between, and have been read as it did.
            let version = engine_version(changed.after.version);
            self.engine.tell(Event::JobGone(JobKey(id.get()), version));
            if known.is_none() && before.stage.is_held() {
                self.charge_unseen(&changed.after);
            }
        }
        self.changes.announce(id);
        self.count_host_failure(changed);
    }

    fn tell_ended(&self, after: &JobState) {
        let is_over = after.stage.is_terminal();
        let at = if is_over {
            self.on_own_clock(after.end_ms)
        } else {
            self.clock.now()
        };
        self.engine.tell(Event::JobEnded {
            job: JobKey(after.job_id.get()),
            ran: matches!(after.health, Health::Success | Health::Fail)
                && after.stage == Stage::Finish,
            at,
        });
    }
}

impl Core {
    /// Now, for a job that is heard of.
    pub(crate) fn sight(&self) -> Sight {
        let now = self.clock.now();
        Sight {
            now,
            stage_since: now,
            ahead_ms: self.clock.ahead_ms(),
        }
    }

    /// A time of a document, which perhaps another machine wrote, on this replica's own clock: never later
    /// than now.
    pub(crate) fn on_own_clock(&self, wall_ms: u64) -> Millis {
        let ago = self.clock.wall_ms().saturating_sub(wall_ms);
        Millis(self.clock.now().0.saturating_sub(ago))
    }
}

#[cfg(test)]
mod tests;
