//! Finds the spec of a job: its own body; of a shard its parent's, cut to its part.

use std::sync::Arc;

use fairlead_job::{CALLBACK, JobId, NOTIFY, Shards, Spec};
use fairlead_store::{DocKind, JobState, StoreError};
use serde_json::json;

use crate::jobs::JobFlow;
use fairlead_base::errors::{JobError, Refusal};
use fairlead_known::plans::{Plan, id_of};

/// Where the plan of a parent is among its fields, in memory only.
const PLAN: &str = "shard_plan";

impl JobFlow {
    /// What each of these jobs runs. `None`: its body, or its parent's, is not in the store.
    ///
    /// Only the state says that a job is a shard: anybody can write anything in a body.
    pub(crate) async fn specs(&self, jobs: &[&JobState]) -> Result<Vec<Option<Spec>>, StoreError> {
        let ids: Vec<JobId> = jobs.iter().map(|state| state.job_id).collect();
        let bodies = self.ctx.store.get_bodies(&ids).await?;
        let mut specs = Vec::with_capacity(bodies.len());
        for (state, body) in jobs.iter().zip(bodies) {
            specs.push(match state.shard {
                Some(place) if place.has_own_body() => body.map(|mut spec| {
                    spec.insert("shard_of".to_owned(), json!(place.of));
                    spec.insert("shard".to_owned(), json!(place.n));
                    spec
                }),
                Some(place) if body.is_some() => {
                    let whole = self.find_parent_spec(place.of).await?;
                    whole.and_then(|whole| cut(&whole, place.of, place.n))
                }
                _ => body,
            });
        }
        Ok(specs)
    }

    /// The same of one job for people, of whom many read at once.
    pub(crate) async fn shown_spec(&self, state: &JobState) -> Result<Option<Spec>, StoreError> {
        if state.shard.is_some() {
            return Ok(self.specs(&[state]).await?.pop().flatten());
        }
        self.reader.body(state.job_id).await
    }

    /// What the shards of a parent have in common.
    pub(crate) async fn parent_spec(&self, id: JobId) -> Result<Arc<Spec>, Refusal> {
        let found = self.find_parent_spec(id).await?;
        Ok(found.ok_or(JobError::Unknown(id))?)
    }

    /// Which tests each shard of a parent runs, once they are packed.
    pub(crate) async fn plan_of(&self, id: JobId) -> Result<Option<Plan>, StoreError> {
        let parent = self.ctx.store.get(&[id]).await?.pop().flatten();
        let sharding = parent.and_then(|parent| parent.state.shards);
        let Some(sharding) = sharding.filter(|sharding| !sharding.plan.is_empty()) else {
            return Ok(None);
        };
        let plan = id_of(id, &sharding.plan);
        let doc = self.ctx.store.get_doc(DocKind::Plan, &plan).await?;
        Ok(doc.and_then(|doc| serde_json::from_value(doc.body).ok()))
    }

    pub(crate) async fn find_parent_spec(
        &self,
        id: JobId,
    ) -> Result<Option<Arc<Spec>>, StoreError> {
        if let Some(kept) = self.parents.spec(id) {
            return Ok(Some(kept));
        }
        let mut bodies = self.ctx.store.get_bodies(&[id]).await?;
        let Some(mut spec) = bodies.pop().flatten() else {
            return Ok(None);
        };
        let shards = Shards::of(&spec).ok().flatten();
        if shards.is_some_and(|shards| shards.list.is_some()) {
            let Some(plan) = self.plan_of(id).await? else {
                // Its tests are not packed yet.
                return Ok(Some(Arc::new(spec)));
            };
            spec.insert(PLAN.to_owned(), json!(plan.tests));
        }
        let spec = Arc::new(spec);
        self.parents.keep_spec(id, &spec);
        Ok(Some(spec))
    }
}

/// A part of what the parent runs; `None`: the parent's body names no shards, or the plan of its tests is not there.
pub(crate) fn cut(whole: &Spec, parent: JobId, n: u16) -> Option<Spec> {
    let shards = Shards::of(whole).ok().flatten()?;
    if n == 0 {
        return Some(shards.list_spec(whole, parent));
    }
    let mut spec = shards.spec(whole, parent, n);
    if shards.list.is_some() {
        let plan = spec.shift_remove(PLAN)?;
        let all = plan.as_array()?;
        let tests = all.get(usize::from(n.saturating_sub(1)))?;
        spec.insert("shard_tests".to_owned(), tests.clone());
        spec.insert("shard_total".to_owned(), json!(all.len()));
    }
    Some(spec)
}

/// Takes out of an opened spec what only the receivers of webhooks share with the scheduler. No job sees it. The address of
/// a chat lets in whoever knows it.
pub(crate) fn hide_receivers(spec: &mut Spec) {
    spec.shift_remove(NOTIFY);
    if let Some(secrets) = spec.get_mut("secrets").and_then(|it| it.as_object_mut()) {
        for field in [CALLBACK, NOTIFY] {
            secrets.shift_remove(field);
        }
    }
}
