//! Sessions of agents: compares the jobs that a host names with those that the replica knows; heartbeats; stop orders.
//!
//! - The same session and request number get the same answer.
//! - A grant that was never delivered goes back.
//! - A new session of a hw machine gets an unstarted job again, and loses a started one.
//! - A vm or dc host keeps the jobs that it names.

use std::{collections::BTreeSet, sync::Arc};

use fairlead_api::{
    ErrorBody, HeartbeatAnswer, HeartbeatRequest, HeldJob, HostLoad, Renewal, StopOrder,
};
use fairlead_dispatch::Event;
use fairlead_job::{JobId, Stage, TboxType};
use fairlead_store::JobState;

use crate::hosts::HostFlow;
use fairlead_base::{
    budget::{Charge, Identity},
    errors::{HostError, JobError, Refusal},
    names::check_name,
};
use fairlead_known::{
    host_turns::HostTurn,
    hosts::Host,
    live_jobs::Live,
    open_requests::{KnownClaim, Requester},
    reuse::Class,
    work_request::{HELD_MAX, WorkRequest, known_load},
};
use fairlead_lifecycle::{attempt::stopped_with, engine_facts::engine_load};

/// How long a stopped job may take to end by itself, seconds.
const GRACE_S: u32 = 10;

impl HostFlow {
    /// Notes what the host says of itself.
    pub(crate) fn meet(&self, ask: &mut WorkRequest, turn: &HostTurn) -> Result<(), Refusal> {
        let (now, wall_ms) = (self.ctx.clock.now(), self.ctx.clock.wall_ms());
        ask.host.charge = Some(self.charged(&ask.offerer.host, &ask.host)?);
        self.lab.hosts.update(&ask.offerer.host, |host| {
            ask.host.registered = host.registered.take();
            ask.host.booted = host.booted.take();
            ask.offerer.class = Class::of(&ask.host).map_or_else(String::new, |class| class.text());
            let said = ask.host.clone();
            *host = Host {
                macs: std::mem::take(&mut host.macs),
                about: std::mem::take(&mut host.about),
                waiting: host.waiting,
                seen: Some(now),
                seen_ms: wall_ms,
                first_ms: match host.first_ms {
                    0 => wall_ms,
                    first_ms => first_ms,
                },
                version: host.version,
                // It may be another machine since.
                stored: host.stored && !turn.new_session && host.facts == said.facts,
                ..said
            };
        })?;
        Ok(())
    }

    /// The charge for what a host takes that says this.
    fn charged(&self, name: &str, said: &Host) -> Result<Arc<Charge>, ErrorBody> {
        let (whose, bytes) = (Identity::Account(said.account.clone()), said.bytes());
        let present = self
            .lab
            .hosts
            .0
            .get(name)
            .and_then(|host| host.charge.clone());
        match present.filter(|it| *it.whose() == whose && it.amount() == bytes) {
            Some(present) => Ok(present),
            None => Ok(Arc::new(self.ctx.budget.hosts.take(whose, bytes)?)),
        }
    }

    /// Compares what we think the host has with what it says. Returns jobs to hand out (again), and keeps room
    /// in `ask` for those that are on their way to it.
    ///
    /// What the host does not name, or is not known here of what was handed to it, is read in real time: another
    /// replica may have handed it out, or seen its end. So is all that was handed to it if it had not read the last
    /// answer with jobs: what it names may be an earlier attempt of what that brings. A refusal when a later session of the host took the turn.
    pub(crate) async fn reconcile(
        self: &Arc<Self>,
        ask: &mut WorkRequest,
        turn: &mut HostTurn,
    ) -> Result<Vec<JobId>, Refusal> {
        let host = &ask.offerer.host.clone();
        self.reread(self.doubtful(ask, turn)).await?;
        let its = self.jobs.live.of_host(host);
        let is_foreign = |live: &Live| live.stored.state.session != ask.offerer.session;
        if its.iter().any(is_foreign) {
            // Of an earlier session, unless a later one began: then it is that one's, and so is the turn.
            self.confirm_turn(turn).await?;
            ask.offerer.turn = turn.version();
        }
        let mut again = Vec::new();
        for live in its {
            again.extend(self.reconcile_job(ask, &live.stored.state).await?);
        }
        let (again, over) = ask.split_fitting(again);
        for state in over {
            self.jobs
                .give_back(&KnownClaim::of(&state), "the host has no room for it")
                .await;
        }
        if again.is_empty() {
            return Ok(Vec::new());
        }
        // They may be at the end of their lease. What it names is renewed with them, since each renewal takes the
        // place of the one before.
        let has = self.jobs.live.of_host(host);
        let has = has.iter().map(|live| &live.stored.state);
        let alive: Vec<_> = has
            .filter(|state| ask.names(state))
            .chain(&again)
            .map(|state| (state.job_id, state.claim_token.clone()))
            .collect();
        let lost = self.renew(host, &alive).await?;
        let kept = again
            .into_iter()
            .filter(|state| !lost.contains(&state.claim_token));
        Ok(kept.map(|state| state.job_id).collect())
    }

    /// Jobs of which this replica may not know who has them: those that it thinks the host has and the host does not
    /// name, and those that were handed to the host and are not known here to be its.
    fn doubtful(&self, ask: &WorkRequest, turn: &HostTurn) -> Vec<JobId> {
        let host = &ask.offerer.host;
        let its = self.jobs.live.of_host(host);
        let unnamed = its.iter().filter(|live| !ask.names(&live.stored.state));
        let handed = turn.jobs().iter().copied().filter(|id| {
            let live = self.jobs.live.get(*id);
            turn.has_unread(ask.seen) || live.is_none_or(|live| live.stored.state.host != *host)
        });
        let doubtful = unnamed.map(|live| live.stored.state.job_id).chain(handed);
        doubtful.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Settles one job that is thought to be the host's. Answers the job if it is to be handed out (again).
    async fn reconcile_job(
        self: &Arc<Self>,
        ask: &mut WorkRequest,
        state: &JobState,
    ) -> Result<Option<JobState>, Refusal> {
        let (id, token) = (state.job_id, state.claim_token.as_str());
        let same_session = state.session == ask.offerer.session;
        let unstarted = state.stage == Stage::Dispatch;
        if ask.names(state) {
            if !same_session {
                self.adopt(id, token, &ask.offerer).await;
            }
        } else if !same_session {
            if unstarted && ask.is_hw() {
                let claimed = self.dispatching.claim_again(id, token, &ask.offerer).await;
                return Ok(claimed.map(|changed| changed.after.state));
            }
            self.jobs.lose(id, token, "its host started anew").await;
        } else if unstarted && state.request == ask.offerer.request {
            return self.jobs.make_sure(state).await;
        } else if state.request > ask.seen {
            // Its answer was on its way when the host asked.
            ask.set_aside(state);
        } else if unstarted {
            let claim = KnownClaim::of(state);
            self.jobs.give_back(&claim, "the host never took it").await;
        } else {
            // It would name one whose last report is not answered.
            self.jobs.lose(id, token, "its host no longer has it").await;
        }
        Ok(None)
    }

    /// Brings what is known of these jobs up to date, in real time.
    async fn reread(&self, ids: Vec<JobId>) -> Result<(), Refusal> {
        if ids.is_empty() {
            return Ok(());
        }
        for stored in self.ctx.store.get(&ids).await?.into_iter().flatten() {
            self.jobs.observe(&stored);
        }
        Ok(())
    }

    /// A job goes on under its host's new session.
    async fn adopt(self: &Arc<Self>, id: JobId, token: &str, offerer: &Requester) {
        let outcome = self
            .jobs
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
            tracing::warn!(job_id = %id, error = %refusal, "a job could not be moved to its host's new session");
        }
    }

    /// An agent says that it lives and what it has.
    pub(crate) async fn heartbeat(
        self: &Arc<Self>,
        name: &str,
        beat: HeartbeatRequest,
    ) -> Result<HeartbeatAnswer, Refusal> {
        check_name("host", name)?;
        if beat.running.len() > HELD_MAX {
            let (given, max) = (beat.running.len(), HELD_MAX);
            return Err(HostError::TooManyHeld { given, max }.into());
        }
        let (now, wall_ms) = (self.ctx.clock.now(), self.ctx.clock.wall_ms());
        if self.lab.hosts.get(name).is_some() {
            self.lab.hosts.update(name, |host| {
                host.seen = Some(now);
                host.seen_ms = wall_ms;
                host.free_memory_mb = beat.free_memory_mb;
                host.free_cpus = beat.free_cpus;
            })?;
            self.hear_load(name, &beat)?;
        }
        let stop = self.stop_orders(name, &beat.running).await?;
        Ok(HeartbeatAnswer {
            lease_ms: self.ctx.config.lease_ms,
            heartbeat_ms: self.ctx.config.heartbeat_ms,
            stop,
            renewed: self.renewed(&beat.running),
        })
    }

    /// Notes how loaded a host is. The engine hears of it if that may change which host gets a job: jobs wait for the host,
    /// or need wait for it no longer, or others come before it.
    fn hear_load(&self, name: &str, beat: &HeartbeatRequest) -> Result<(), HostError> {
        let Some(said) = beat.load else {
            return Ok(());
        };
        let (was, load, is_hw) = self.lab.hosts.update(name, |host| {
            let load = known_load(said, &host.kinds);
            let is_hw = host.kinds.contains(&TboxType::Hw);
            (host.load.replace(load), load, is_hw)
        })?;
        let orders = |load: HostLoad| (load.loaded, load.cpu_pressure_percent);
        if is_hw || was.map(orders) == Some(orders(load)) {
            return Ok(());
        }
        if load.loaded {
            self.tell_closed();
        }
        let (host, load) = (name.to_owned(), engine_load(load));
        self.ctx.engine.tell(Event::HostLoaded { host, load });
        Ok(())
    }

    /// The running jobs whose end was put off beyond their own limit.
    pub(crate) fn renewed(&self, running: &[HeldJob]) -> Vec<Renewal> {
        let now = self.ctx.clock.now();
        let held = running.iter().filter_map(|held| {
            let live = self.jobs.live.get(held.job_id.parse().ok()?)?;
            let state = &live.stored.state;
            let own_limit_ms = state
                .running_ms
                .saturating_add(state.timeout_s.saturating_mul(1000));
            let put_off = state.stage == Stage::Running
                && state.claim_token == held.claim_token
                && state.deadline_ms > own_limit_ms;
            let limit_ms = state.deadline_ms.saturating_sub(state.running_ms);
            let ran_ms = now.0.saturating_sub(live.stage_since.0);
            put_off.then(|| Renewal {
                job_id: held.job_id.clone(),
                attempt: held.attempt,
                left_s: limit_ms.saturating_sub(ran_ms).div_ceil(1000),
            })
        });
        held.collect()
    }

    /// Renews what the host rightly has, and names what it must stop.
    pub(crate) async fn stop_orders(
        self: &Arc<Self>,
        host: &str,
        running: &[HeldJob],
    ) -> Result<Vec<StopOrder>, Refusal> {
        let mut its = Vec::with_capacity(running.len());
        for held in running {
            its.push(self.held_as_said(host, held).await?);
        }
        let named: Vec<_> = its
            .iter()
            .flatten()
            .map(|state| (state.job_id, state.claim_token.clone()))
            .collect();
        let lost = self.renew(host, &named).await?;
        let is_lost = |(_, token): &&(JobId, String)| lost.contains(token);
        for (id, token) in named.iter().filter(is_lost) {
            Box::pin(self.lose_known(*id, token)).await?;
        }
        let orders = running.iter().zip(its).filter_map(|(held, state)| {
            match state.filter(|state| !lost.contains(&state.claim_token)) {
                Some(state) => {
                    let health = stopped_with(&state)?;
                    let grace_s = state.stop_grace_s.unwrap_or(GRACE_S);
                    Some(order(held, health.as_str(), &state.reason, grace_s))
                }
                None => Some(order(held, "", "it is no longer this host's", GRACE_S)),
            }
        });
        Ok(orders.collect())
    }

    /// A lease that was found lost, and whose loss may not be recorded yet: the host must not be told before.
    async fn lose_known(self: &Arc<Self>, id: JobId, token: &str) -> Result<(), Refusal> {
        self.jobs
            .lose(id, token, "its host was not heard of in time")
            .await;
        let stored = self.jobs.stored_job(id).await?;
        let has = stored.state.stage.is_held() && stored.state.claim_token == token;
        // What is read may vanish.
        if !has && self.jobs.confirm(stored).await?.1 {
            return Ok(());
        }
        Err(JobError::LeaseNotEnded(id).into())
    }

    /// The job, if it is still this claim's. Only the store, in real time, can say that it is not.
    /// What was seen of it may never have come to be, and is not asked.
    async fn held_as_said(&self, host: &str, held: &HeldJob) -> Result<Option<JobState>, Refusal> {
        let Ok(id) = held.job_id.parse::<JobId>() else {
            return Ok(None);
        };
        let right = |state: &JobState| {
            state.host == host && state.claim_token == held.claim_token && state.stage.is_held()
        };
        if let Some(live) = self
            .jobs
            .live
            .get(id)
            .filter(|live| right(&live.stored.state))
        {
            return Ok(Some(live.stored.state.clone()));
        }
        let found = self.ctx.store.get(&[id]).await?.pop().flatten();
        Ok(found.and_then(|stored| {
            self.jobs.observe(&stored);
            Some(stored.state).filter(right)
        }))
    }
}

fn order(held: &HeldJob, health: &str, reason: &str, grace_s: u32) -> StopOrder {
    StopOrder {
        job_id: held.job_id.clone(),
        attempt: held.attempt,
        health: health.to_owned(),
        reason: reason.to_owned(),
        grace_s,
    }
}
