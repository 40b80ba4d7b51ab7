//! Grants: the jobs that were claimed for a host, with all that it needs to run them.

use std::sync::Arc;

use fairlead_api::{Grant, GrantInput};
use fairlead_job::{BOOTED, FieldError, Input, JobId, Spec, TboxType, outputs};
use fairlead_store::JobState;

use crate::{hosts::HostFlow, jobs::specs::hide_receivers};
use fairlead_base::errors::Refusal;
use fairlead_known::{host_turns::HostTurn, open_requests::KnownClaim};
use fairlead_lifecycle::attempt::{without_body, without_fields, without_key};

impl HostFlow {
    /// What the host gets for each of these jobs.
    pub(super) async fn grants(
        self: &Arc<Self>,
        turn: &HostTurn,
        ids: &[JobId],
    ) -> Result<Vec<Grant>, Refusal> {
        let held = self.dispatching.still_of(turn.host(), turn.session(), ids);
        let wanted: Vec<&JobState> = held.iter().map(|job| &job.state).collect();
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let bodies = match self.jobs.specs(&wanted).await {
            Ok(bodies) => bodies,
            Err(error) => {
                for job in &held {
                    let claim = KnownClaim::of(&job.state);
                    self.jobs
                        .give_back(&claim, "its body could not be read")
                        .await;
                }
                return Err(error.into());
            }
        };
        let mut grants = Vec::new();
        for (job, body) in held.into_iter().zip(bodies) {
            let Some(mut spec) = body else {
                self.put_off(&job.state, without_body).await;
                continue;
            };
            if self.ctx.sealer.open_secrets(&mut spec).is_err() {
                self.put_off(&job.state, without_key).await;
                continue;
            }
            hide_receivers(&mut spec);
            let Ok(grant) = self.grant(&job.state, spec) else {
                self.put_off(&job.state, without_fields).await;
                continue;
            };
            self.note_boot(&job.state);
            grants.push(grant);
        }
        Ok(grants)
    }

    /// A machine has what it boots for this job from now on.
    fn note_boot(&self, state: &JobState) {
        let booted = state.prefer.iter().find(|tag| tag.starts_with(BOOTED));
        if let Some(booted) = booted.filter(|_| state.tbox_type == TboxType::Hw)
            && let Some(mut host) = self.lab.hosts.0.get_mut(&state.host)
        {
            host.booted = Some(booted.clone());
        }
    }

    fn grant(&self, state: &JobState, job: Spec) -> Result<Grant, FieldError> {
        let takes_all = state.tbox_type == TboxType::Hw;
        let (inputs, outputs) = content(state, &job)?;
        Ok(Grant {
            job_id: state.job_id.to_string(),
            attempt: state.attempt,
            claim_token: state.claim_token.clone(),
            job_token: self
                .ctx
                .sealer
                .job_token(state.job_id, state.attempt, &state.claim_token),
            tbox_type: state.tbox_type.as_str().to_owned(),
            memory_mb: if takes_all { 0 } else { state.memory_mb },
            guest_memory_mb: Some(state.guest_memory_mb).filter(|mb| *mb > 0),
            cpus: if takes_all { 0 } else { state.cpus },
            timeout_s: state.timeout_s,
            result_root: state.result_root.clone(),
            stop_when_cut_off: state.stop_when_cut_off,
            log_delay_ms: self.ctx.config.files_in.log_delay_ms(),
            inputs,
            outputs,
            job,
        })
    }

    /// A claimed job that cannot be handed out as it is in the store, or to this host.
    pub(crate) async fn put_off(
        self: &Arc<Self>,
        state: &JobState,
        next: impl Fn(&JobState, u64) -> JobState + Send + Sync,
    ) {
        let (token, now_ms) = (state.claim_token.clone(), self.ctx.clock.wall_ms());
        let outcome = self
            .jobs
            .change(state.job_id, |state| {
                let same = state.claim_token == token && state.stage.is_held();
                Ok(same.then(|| next(state, now_ms)))
            })
            .await;
        match outcome {
            Ok(changed) => {
                let (stage, reason) = (changed.after.state.stage, &changed.after.state.reason);
                tracing::warn!(job_id = %state.job_id, %stage, reason, "the job could not be handed out");
            }
            Err(refusal) => {
                tracing::warn!(job_id = %state.job_id, error = %refusal, "the job could neither be handed out nor put back");
            }
        }
    }
}

/// What a job gets as its inputs and where, and the paths of what it leaves.
fn content(state: &JobState, job: &Spec) -> Result<(Vec<GrantInput>, Vec<String>), FieldError> {
    let is_lister = state.shard.is_some_and(|place| place.n == 0);
    let outputs = if is_lister {
        // It only says which tests there are.
        Vec::new()
    } else {
        outputs(job)?
    };
    if state.inputs.is_empty() {
        return Ok((Vec::new(), outputs));
    }
    let inputs = state.inputs.iter().zip(Input::folders(job)?);
    let inputs = inputs.map(|(id, folder)| GrantInput {
        id: id.clone(),
        folder,
    });
    Ok((inputs.collect(), outputs))
}
