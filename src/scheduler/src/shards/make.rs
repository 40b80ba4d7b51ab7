//! Makes the shards of a parent. Those that are in the store already stay as they are.

use std::sync::Arc;

use fairlead_job::{FieldError, Health, Input, JobFields, JobId, Shards, Spec, Stage};
use fairlead_store::{JobState, NewJob};
use serde_json::json;

use crate::{
    jobs::specs::cut,
    reuse::look_up::{inputs_of, leaves_outputs},
    shards::ShardFlow,
    submission::built_jobs::{BuiltJobs, Ids},
};
use fairlead_base::errors::Refusal;
use fairlead_lifecycle::{
    attempt::ended,
    shards::{nobodys_shard, shard_state},
};

impl ShardFlow {
    /// Creates these shards of a parent, by number.
    pub(super) async fn make_shards(
        self: &Arc<Self>,
        parent: &JobState,
        numbers: &[u16],
    ) -> Result<(), Refusal> {
        let id = parent.job_id;
        let is_varied = parent.shards.as_ref().is_some_and(|it| it.varied);
        let reuses = parent
            .reuse
            .as_ref()
            .is_some_and(|reuse| reuse.within_s > 0);
        let whole = if is_varied {
            Some(self.jobs.parent_spec(id).await?)
        } else if reuses {
            // Without it the submit was stored by half and never acknowledged, and nothing can be reused.
            self.jobs.find_parent_spec(id).await?
        } else {
            None
        };
        let make = |&n: &u16| {
            let body = [("shard_of", json!(id)), ("shard", json!(n))];
            let body = body.map(|(name, value)| (name.to_owned(), value));
            Ok(NewJob {
                state: self.new_shard(parent, whole.as_deref(), n),
                body: Arc::new(Spec::from_iter(body)),
            })
        };
        let mut jobs: Vec<Result<NewJob, Refusal>> = numbers.iter().map(make).collect();
        if let Some(whole) = whole.filter(|_| reuses) {
            let inputs = Input::folders(&whole).unwrap_or_default();
            let inputs = inputs_of(parent, &inputs);
            for job in jobs.iter_mut().flatten() {
                let n = job.state.shard.map_or(0, |place| place.n);
                let spec = cut(&whole, id, n).filter(|_| n > 0);
                let kind = job.state.tbox_type;
                let reuse = spec.map(|spec| {
                    self.reuse
                        .shard_reusing(parent.reuse.as_deref(), (&spec, kind), &inputs)
                });
                job.state.reuse = reuse.flatten();
            }
            let outputs = leaves_outputs(&whole);
            self.reuse
                .take_results(jobs.iter_mut().flatten().collect(), Some(outputs))
                .await;
        }
        let made = self
            .submission
            .create(BuiltJobs::from(jobs), Ids::WrittenDown)
            .await;
        made.into_iter().try_for_each(|made| made.map(drop))
    }

    /// `whole`: what the parent runs, if its shards differ.
    fn new_shard(&self, parent: &JobState, whole: Option<&Spec>, n: u16) -> JobState {
        if parent.shards.as_ref().is_some_and(|it| it.is_group()) {
            return nobodys_shard(parent, n);
        }
        let fields = whole.filter(|_| parent.shards.as_ref().is_some_and(|it| it.varied));
        let fields = fields.map(|whole| shard_fields(self, whole, parent.job_id, n));
        match fields.transpose() {
            Ok(fields) => shard_state(parent, n, fields.flatten().as_ref()),
            // The submit read them. The defaults of the site have changed since.
            Err(error) => {
                let state = shard_state(parent, n, None);
                let (stage, health) = (Stage::AbortInvalid, Health::AbortInvalid);
                ended(&state, stage, health, state.submit_ms, &error.to_string())
            }
        }
    }
}

fn shard_fields(
    flow: &ShardFlow,
    whole: &Spec,
    parent: JobId,
    n: u16,
) -> Result<Option<JobFields>, FieldError> {
    let Some(shards) = Shards::of(whole)? else {
        return Ok(None);
    };
    let spec = shards.spec(whole, parent, n);
    JobFields::parse(&spec, &flow.ctx.config.site).map(Some)
}
