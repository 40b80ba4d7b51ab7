//! The one way in which a job's state changes.
//!
//! [`JobFlow::change`] reads, computes and writes by compare-and-set. The effects of a change (engine, waiting requests,
//! dependants) follow once in [`JobFlow::changed`], whoever made it. Stages only move forward within an attempt (I9): the
//! closure that computes a change checks this, and the store's version enforces it.

use std::sync::Arc;

use fairlead_job::JobId;
use fairlead_store::{ItemError, JobState, Patch, StatePatch, StoreError, StoredJob};

use crate::jobs::JobFlow;
use fairlead_base::errors::{JobError, Refusal};
use fairlead_lifecycle::{attempt::count_used, changed::Changed, touch::touch};

/// How often a change is tried again when somebody else was faster.
const CHANGE_TRIES_MAX: usize = 16;

impl JobFlow {
    /// A job's state as the store has it now; while it cannot be read, as it was last known.
    pub(crate) async fn job(&self, id: JobId) -> Result<StoredJob, Refusal> {
        let found = self.ctx.store.get(&[id]).await;
        self.read_or_known(id, found.map(|mut found| found.pop().flatten()))
    }

    /// The same for people, of whom many read at once.
    pub(crate) async fn shown_job(&self, id: JobId) -> Result<StoredJob, Refusal> {
        self.read_or_known(id, self.reader.job(id).await)
    }

    /// A job as it was read; if it could not be read, as it was last known.
    fn read_or_known(
        &self,
        id: JobId,
        read: Result<Option<StoredJob>, StoreError>,
    ) -> Result<StoredJob, Refusal> {
        match (read, self.live.get(id)) {
            (Ok(found), _) => {
                let stored = found.ok_or(JobError::Unknown(id))?;
                self.observe(&stored);
                Ok(stored)
            }
            (Err(_), Some(live)) => Ok(Arc::unwrap_or_clone(live.stored)),
            (Err(error), None) => Err(error.into()),
        }
    }

    /// A job's state from the store, in real time.
    pub(crate) async fn stored_job(&self, id: JobId) -> Result<StoredJob, Refusal> {
        let mut found = self.ctx.store.get(&[id]).await?;
        Ok(found.pop().flatten().ok_or(JobError::Unknown(id))?)
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
        Box::pin(self.change_from(known, true, compute)).await
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
                Err(ItemError::Missing) => return Err(JobError::Unknown(id).into()),
                Err(other) => return Err(other.into()),
            }
        }
        Err(JobError::Contended(id).into())
    }

    /// What a change brings with it, whoever makes it.
    fn with_what_follows(&self, before: &JobState, wanted: JobState) -> JobState {
        let wanted = self.placement.elsewhere(before, wanted);
        count_used(before, wanted, self.ctx.clock.wall_ms()).set_alarm()
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
            Err(ItemError::Missing) => Err(JobError::Unknown(id).into()),
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
        let flow = Arc::clone(self);
        let writing = self.ctx.tasks.spawn(async move {
            let patch = Patch {
                id: wanted.job_id,
                expect: before.version,
                set,
            };
            let version = flow.writer.patch(patch).await?;
            let changed = Changed {
                before,
                after: StoredJob {
                    state: wanted,
                    version,
                },
            };
            flow.changed(&changed);
            Ok(changed)
        });
        writing.await.unwrap_or_else(|error| {
            Err(ItemError::Unknown {
                reason: error.to_string(),
            })
        })
    }
}

#[cfg(test)]
mod tests;
