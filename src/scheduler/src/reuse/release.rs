//! Jobs that waited for others: they are looked at when they wait no more.

use std::sync::Arc;

use fairlead_job::{Input, JobId, Stage};
use fairlead_store::JobState;

use crate::reuse::ReuseFlow;
use fairlead_base::errors::Refusal;
use fairlead_known::reuse::{Entry, why_none};
use fairlead_lifecycle::reuse::{free, is_too_old, joined};

use super::{
    fate::words_too_old,
    look_up::{Asking, entry_ids, inputs_of, leaves_outputs, may_take},
};

impl ReuseFlow {
    /// A job that waits for no other job from now on, as it goes on: it has a result, waits for one, or runs.
    pub(crate) async fn released_result(
        self: &Arc<Self>,
        mut released: JobState,
    ) -> Result<JobState, Refusal> {
        let asks = released
            .reuse
            .as_ref()
            .is_some_and(|reuse| reuse.within_s > 0);
        if !asks || released.stage != Stage::Submit || released.shards.is_some() {
            return Ok(released);
        }
        let spec = self.jobs.specs(&[&released]).await?.pop().flatten();
        let Some(spec) = spec else {
            return Ok(released);
        };
        if released
            .reuse
            .as_ref()
            .is_some_and(|reuse| reuse.key.is_empty())
        {
            let inputs = inputs_of(&released, &Input::folders(&spec).unwrap_or_default());
            let key = self.key_of(&spec, &inputs);
            if let Some(reuse) = released.reuse.as_deref_mut() {
                reuse.key = key;
            }
        }
        if !may_take(&released) {
            return Ok(released);
        }
        let has_outputs = leaves_outputs(&spec);
        self.take_for(&mut [Asking {
            state: &mut released,
            has_outputs,
        }])
        .await;
        if may_take(&released) {
            self.note_states(&mut [&mut released]).await;
        }
        Ok(released)
    }

    /// A job that waited for the result of another one, as it goes on. `taken`: with that result, if the other one has
    /// it. It runs itself if another run of the same thing has ended otherwise meanwhile, or if the other one took a
    /// result that is too old for this job.
    pub(crate) async fn joined_result(
        self: &Arc<Self>,
        waiting: &JobState,
        taken: JobState,
    ) -> Result<JobState, Refusal> {
        let Some(from) = taken.reused_from else {
            return Ok(taken);
        };
        self.write_results().await?;
        let entries = self
            .ctx
            .docs
            .read_some::<Entry>(&entry_ids(waiting))
            .await?;
        let mut why = why_none(entries.iter().map(|(_, stored)| &stored.doc));
        let now_ms = self.ctx.clock.wall_ms();
        if why.is_none() && joined(waiting) != Some(from) {
            why = self.too_old(waiting, from, now_ms).await?;
        }
        Ok(why.map_or(taken, |why| free(waiting, &why, now_ms)))
    }

    /// Why a job does not take this result, which another job took for its own: each says how old a result may be.
    async fn too_old(
        &self,
        waiting: &JobState,
        from: JobId,
        now_ms: u64,
    ) -> Result<Option<String>, Refusal> {
        let Some(origin) = self.ctx.store.get(&[from]).await?.pop().flatten() else {
            return Ok(Some(format!(
                "job {from}, which ran the same thing, is gone"
            )));
        };
        let end_ms = origin.state.end_ms;
        Ok(is_too_old(waiting, end_ms, now_ms).then(|| words_too_old(from, end_ms)))
    }
}
