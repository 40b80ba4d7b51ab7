//! Jobs that waited for others: they are looked at when they wait no more.

use std::sync::Arc;

use fairlead_job::{Input, Stage};
use fairlead_store::JobState;

use crate::{
    base::errors::Refusal,
    core::Core,
    known::reuse::{Entry, why_none},
    lifecycle::reuse::free,
};

use super::look_up::{Asking, entry_ids, inputs_of, leaves_outputs, may_take};

impl Core {
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
        let spec = self.specs(&[&released]).await?.pop().flatten();
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
    /// it. It runs itself if another run of the same thing has ended otherwise meanwhile.
    pub(crate) async fn joined_result(
        self: &Arc<Self>,
        waiting: &JobState,
        taken: JobState,
    ) -> Result<JobState, Refusal> {
        if taken.reused_from.is_none() {
            return Ok(taken);
        }
        self.write_results().await?;
        let entries = self.docs.read_some::<Entry>(&entry_ids(waiting)).await?;
        let why = why_none(entries.iter().map(|(_, stored)| &stored.doc));
        let now_ms = self.clock.wall_ms();
        Ok(why.map_or(taken, |why| free(waiting, &why, now_ms)))
    }
}
