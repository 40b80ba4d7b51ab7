//! Hosts asking for work: sessions, offers, grants, heartbeats (DESIGN section 6).
//!
//! A host's request is one offer to the engine. An answer is repeated when the same request comes again;
//! a grant that was never delivered goes back. One box has one request open at a time: a newer one
//! replaces the older, which is answered empty.

use std::{sync::Arc, time::Duration};

use fairlead_api::{
    ConsumeAnswer, ConsumeRequest, ErrorCode, Grant, HeartbeatAnswer, HeartbeatRequest, HeldJob,
    Renewal, StopOrder,
};
use fairlead_dispatch::{Event, Millis, Offer, OfferKey};
use fairlead_job::{JobId, Stage, TboxType};
use fairlead_store::{JobState, StoredJob};
use tokio::sync::{Notify, oneshot};

use crate::{
    accounts::check_name,
    core::Core,
    hosts::{Host, group_of, kinds},
    jobs::Live,
    refusal::Refusal,
};

/// Longest time a host may wait for work, seconds.
pub(crate) const WAIT_S_MAX: u32 = 600;
/// Most jobs in one answer.
const JOBS_MAX: u32 = 256;
/// Most jobs a host may say it runs.
const HELD_MAX: usize = 10_000;
/// Most tags, devices or cache directories of a host.
const LIST_MAX: usize = 1_000;
/// An answer that the engine owes is waited for this much longer than asked, ms.
const OWED_MS: u64 = 30_000;
/// How long a stopped job may take to end by itself, seconds.
const GRACE_S: u32 = 10;

/// Who asks, as a claim records it.
#[derive(Debug, Clone)]
pub(crate) struct Offerer {
    pub(crate) host: String,
    pub(crate) group: String,
    pub(crate) memory_mb: u32,
    pub(crate) session: String,
    pub(crate) request: u64,
}

/// A request that waits for the engine's answer.
#[derive(Debug)]
pub(crate) struct Waiter {
    pub(crate) offerer: Offerer,
    pub(crate) offer: Offer,
    /// Rings when the host should hear something else before there is work.
    hurry: Arc<Notify>,
    answer: oneshot::Sender<Vec<JobId>>,
}

/// A checked request for work.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) offerer: Offerer,
    pub(crate) host: Host,
    pub(crate) jobs_max: u32,
    pub(crate) wait_s: u32,
    /// The highest request number whose answer was read.
    pub(crate) seen: u64,
    pub(crate) running: Vec<HeldJob>,
}

impl Ask {
    fn is_hw(&self) -> bool {
        self.host.kinds.contains(&TboxType::Hw)
    }

    /// Checks what an agent sent.
    pub(crate) fn of(name: &str, request: ConsumeRequest) -> Result<Self, Refusal> {
        check_name("host", name)?;
        let bad = |field: &str, value: &dyn std::fmt::Display, expected: &str| {
            Err(Refusal::new(
                ErrorCode::BadField,
                format!("{field}: {value} is not {expected}"),
                "see docs/api.md, consume",
            ))
        };
        if !(1..=64).contains(&request.session.len())
            || !request.session.bytes().all(|b| b.is_ascii_graphic())
        {
            return bad(
                "session",
                &request.session.escape_default(),
                "1 to 64 printable characters",
            );
        }
        if request.request == 0 {
            return bad("request", &0, "counted from 1");
        }
        if !(1..=JOBS_MAX).contains(&request.jobs_max) {
            return bad("jobs_max", &request.jobs_max, "1 to 256");
        }
        if request.wait_s > WAIT_S_MAX {
            return bad("wait_s", &request.wait_s, "0 to 600");
        }
        if request.free_memory_mb > request.memory_mb {
            return bad(
                "free_memory_mb",
                &request.free_memory_mb,
                "at most memory_mb",
            );
        }
        if request.running.len() > HELD_MAX {
            return bad("running", &request.running.len(), "at most 10,000 jobs");
        }
        let lists = [
            ("tags", &request.tags),
            ("devices", &request.devices),
            ("cache_dirs", &request.cache_dirs),
        ];
        for (field, list) in lists {
            if list.len() > LIST_MAX || list.iter().any(|item| item.is_empty() || item.len() > 256)
            {
                return bad(field, &list.len(), "at most 1,000 texts of 1 to 256 bytes");
            }
        }
        check_name("arch", &request.arch)?;
        let kinds = kinds(&request.kinds)?;
        if kinds.contains(&TboxType::Hw) && kinds.len() > 1 {
            return bad(
                "kinds",
                &request.kinds.join(","),
                "hw alone, or vm and/or dc",
            );
        }
        let group = if request.group.is_empty() {
            group_of(name).to_owned()
        } else {
            request.group
        };
        check_name("group", &group)?;
        let offerer = Offerer {
            host: name.to_owned(),
            group: group.clone(),
            memory_mb: request.memory_mb,
            session: request.session,
            request: request.request,
        };
        let host = Host {
            kinds,
            arch: request.arch,
            group,
            memory_mb: request.memory_mb,
            free_memory_mb: request.free_memory_mb,
            tags: request.tags,
            devices: request.devices,
            cache_dirs: request.cache_dirs,
            ..Host::default()
        };
        let seen = request.seen.unwrap_or(request.request - 1);
        Ok(Self {
            offerer,
            host,
            jobs_max: request.jobs_max,
            wait_s: request.wait_s,
            seen,
            running: request.running,
        })
    }
}

/// Takes the request back when its asker hangs up.
struct Withdraw {
    core: Arc<Core>,
    offer: OfferKey,
    offerer: Offerer,
    answered: bool,
}

impl Drop for Withdraw {
    fn drop(&mut self) {
        self.core.hosts.count_waiting(&self.offerer.host, false);
        if self.answered {
            return;
        }
        self.core.waiters.remove(&self.offer);
        self.core.engine.tell(Event::OfferWithdrawn(self.offer));
        let (core, offerer) = (Arc::clone(&self.core), self.offerer.clone());
        self.core.tasks.spawn(async move {
            for live in core.live.of_host(&offerer.host) {
                let state = &live.stored.state;
                if state.session == offerer.session && state.request == offerer.request {
                    core.give_back(
                        state.job_id,
                        &state.claim_token,
                        "the host hung up before it was answered",
                    )
                    .await;
                }
            }
        });
    }
}

impl Core {
    /// The engine's answer to an offer.
    pub(crate) fn answer_waiter(self: &Arc<Self>, offer: OfferKey, jobs: Vec<JobId>) {
        let Some((_, waiter)) = self.waiters.remove(&offer) else {
            return;
        };
        if let Err(jobs) = waiter.answer.send(jobs) {
            // The asker hung up at this very moment: never delivered.
            let core = Arc::clone(self);
            self.tasks.spawn(async move {
                for id in jobs {
                    if let Some(live) = core.live.get(id) {
                        core.give_back(
                            id,
                            &live.stored.state.claim_token,
                            "nobody took the answer",
                        )
                        .await;
                    }
                }
            });
        }
    }

    /// A host asks for work: waits until there is some, or its time is up.
    pub(crate) async fn consume(self: &Arc<Self>, ask: Ask) -> Result<ConsumeAnswer, Refusal> {
        let new_session = self.meet(&ask)?;
        if new_session {
            self.store_host(&ask.offerer.host).await;
        }
        let again = self.reconcile(&ask).await;
        let stop = self.stop_orders(&ask.offerer.host, &ask.running).await?;
        if !again.is_empty() || !stop.is_empty() {
            let jobs = self.grants(again).await?;
            return Ok(self.consume_answer(jobs, stop));
        }
        let jobs = self.wait_for_jobs(&ask).await?;
        let jobs = self.grants(jobs).await?;
        let stop = self.stop_orders(&ask.offerer.host, &ask.running).await?;
        Ok(self.consume_answer(jobs, stop))
    }

    /// Notes what the host says of itself. Returns whether this is a new session of it.
    fn meet(&self, ask: &Ask) -> Result<bool, Refusal> {
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
    async fn reconcile(self: &Arc<Self>, ask: &Ask) -> Vec<JobId> {
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

    async fn wait_for_jobs(self: &Arc<Self>, ask: &Ask) -> Result<Vec<JobId>, Refusal> {
        if self.draining.is_cancelled() {
            return Err(Refusal::stopping());
        }
        let Some(_place) = self.wait_place() else {
            let limit = self.config.limits.waiters_max;
            return Err(Refusal::new(
                ErrorCode::TooMany,
                format!("{limit} requests wait already"),
                "ask again in a few seconds",
            ));
        };
        let (offer, told, hurry) = self.make_offer(ask);
        let key = offer.key;
        let mut withdraw = Withdraw {
            core: Arc::clone(self),
            offer: key,
            offerer: ask.offerer.clone(),
            answered: false,
        };
        self.hosts.count_waiting(&ask.offerer.host, true);
        self.engine.tell(Event::HostOffers(offer));
        let longest = Duration::from_millis(u64::from(ask.wait_s) * 1000 + OWED_MS);
        let jobs = tokio::select! {
            jobs = told => jobs.ok(),
            () = self.draining.cancelled() => return Err(Refusal::stopping()),
            () = hurry.notified() => return Ok(Vec::new()),
            () = self.clock.sleep(longest) => None,
        };
        let Some(jobs) = jobs else {
            return Err(Refusal::new(
                ErrorCode::Unavailable,
                "the dispatcher did not answer in time",
                "ask again",
            ));
        };
        withdraw.answered = true;
        Ok(jobs)
    }

    fn make_offer(&self, ask: &Ask) -> (Offer, oneshot::Receiver<Vec<JobId>>, Arc<Notify>) {
        let host = &ask.host;
        let hw = ask.is_hw();
        let offer = Offer {
            key: self.next_offer(),
            host: ask.offerer.host.clone(),
            group: host.group.clone(),
            arch: host.arch.clone(),
            keys: host.keys(&ask.offerer.host),
            free_memory_mb: if hw {
                host.memory_mb
            } else {
                host.free_memory_mb
            },
            total_memory_mb: host.memory_mb,
            tags: host.tags.clone(),
            devices: host.devices.clone(),
            cache_dirs: host.cache_dirs.clone(),
            jobs_max: if hw { 1 } else { ask.jobs_max },
            waits_until: Millis(
                self.clock
                    .now()
                    .0
                    .saturating_add(u64::from(ask.wait_s) * 1000),
            ),
        };
        let (answer, told) = oneshot::channel();
        let hurry = Arc::new(Notify::new());
        let waiter = Waiter {
            offerer: ask.offerer.clone(),
            offer: offer.clone(),
            hurry: Arc::clone(&hurry),
            answer,
        };
        self.waiters.insert(offer.key, waiter);
        (offer, told, hurry)
    }

    /// A job was told to stop: its host hears it now, if it waits.
    pub(crate) fn tell_to_stop(&self, state: &JobState) {
        for waiter in self
            .waiters
            .iter()
            .filter(|waiter| waiter.offerer.host == state.host)
        {
            waiter.hurry.notify_one();
        }
    }

    /// What the host gets for each of these jobs.
    async fn grants(self: &Arc<Self>, ids: Vec<JobId>) -> Result<Vec<Grant>, Refusal> {
        let held: Vec<StoredJob> = ids
            .into_iter()
            .filter_map(|id| self.live.get(id))
            .map(|live| live.stored)
            .collect();
        let wanted: Vec<JobId> = held.iter().map(|job| job.state.job_id).collect();
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let bodies = match self.store.get_bodies(&wanted).await {
            Ok(bodies) => bodies,
            Err(error) => {
                for job in &held {
                    self.give_back(
                        job.state.job_id,
                        &job.state.claim_token,
                        "its body could not be read",
                    )
                    .await;
                }
                return Err(error.into());
            }
        };
        let mut grants = Vec::new();
        for (job, body) in held.into_iter().zip(bodies) {
            let Some(mut spec) = body else {
                self.end_without_body(&job.state).await;
                continue;
            };
            self.sealer.open_secrets(&mut spec);
            grants.push(self.grant(&job.state, spec));
        }
        Ok(grants)
    }

    fn grant(&self, state: &JobState, job: fairlead_job::Spec) -> Grant {
        Grant {
            job_id: state.job_id.to_string(),
            attempt: state.attempt,
            claim_token: state.claim_token.clone(),
            job_token: self
                .sealer
                .job_token(state.job_id, state.attempt, &state.claim_token),
            tbox_type: state.tbox_type.as_str().to_owned(),
            memory_mb: if state.tbox_type == TboxType::Hw {
                0
            } else {
                state.memory_mb
            },
            timeout_s: state.timeout_s,
            result_root: state.result_root.clone(),
            stop_when_cut_off: state.stop_when_cut_off,
            job,
        }
    }

    async fn end_without_body(self: &Arc<Self>, state: &JobState) {
        tracing::error!(job_id = %state.job_id, "a job has no body in the store");
        let (token, now_ms) = (state.claim_token.clone(), self.clock.wall_ms());
        let outcome = self
            .change(state.job_id, |state| {
                let same = state.claim_token == token && state.stage.is_held();
                let reason = "its body is not in the store";
                let health = fairlead_job::Health::AbortInvalid;
                Ok(same.then(|| {
                    crate::lease::ended(state, Stage::AbortInvalid, health, now_ms, reason)
                }))
            })
            .await;
        if let Err(refusal) = outcome {
            tracing::warn!(job_id = %state.job_id, error = refusal.body.message, "its end could not be recorded");
        }
    }

    fn consume_answer(&self, jobs: Vec<Grant>, stop: Vec<StopOrder>) -> ConsumeAnswer {
        ConsumeAnswer {
            lease_ms: self.config.lease_ms,
            heartbeat_ms: self.config.heartbeat_ms,
            jobs,
            stop,
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
    async fn stop_orders(
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
