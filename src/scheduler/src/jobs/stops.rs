//! Waiting jobs that people cancel, and running jobs that they stop.

use std::sync::Arc;

use fairlead_job::{Health, JobId, Stage};
use fairlead_store::JobState;
use serde_json::{Value, json};

use crate::jobs::JobFlow;
use fairlead_base::errors::{JobError, Refusal};
use fairlead_known::accounts::Who;
use fairlead_lifecycle::{
    attempt::{cancelled, to_be_stopped},
    parent::{is_released, stopping},
    shards::check_whole,
};

impl JobFlow {
    /// Cancels a waiting job. One that is cancelled stays so.
    pub(crate) async fn cancel_job(self: &Arc<Self>, who: &Who, id: JobId) -> Result<(), Refusal> {
        let now_ms = self.ctx.clock.wall_ms();
        let reason = format!("cancelled by {}", who.shown());
        let changed = self
            .change(id, |state| {
                who.check_owns(state)?;
                check_whole(state)?;
                if state.stage == Stage::Cancel {
                    return Ok(None);
                }
                if state.stage != Stage::Submit {
                    let stage = state.stage;
                    return Err(JobError::NotWaiting { id, stage }.into());
                }
                Ok(Some(cancelled(state, now_ms, &reason)))
            })
            .await?;
        if changed.before.version != changed.after.version {
            self.ctx
                .audit(&who.name, "job.cancel", &id.to_string(), Value::Null);
        }
        Ok(())
    }

    /// Stops a running job. `grace_s`: how long its script may take after the polite signal, seconds; none: as usual.
    pub(crate) async fn terminate_job(
        self: &Arc<Self>,
        who: &Who,
        id: JobId,
        grace_s: Option<u32>,
    ) -> Result<(), Refusal> {
        let reason = format!("stopped by {}", who.shown());
        let now_ms = self.ctx.clock.wall_ms();
        let changed = self
            .change(id, |state| {
                who.check_owns(state)?;
                check_whole(state)?;
                if state.stage == Stage::Submit && is_released(state) {
                    let told = stopping(state, Health::Terminate, now_ms, &reason);
                    return Ok(Some(JobState {
                        stop_grace_s: told.stop_grace_s.or(grace_s),
                        ..told
                    }));
                }
                if !state.stage.is_held() {
                    let stage = state.stage;
                    return Err(JobError::NotRunning { id, stage }.into());
                }
                let told = to_be_stopped(state, now_ms, &reason);
                Ok(told.map(|told| JobState {
                    stop_grace_s: grace_s,
                    ..told
                }))
            })
            .await?;
        let detail = json!({ "grace_s": grace_s });
        self.ctx
            .audit(&who.name, "job.terminate", &id.to_string(), detail);
        self.tell_to_stop(&changed.after.state);
        Ok(())
    }
}
