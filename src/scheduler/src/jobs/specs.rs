//! Finds the spec of a job: its own body; of a shard its parent's, cut to its part.

use std::sync::Arc;

use fairlead_job::{CALLBACK, JobId, Shards, Spec};
use fairlead_store::{JobState, StoreError};

use crate::{
    base::errors::{JobError, Refusal},
    core::Core,
};

impl Core {
    /// What each of these jobs runs. `None`: its body, or its parent's, is not in the store.
    ///
    /// Only the state says that a job is a shard: anybody can write anything in a body.
    pub(crate) async fn specs(&self, jobs: &[&JobState]) -> Result<Vec<Option<Spec>>, StoreError> {
        let ids: Vec<JobId> = jobs.iter().map(|state| state.job_id).collect();
        let bodies = self.store.get_bodies(&ids).await?;
        let mut specs = Vec::with_capacity(bodies.len());
        for (state, body) in jobs.iter().zip(bodies) {
            specs.push(match state.shard {
                Some(place) if body.is_some() => {
                    let whole = self.find_parent_spec(place.of).await?;
                    whole.and_then(|whole| cut(&whole, place.of, place.n))
                }
                _ => body,
            });
        }
        Ok(specs)
    }

    /// What the shards of a parent have in common.
    pub(crate) async fn parent_spec(&self, id: JobId) -> Result<Arc<Spec>, Refusal> {
        let found = self.find_parent_spec(id).await?;
        Ok(found.ok_or(JobError::Unknown(id))?)
    }

    async fn find_parent_spec(&self, id: JobId) -> Result<Option<Arc<Spec>>, StoreError> {
        if let Some(kept) = self.waiting.parents.spec(id) {
            return Ok(Some(kept));
        }
        let mut bodies = self.store.get_bodies(&[id]).await?;
        let Some(spec) = bodies.pop().flatten().map(Arc::new) else {
            return Ok(None);
        };
        self.waiting.parents.keep_spec(id, &spec);
        Ok(Some(spec))
    }
}

/// A part of what the parent runs; `None`: the parent's body names no shards.
fn cut(whole: &Spec, parent: JobId, n: u16) -> Option<Spec> {
    let shards = Shards::of(whole).ok().flatten()?;
    Some(shards.spec(whole, parent, n))
}

/// Takes out of an opened spec what only the receiver of a webhook shares with the scheduler. No job sees it.
pub(crate) fn hide_callback(spec: &mut Spec) {
    if let Some(secrets) = spec.get_mut("secrets").and_then(|it| it.as_object_mut()) {
        secrets.shift_remove(CALLBACK);
    }
}
