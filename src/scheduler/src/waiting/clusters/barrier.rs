//! The barrier of a cluster: answers `wait_peer` of testboxes, and tells people which nodes are missing.

use std::sync::Arc;

use fairlead_api::{Peer, PeersAnswer};
use fairlead_job::{JobId, Stage};
use fairlead_store::{ClusterPlace, JobState};

use super::of;
use crate::waiting::WaitingFlow;
use fairlead_base::{
    budget::Identity,
    errors::{JobError, Refusal},
};
use fairlead_lifecycle::{after_report::Speaker, report::Report};

/// How long a request is held, less than anybody waits for an answer; the testbox asks again.
const WAIT_MS: u64 = 8_000;

impl WaitingFlow {
    /// Answers when all nodes of a job's cluster wait for each other, or after a while that they do not yet.
    pub(crate) async fn wait_for_peers(
        self: &Arc<Self>,
        id: JobId,
        report: &Report,
    ) -> Result<PeersAnswer, Refusal> {
        let deadline = self.ctx.clock.now().0.saturating_add(WAIT_MS);
        let mut changes = self.jobs.changes.listen();
        if report.token.is_none() {
            return Err(JobError::NoToken.into());
        }
        let own = self.jobs.stored_job(id).await;
        let own =
            own.map_err(|refusal| self.jobs.to_stranger(id, report.token.as_deref(), refusal))?;
        let jobs = self.may_ask(&own.state, report)?;
        let _place = self.ctx.wait_place(Identity::Account(own.state.account))?;
        loop {
            let found = self.look_at_cluster(&jobs).await?;
            let own = found.iter().flatten().find(|job| job.state.job_id == id);
            let own = own.ok_or(JobError::Unknown(id))?;
            self.may_ask(&own.state, report)?;
            let place = own.state.cluster.as_ref();
            // Who is told to stop hears of that by its heartbeat, and does not begin before.
            let through = place.is_some_and(ClusterPlace::is_through) && !own.state.stop_asked;
            self.jobs.live.renew(id, self.ctx.clock.now());
            let left = deadline.saturating_sub(self.ctx.clock.now().0);
            if through || left == 0 || self.ctx.tasks.draining.is_cancelled() {
                let peers = found.into_iter().flatten().map(|job| peer(job.state));
                return Ok(PeersAnswer {
                    open: through,
                    peers: peers.collect(),
                });
            }
            self.jobs.any_changes(&mut changes, &jobs, deadline).await;
        }
    }

    /// All jobs of the asker's cluster, if it has one and this is its present attempt.
    fn may_ask(&self, state: &JobState, report: &Report) -> Result<Vec<JobId>, Refusal> {
        let id = state.job_id;
        let speaker = self
            .jobs
            .speaker(state, report.token.as_deref(), report.attempt, None)?;
        let Some((_, jobs)) = of(state) else {
            return Err(JobError::NoPeers(id).into());
        };
        let reason = || state.reason.clone();
        if state.stage.is_terminal() {
            return Err(JobError::EndedWaiting {
                id,
                reason: reason(),
            }
            .into());
        }
        if speaker != Speaker::Present || !state.stage.is_held() {
            return Err(JobError::PutBack {
                id,
                reason: reason(),
            }
            .into());
        }
        if state.stage < Stage::WaitPeer {
            let stage = state.stage;
            return Err(JobError::NotAtBarrier { id, stage }.into());
        }
        Ok(jobs)
    }
}

fn peer(state: JobState) -> Peer {
    let place = state.cluster.unwrap_or_default();
    Peer {
        job_id: state.job_id.to_string(),
        job_stage: state.stage.into(),
        node_roles: place.roles,
        host: state.host,
        address: place.address,
    }
}
