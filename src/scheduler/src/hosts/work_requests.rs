//! Requests of hosts for work: sessions, offers, grants.
//!
//! A host's request is one offer to the engine. The same request gets the same answer again. A grant that was never
//! delivered goes back. A host has one open request: a newer one replaces the older, which is answered empty.

use std::{sync::Arc, time::Duration};

use fairlead_api::{ConsumeAnswer, Grant, GrantInput, StopOrder};
use fairlead_dispatch::{About, CPUS_UNCHECKED, Event, JobKey, Millis, Offer, OfferKey};
use fairlead_job::{BOOTED, FieldError, Input, JobId, Spec, TboxType, outputs};
use fairlead_store::JobState;
use tokio::sync::{Notify, oneshot};

use crate::{
    base::errors::{HostError, Refusal},
    core::{Core, WaitPlace},
    jobs::specs::hide_receivers,
    known::{
        host_turns::HostTurn,
        open_requests::{Claimed, KnownClaim, Waiter},
        work_request::WorkRequest,
    },
    lifecycle::{
        attempt::{without_body, without_fields, without_key},
        engine_facts::{engine_load, holds, liked},
    },
};

/// A host that is given jobs so soon after it asked was just told what to stop, and its leases were renewed, ms.
const SOON_MS: u64 = 1_000;
/// An answer that the engine owes is waited for this much longer than asked, ms.
const OWED_MS: u64 = 30_000;

#[cfg(test)]
impl Core {
    /// A waiter for a unit test: its offer, and where its answer comes.
    pub(crate) fn waiter_of(&self, host: &str) -> (OfferKey, oneshot::Receiver<Vec<JobId>>) {
        let request = serde_json::json!({
            "session": "s", "request": 1, "kinds": ["dc"], "arch": "x86_64", "memory_mb": 1024, "free_memory_mb": 1024,
        });
        let request = serde_json::from_value(request).expect("all that a request must say");
        let ask = WorkRequest::of(host, request).expect("a good request");
        let (offer, told, ..) = self.make_offer(&ask, Millis(u64::MAX));
        (offer.key, told)
    }
}

/// Takes the request back when its asker hangs up.
struct OpenRequestGuard {
    core: Arc<Core>,
    offer: OfferKey,
    host: String,
    claimed: Claimed,
    /// Whether the answer was handed on: until then, what it brings goes back.
    answered: bool,
    _place: WaitPlace,
}

/// What came of waiting.
struct Waited {
    jobs: Vec<JobId>,
    /// Whether the engine gave its answer; else the offer is withdrawn.
    settled: bool,
    withdraw: OpenRequestGuard,
}

impl Drop for OpenRequestGuard {
    fn drop(&mut self) {
        self.core.lab.hosts.count_waiting(&self.host, false);
        if self.answered {
            return;
        }
        self.core.requests.waiters.remove(self.offer);
        self.core.engine.tell(Event::OfferWithdrawn(self.offer));
        let claimed = self.claimed.take();
        let core = Arc::clone(&self.core);
        self.core.tasks.spawn(async move {
            for claim in claimed {
                core.give_back(&claim, "the host was not answered").await;
            }
        });
    }
}

impl Core {
    /// A host asks for work: waits until there is some, or its time is up.
    pub(crate) async fn consume(
        self: &Arc<Self>,
        mut ask: WorkRequest,
    ) -> Result<ConsumeAnswer, Refusal> {
        self.lab.hosts.check_room(&ask.offerer.host)?;
        let mut turn = self.take_turn(&ask).await?;
        ask.offerer.turn = turn.version();
        self.meet(&mut ask, &turn)?;
        if ask.host.is_loaded() {
            self.tell_closed();
        }
        self.keep_stored(&ask.offerer.host).await;
        let again = self.reconcile(&mut ask, &mut turn).await?;
        let stop = self.stop_orders(&ask.offerer.host, &ask.running).await?;
        if turn.is_repeated() || !again.is_empty() || !stop.is_empty() {
            let jobs = self.hand_out(&turn, again).await?;
            return Ok(self.consume_answer(jobs, stop));
        }
        let told = self.clock.now();
        let mut waited = self.wait_for_jobs(&ask).await?;
        let jobs = self
            .hand_out(&turn, std::mem::take(&mut waited.jobs))
            .await?;
        let is_soon = self.clock.now().0.saturating_sub(told.0) < SOON_MS;
        let stop = if is_soon && !jobs.is_empty() {
            Vec::new()
        } else {
            self.stop_orders(&ask.offerer.host, &ask.running).await?
        };
        waited.withdraw.answered = waited.settled;
        Ok(self.consume_answer(jobs, stop))
    }

    /// What the host gets for these jobs, if it is still this request's turn. Else its caller drops
    /// [`Withdraw`] unanswered, which puts them back.
    async fn hand_out(
        self: &Arc<Self>,
        turn: &HostTurn,
        jobs: Vec<JobId>,
    ) -> Result<Vec<Grant>, Refusal> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        // Its document may name a job too many, never one too few.
        let (kept, grants) = tokio::join!(self.keep_turn(turn, &jobs), self.grants(turn, &jobs));
        kept?;
        let grants = grants?;
        turn.log(&grants);
        self.metrics
            .granted
            .inc_by(u64::try_from(grants.len()).unwrap_or(u64::MAX));
        Ok(grants)
    }

    async fn wait_for_jobs(self: &Arc<Self>, ask: &WorkRequest) -> Result<Waited, Refusal> {
        if self.draining.is_cancelled() {
            return Err(Refusal::Stopping);
        }
        let place = self.wait_place()?;
        let waits_until = self
            .clock
            .now()
            .0
            .saturating_add(u64::from(ask.wait_s) * 1000);
        let waits_until = Millis(waits_until);
        let (offer, told, hurry, claimed) = self.make_offer(ask, waits_until);
        let key = offer.key;
        let withdraw = OpenRequestGuard {
            core: Arc::clone(self),
            offer: key,
            host: ask.offerer.host.clone(),
            claimed,
            answered: false,
            _place: place,
        };
        self.lab.hosts.count_waiting(&ask.offerer.host, true);
        if self.has_news(key) {
            hurry.notify_one();
        }
        // A closed host offers nothing until it is opened.
        let is_open = tokio::select! {
            biased;
            is_open = self.opens(&ask.offerer.host, waits_until) => is_open,
            () = hurry.notified() => false,
        };
        if !is_open {
            return Ok(Waited {
                jobs: Vec::new(),
                settled: false,
                withdraw,
            });
        }
        self.engine.tell(Event::HostOffers(offer));
        let longest = Duration::from_millis(u64::from(ask.wait_s) * 1000 + OWED_MS);
        let jobs = tokio::select! {
            biased;
            jobs = told => jobs.ok(),
            () = self.draining.cancelled() => return Err(Refusal::Stopping),
            () = hurry.notified() => return Ok(Waited { jobs: Vec::new(), settled: false, withdraw }),
            () = self.clock.sleep(longest) => None,
        };
        let Some(jobs) = jobs else {
            return Err(HostError::NoAnswer.into());
        };
        Ok(Waited {
            jobs,
            settled: true,
            withdraw,
        })
    }

    /// Whether there is something to say to a request that begins to wait: somebody may have asked to stop a job,
    /// reserved the host, or taken the turn, before it could be found among those that wait.
    fn has_news(&self, offer: OfferKey) -> bool {
        self.requests.waiters.get(offer).is_some_and(|waiter| {
            let held = self.jobs.live.of_host(&waiter.offerer.host);
            let to_stop = held.iter().any(|live| live.stored.state.stop_asked);
            to_stop || !self.has_turn(&waiter.offerer) || self.is_outdated(&waiter)
        })
    }

    fn make_offer(
        &self,
        ask: &WorkRequest,
        waits_until: Millis,
    ) -> (Offer, oneshot::Receiver<Vec<JobId>>, Arc<Notify>, Claimed) {
        let host = &ask.host;
        let name = &ask.offerer.host;
        let hw = ask.is_hw();
        let tags = host.all_tags();
        let preferred = tags.iter().chain(&host.booted).map(|tag| liked(tag));
        let content = ask.content.iter().map(|word| holds(word));
        let about = About {
            group: host.group.clone(),
            arch: host.arch.clone(),
            keys: host.keys(name),
            devices: host.all_devices(),
            cache_dirs: host
                .cache_dirs
                .iter()
                .cloned()
                .chain(preferred)
                .chain(content)
                .collect(),
            tags,
            accounts: self.served_accounts(name),
        };
        let offer = Offer {
            key: self.next_offer(),
            host: name.clone(),
            about: self.lab.hosts.about(name, about),
            free_memory_mb: if hw { host.memory_mb } else { host.room_mb() },
            total_memory_mb: host.memory_mb,
            free_cpus: if hw { host.cpus } else { host.free_cpus }.unwrap_or(CPUS_UNCHECKED),
            total_cpus: host.cpus.unwrap_or(CPUS_UNCHECKED),
            owed: ask.owed.iter().map(|owed| JobKey(owed.id.get())).collect(),
            jobs_max: if hw { 1 } else { ask.jobs_max },
            waits_until,
            load: host.load.filter(|_| !hw).map(engine_load),
            used_last: self.lab.pools.used_last(name, &host.group),
        };
        let (answer, told) = oneshot::channel();
        let hurry = Arc::new(Notify::new());
        let claimed = Claimed::default();
        let waiter = Waiter {
            offerer: ask.offerer.clone(),
            offer: offer.clone(),
            hurry: Arc::clone(&hurry),
            claimed: claimed.clone(),
            answer,
        };
        self.requests.waiters.insert(waiter);
        (offer, told, hurry, claimed)
    }

    /// What the host gets for each of these jobs.
    async fn grants(
        self: &Arc<Self>,
        turn: &HostTurn,
        ids: &[JobId],
    ) -> Result<Vec<Grant>, Refusal> {
        let held = self.still_of(turn.host(), turn.session(), ids);
        let wanted: Vec<&JobState> = held.iter().map(|job| &job.state).collect();
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let bodies = match self.specs(&wanted).await {
            Ok(bodies) => bodies,
            Err(error) => {
                for job in &held {
                    let claim = KnownClaim::of(&job.state);
                    self.give_back(&claim, "its body could not be read").await;
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
            if self.sealer.open_secrets(&mut spec).is_err() {
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
                .sealer
                .job_token(state.job_id, state.attempt, &state.claim_token),
            tbox_type: state.tbox_type.as_str().to_owned(),
            memory_mb: if takes_all { 0 } else { state.memory_mb },
            guest_memory_mb: Some(state.guest_memory_mb).filter(|mb| *mb > 0),
            cpus: if takes_all { 0 } else { state.cpus },
            timeout_s: state.timeout_s,
            result_root: state.result_root.clone(),
            stop_when_cut_off: state.stop_when_cut_off,
            log_delay_ms: self.config.files_in.log_delay_ms(),
            inputs,
            outputs,
            job,
        })
    }

    /// A claimed job that cannot be handed out as it is in the store.
    async fn put_off(self: &Arc<Self>, state: &JobState, next: fn(&JobState, u64) -> JobState) {
        let (token, now_ms) = (state.claim_token.clone(), self.clock.wall_ms());
        let outcome = self
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

    fn consume_answer(&self, jobs: Vec<Grant>, stop: Vec<StopOrder>) -> ConsumeAnswer {
        ConsumeAnswer {
            lease_ms: self.config.lease_ms,
            heartbeat_ms: self.config.heartbeat_ms,
            jobs,
            stop,
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

#[cfg(test)]
mod tests {
    use fairlead_job::Stage;

    use super::*;
    use crate::testing::{core, held, store_job, until};

    /// A job that was handed to a session of host h, and one that was and is another host's by now.
    async fn one_of_two(core: &Core) -> [JobId; 2] {
        let mut ids = Vec::new();
        for (n, host) in [(1, "h"), (2, "other")] {
            let state = JobState {
                job_id: JobId::new(n),
                stage: Stage::Dispatch,
                host: host.to_owned(),
                ..held()
            };
            let stored = store_job(core, state).await;
            core.observe(&stored);
            ids.push(stored.state.job_id);
        }
        ids.try_into().unwrap()
    }

    fn ask(host: &str) -> WorkRequest {
        let request = serde_json::json!({
            "session": "s", "request": 4, "kinds": ["dc"], "arch": "x86_64", "memory_mb": 1024, "free_memory_mb": 1024,
        });
        WorkRequest::of(host, serde_json::from_value(request).unwrap()).unwrap()
    }

    /// A host whose answer hung got the claim of the host that had the job since.
    #[tokio::test]
    async fn a_job_that_is_another_host_s_by_now_is_not_handed_out() {
        let (_data, core) = core().await;
        let ids = one_of_two(&core).await;
        let turn = core.take_turn(&ask("h")).await.unwrap();
        let grants = core.hand_out(&turn, ids.to_vec()).await.unwrap();
        let granted: Vec<&str> = grants.iter().map(|grant| grant.job_id.as_str()).collect();
        assert_eq!(granted, [ids[0].to_string()]);
    }

    #[tokio::test]
    async fn a_job_that_is_another_host_s_by_now_is_not_put_back_when_nobody_takes_the_answer() {
        let (_data, core) = core().await;
        let ids = one_of_two(&core).await;
        let (offer, told) = core.waiter_of("h");
        drop(told);
        let [its, others] = ids;
        // One after the other.
        core.answer_waiter(offer, vec![others, its]);
        until(&core, "its own is put back", || {
            core.jobs.live.get(its).is_none()
        })
        .await;
        let stored = core.store.get(&[others]).await.unwrap().remove(0).unwrap();
        assert_eq!(stored.state.stage, Stage::Dispatch);
    }
}
