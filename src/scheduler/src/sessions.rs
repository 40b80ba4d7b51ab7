//! Sessions of agents: what a host says it has against what we think it has, heartbeats, stop orders
//! (DESIGN section 6).
//!
//! The same session and request number get the same answer; a grant that was never delivered goes back; a
//! new session of a hw box gets an unstarted job again and loses a started one; a vm or dc host keeps the
//! jobs that it names.

use std::sync::Arc;

use fairlead_api::{ErrorCode, HeartbeatAnswer, HeartbeatRequest, HeldJob, Renewal, StopOrder};
use fairlead_dispatch::Event;
use fairlead_job::{JobId, Stage};
use fairlead_store::JobState;

use crate::{
    accounts::check_name,
    consume::{Ask, HELD_MAX, Offerer},
    core::Core,
    hosts::Host,
    jobs::Live,
    refusal::Refusal,
};

/// How long a stopped job may take to end by itself, seconds.
const GRACE_S: u32 = 10;

impl Core {
    /// Notes what the host says of itself. Returns whether this is a new session of it.
    pub(crate) fn meet(&self, ask: &Ask) -> Result<bool, Refusal> {
        let (now, wall_ms) = (self.clock.now(), self.clock.wall_ms());
        let offerer = &ask.offerer;
        self.hosts.update(&offerer.host, |host| {
            let new = host.session != offerer.session;
            if !new && offerer.request < host.request {
                return Err(Refusal::new(
                    ErrorCode::Conflict,
                    format!(
                        "request {} came after request {} of the same session",
                        offerer.request, host.request
                    ),
                    "ask again with a greater number",
                ));
            }
            let said = ask.host.clone();
            *host = Host {
                macs: std::mem::take(&mut host.macs),
                session: offerer.session.clone(),
                request: offerer.request,
                waiting: host.waiting,
                seen: Some(now),
                seen_ms: wall_ms,
                ..said
            };
            Ok(new)
        })?
    }

    /// Compares what we think the host has with what it says. Returns jobs to hand out (again).
    pub(crate) async fn reconcile(self: &Arc<Self>, ask: &Ask) -> Vec<JobId> {
        let mut again = Vec::new();
        for live in self.live.of_host(&ask.offerer.host) {
            let state = &live.stored.state;
            let (id, token) = (state.job_id, state.claim_token.as_str());
            let named = ask
                .running
                .iter()
                .any(|held| held.job_id.parse() == Ok(id) && held.claim_token == token);
            let same_session = state.session == ask.offerer.session;
            if named {
                self.live.renew(id, self.clock.now());
                if !same_session {
                    self.adopt(id, token, &ask.offerer).await;
                }
            } else if same_session {
                if state.stage == Stage::Dispatch && state.request == ask.offerer.request {
                    again.push(id);
                } else if state.stage == Stage::Dispatch && state.request <= ask.seen {
                    self.give_back(id, token, "the host never took it").await;
                }
                // Else: an answer on its way, or a last report on its way. The lease decides.
            } else if state.stage == Stage::Dispatch && ask.is_hw() {
                if self.claim_again(id, token, &ask.offerer).await.is_some() {
                    again.push(id);
                }
            } else {
                self.lose(id, token, "its host started anew").await;
            }
        }
        again
    }

    /// A job goes on under its host's new session.
    async fn adopt(self: &Arc<Self>, id: JobId, token: &str, offerer: &Offerer) {
        let outcome = self
            .change(id, |state| {
                let same = state.claim_token == token && state.stage.is_held();
                Ok(same.then(|| JobState {
                    session: offerer.session.clone(),
                    request: offerer.request.saturating_sub(1),
                    ..state.clone()
                }))
            })
            .await;
        if let Err(refusal) = outcome {
            tracing::warn!(job_id = %id, error = refusal.body.message, "a job could not follow its host's new session");
        }
    }

    /// An agent says that it lives and what it has.
    pub(crate) async fn heartbeat(
        &self,
        name: &str,
        beat: HeartbeatRequest,
    ) -> Result<HeartbeatAnswer, Refusal> {
        check_name("host", name)?;
        if beat.running.len() > HELD_MAX {
            return Err(Refusal::new(
                ErrorCode::BadField,
                format!("running: {} jobs are over {HELD_MAX}", beat.running.len()),
                "one host cannot have so many",
            ));
        }
        let (now, wall_ms) = (self.clock.now(), self.clock.wall_ms());
        if self.hosts.get(name).is_some() {
            self.hosts.update(name, |host| {
                host.seen = Some(now);
                host.seen_ms = wall_ms;
                host.free_memory_mb = beat.free_memory_mb;
            })?;
        }
        let stop = self.stop_orders(name, &beat.running).await?;
        Ok(HeartbeatAnswer {
            lease_ms: self.config.lease_ms,
            heartbeat_ms: self.config.heartbeat_ms,
            stop,
            renewed: self.renewed(&beat.running, wall_ms),
        })
    }

    /// The running jobs whose end was put off beyond their own limit.
    fn renewed(&self, running: &[HeldJob], wall_ms: u64) -> Vec<Renewal> {
        let held = running.iter().filter_map(|held| {
            let live = self.live.get(held.job_id.parse().ok()?)?;
            let state = &live.stored.state;
            let own_limit_ms = state
                .running_ms
                .saturating_add(state.timeout_s.saturating_mul(1000));
            let put_off = state.stage == Stage::Running
                && state.claim_token == held.claim_token
                && state.deadline_ms > own_limit_ms;
            put_off.then(|| Renewal {
                job_id: held.job_id.clone(),
                attempt: held.attempt,
                left_s: state.deadline_ms.saturating_sub(wall_ms).div_ceil(1000),
            })
        });
        held.collect()
    }

    /// Renews what the host rightly has, and names what it must stop.
    pub(crate) async fn stop_orders(
        &self,
        host: &str,
        running: &[HeldJob],
    ) -> Result<Vec<StopOrder>, Refusal> {
        let mut orders = Vec::new();
        for held in running {
            let live = self.held_as_said(host, held).await?;
            match live {
                Some(live) => {
                    self.live.renew(live.stored.state.job_id, self.clock.now());
                    if live.stored.state.stop_asked {
                        orders.push(order(held, "terminate", "somebody asked to stop it"));
                    }
                }
                None => orders.push(order(held, "", "it is no longer this host's")),
            }
        }
        Ok(orders)
    }

    /// The job, if it is still this claim's; one that another replica claimed is read from the store.
    async fn held_as_said(&self, host: &str, held: &HeldJob) -> Result<Option<Live>, Refusal> {
        let Ok(id) = held.job_id.parse::<JobId>() else {
            return Ok(None);
        };
        let right = |state: &JobState| {
            state.host == host && state.claim_token == held.claim_token && state.stage.is_held()
        };
        if let Some(live) = self.live.get(id) {
            return Ok(right(&live.stored.state).then_some(live));
        }
        let stored = self
            .store
            .get(&[id])
            .await?
            .pop()
            .flatten()
            .filter(|stored| right(&stored.state));
        Ok(stored.map(|stored| {
            let now = self.clock.now();
            self.engine
                .tell(Event::JobHeld(crate::jobs::running(&stored)));
            self.live.put(stored.clone(), now);
            Live {
                stored,
                renewed: now,
            }
        }))
    }
}

fn order(held: &HeldJob, health: &str, reason: &str) -> StopOrder {
    StopOrder {
        job_id: held.job_id.clone(),
        attempt: held.attempt,
        health: health.to_owned(),
        reason: reason.to_owned(),
        grace_s: GRACE_S,
    }
}
