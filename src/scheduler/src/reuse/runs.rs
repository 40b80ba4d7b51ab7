//! Notes which jobs run, so that others that would run the same thing wait for their results.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use fairlead_job::JobId;
use fairlead_store::{ItemError, JobState, NewJob, StoreError};
use futures_util::{StreamExt, stream};

use crate::reuse::ReuseFlow;
use fairlead_base::{errors::Refusal, storage::small_doc::Stored};
use fairlead_known::reuse::{Entry, entry_id};
use fairlead_lifecycle::{
    attempt::MISSING_MS,
    reuse::{are_twins, joining},
};

use super::look_up::may_take;

/// How often a note is tried when somebody else was faster.
const TRIES_MAX: usize = 4;
/// Notes that are written side by side.
const ABREAST: usize = 32;

/// Whether a job waits for nothing, and would run.
fn runs(state: &JobState) -> bool {
    may_take(state) && state.waits.is_none()
}

/// Whether a job must run itself, whoever runs the same thing: it checks a result, or nobody's result will do.
fn runs_alone(state: &JobState) -> bool {
    state
        .reuse
        .as_ref()
        .is_some_and(|reuse| reuse.audit_of.is_some() || reuse.joined.is_some())
}

impl ReuseFlow {
    /// Notes that these jobs run, or lets them wait for others that run the same thing already. What is not noted costs
    /// a run, so errors are only told.
    pub(crate) async fn note_runs(self: &Arc<Self>, jobs: &mut [Result<NewJob, Refusal>]) {
        let mut states: Vec<&mut JobState> = jobs
            .iter_mut()
            .flatten()
            .map(|job| &mut job.state)
            .filter(|state| runs(state) && !runs_alone(state))
            .collect();
        self.note_states(&mut states).await;
    }

    /// The same for states.
    pub(super) async fn note_states(self: &Arc<Self>, states: &mut [&mut JobState]) {
        // Of several with one key the first runs.
        let mut first: BTreeMap<String, JobId> = BTreeMap::new();
        let mut open: Vec<&mut JobState> = Vec::new();
        for state in states.iter_mut() {
            let noted = self.noted_id(state);
            if let Some(id) = first.get(&noted) {
                **state = joining(state, *id);
                continue;
            }
            first.insert(noted, state.job_id);
            open.push(state);
        }
        for _ in 0..TRIES_MAX {
            if open.is_empty() {
                return;
            }
            open = match self.try_note(open).await {
                Ok(open) => open,
                Err(error) => {
                    tracing::warn!(%error, "which jobs run could not be noted; others may run the same thing");
                    return;
                }
            };
        }
    }

    /// The document in which an account's runs are noted: the lab's, if the account shares its results.
    fn noted_id(&self, state: &JobState) -> String {
        let key = state.reuse.as_ref().map_or("", |reuse| reuse.key.as_str());
        let own = Some(state.account.as_str());
        let is_shared = self.people.accounts.shares_results(&state.account);
        entry_id(key, own.filter(|_| !is_shared))
    }

    /// One try. Answers those for which somebody else was faster.
    async fn try_note<'s>(
        self: &Arc<Self>,
        mut states: Vec<&'s mut JobState>,
    ) -> Result<Vec<&'s mut JobState>, StoreError> {
        let ids: Vec<String> = states.iter().map(|state| self.noted_id(state)).collect();
        let read = self.ctx.docs.read_some::<Entry>(&ids).await?;
        let read: BTreeMap<String, Stored<Entry>> = read.into_iter().collect();
        let found = self.noted(&read).await?;
        let now_ms = self.ctx.clock.wall_ms();
        states.retain_mut(|state| {
            let entry = read.get(&self.noted_id(state)).map(|stored| &stored.doc);
            let entry = entry.filter(|entry| entry.bad.is_empty());
            let other = entry.and_then(|entry| entry.running);
            let other = other.filter(|id| self.is_twin(state, *id, found.get(id), now_ms));
            if let Some(other) = other {
                **state = joining(state, other);
            }
            other.is_none()
        });
        let writes: Vec<(String, Option<Stored<Entry>>, JobId)> = states
            .iter()
            .map(|state| {
                let id = self.noted_id(state);
                let stored = read.get(&id).cloned();
                (id, stored, state.job_id)
            })
            .collect();
        let writes = stream::iter(writes).map(|(id, stored, job)| {
            let flow = Arc::clone(self);
            async move {
                let entry = stored.as_ref().map(|stored| stored.doc.clone());
                let mut entry = entry.unwrap_or_default();
                entry.runs(job, now_ms);
                let written = flow.ctx.docs.put(&id, stored.as_ref(), Some(&entry)).await;
                matches!(
                    written,
                    Err(ItemError::Conflict { .. } | ItemError::Missing)
                )
                .then_some(job)
            }
        });
        let left: Vec<Option<JobId>> = writes.buffer_unordered(ABREAST).collect().await;
        let left: BTreeSet<JobId> = left.into_iter().flatten().collect();
        states.retain(|state| left.contains(&state.job_id));
        Ok(states)
    }

    /// Whether a noted job runs the same thing for the same account. One that is not in the store was noted by a submit
    /// that goes on: it comes, or the job that waits for it runs itself a minute later.
    fn is_twin(
        &self,
        state: &JobState,
        other: JobId,
        found: Option<&JobState>,
        now_ms: u64,
    ) -> bool {
        if other == state.job_id {
            return false;
        }
        let Some(found) = found else {
            let born_ms = other.born_s().saturating_mul(1_000);
            let is_young = now_ms < born_ms.saturating_add(MISSING_MS);
            return is_young && !self.people.accounts.shares_results(&state.account);
        };
        let is_live = !found.stage.is_terminal() && !found.stop_asked;
        // Outputs are its account's alone until somebody takes them.
        is_live && are_twins(state, found)
    }

    /// The noted jobs that are in the store.
    async fn noted(
        &self,
        read: &BTreeMap<String, Stored<Entry>>,
    ) -> Result<BTreeMap<JobId, JobState>, StoreError> {
        let noted: BTreeSet<JobId> = read
            .values()
            .filter_map(|stored| stored.doc.running)
            .collect();
        if noted.is_empty() {
            return Ok(BTreeMap::new());
        }
        let noted: Vec<JobId> = noted.into_iter().collect();
        let found = self.ctx.store.get_readable(&noted).await?;
        let states = found.into_iter().map(|job| job.state);
        Ok(states.map(|state| (state.job_id, state)).collect())
    }
}
