//! Requests of hosts for work: sessions and offers.
//!
//! A host's request is one offer to the engine. The same request gets the same answer again. A grant that was never
//! delivered goes back. A host has one open request: a newer one replaces the older, which is answered first, with the
//! jobs that were claimed for it.

use std::{sync::Arc, time::Duration};

use fairlead_api::{ConsumeAnswer, Grant, StopOrder};
use fairlead_dispatch::{About, CPUS_UNCHECKED, Event, JobKey, Millis, Offer, OfferKey};
use fairlead_job::JobId;
use tokio::sync::{Notify, oneshot};

use crate::hosts::HostFlow;
use fairlead_base::{
    budget::{Charge, Identity},
    errors::{HostError, Refusal},
};
use fairlead_known::{
    host_turns::HostTurn,
    open_requests::{Claimed, Waiter},
    work_request::WorkRequest,
};
use fairlead_lifecycle::engine_facts::{engine_load, holds, liked};

/// A host that is given jobs so soon after it asked was just told what to stop, and its leases were renewed, ms.
const SOON_MS: u64 = 1_000;
/// An answer that the engine owes is waited for this much longer than asked, ms.
const OWED_MS: u64 = 30_000;
/// A newer request waits so long for the answer to the one that it replaces, ms. Then what was claimed for that goes back.
const REPLACED_MS: u64 = 5_000;

#[cfg(test)]
impl HostFlow {
    /// A waiter for a unit test: its offer, and where its answer comes.
    pub(crate) fn waiter_of(&self, host: &str) -> (OfferKey, oneshot::Receiver<Vec<JobId>>) {
        let request = serde_json::json!({
            "session": "s", "request": 1, "kinds": ["dc"], "arch": "x86_64", "memory_mb": 1024, "free_memory_mb": 1024,
        });
        let request = serde_json::from_value(request).expect("all that a request must say");
        let ask = WorkRequest::of(host, request).expect("a good request");
        let (offer, told, _) = self.make_offer(&ask, Millis(u64::MAX), &Arc::default());
        (offer.key, told)
    }
}

/// Takes the request back when its asker hangs up.
struct OpenRequestGuard {
    flow: Arc<HostFlow>,
    offer: OfferKey,
    host: String,
    claimed: Claimed,
    /// Whether the answer was handed on: until then, what it brings goes back.
    answered: bool,
    _place: Charge,
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
        self.flow.lab.hosts.count_waiting(&self.host, false);
        if self.answered {
            return;
        }
        self.flow.jobs.waiters.remove(self.offer);
        self.flow.ctx.engine.tell(Event::OfferWithdrawn(self.offer));
        let claimed = self.claimed.take();
        let flow = Arc::clone(&self.flow);
        self.flow.ctx.tasks.spawn(async move {
            for claim in claimed {
                flow.jobs
                    .give_back(&claim, "the host was not answered")
                    .await;
            }
        });
    }
}

impl HostFlow {
    /// A host asks for work: waits until there is some, or its time is up.
    ///
    /// Requests that this one replaces are answered before it takes their turn: else what was claimed for them would go
    /// back.
    pub(crate) async fn consume(
        self: &Arc<Self>,
        ask: WorkRequest,
    ) -> Result<ConsumeAnswer, Refusal> {
        self.lab.hosts.check_room(&ask.offerer.host)?;
        self.check_room_of(&ask.host.account, &ask.offerer.host)?;
        let (open, replaced) = self.jobs.waiters.open(&ask.offerer);
        // Also if its asker hangs up.
        let _over = open.over.drop_guard();
        let answered = async {
            for older in &replaced {
                older.hurry.notify_one();
            }
            for older in &replaced {
                older.over.cancelled().await;
            }
        };
        tokio::select! {
            biased;
            () = answered => {}
            () = self.ctx.clock.sleep(Duration::from_millis(REPLACED_MS)) => {}
        }
        self.serve_in_turn(ask, open.hurry).await
    }

    async fn serve_in_turn(
        self: &Arc<Self>,
        mut ask: WorkRequest,
        hurry: Arc<Notify>,
    ) -> Result<ConsumeAnswer, Refusal> {
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
        let told = self.ctx.clock.now();
        let mut waited = self.wait_for_jobs(&ask, hurry).await?;
        let jobs = self
            .hand_out(&turn, std::mem::take(&mut waited.jobs))
            .await?;
        let is_soon = self.ctx.clock.now().0.saturating_sub(told.0) < SOON_MS;
        let stop = if is_soon && !jobs.is_empty() {
            Vec::new()
        } else {
            self.stop_orders(&ask.offerer.host, &ask.running).await?
        };
        waited.withdraw.answered = waited.settled;
        self.jobs.count_delivered(&jobs);
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
        self.ctx
            .metrics
            .granted
            .inc_by(u64::try_from(grants.len()).unwrap_or(u64::MAX));
        Ok(grants)
    }

    async fn wait_for_jobs(
        self: &Arc<Self>,
        ask: &WorkRequest,
        hurry: Arc<Notify>,
    ) -> Result<Waited, Refusal> {
        if self.ctx.tasks.draining.is_cancelled() {
            return Err(Refusal::Stopping);
        }
        let place = self.ctx.wait_place(Identity::Reserve)?;
        let waits_until = self
            .ctx
            .clock
            .now()
            .0
            .saturating_add(u64::from(ask.wait_s) * 1000);
        let waits_until = Millis(waits_until);
        let (offer, told, claimed) = self.make_offer(ask, waits_until, &hurry);
        let key = offer.key;
        let withdraw = OpenRequestGuard {
            flow: Arc::clone(self),
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
        self.ctx.engine.tell(Event::HostOffers(offer));
        let jobs = self.claimed_for(key, ask.wait_s, told, &hurry).await?;
        Ok(Waited {
            settled: jobs.is_some(),
            jobs: jobs.unwrap_or_default(),
            withdraw,
        })
    }

    /// The engine's answer to an offer; `None`: the host is to hear something else first.
    async fn claimed_for(
        &self,
        offer: OfferKey,
        wait_s: u32,
        mut told: oneshot::Receiver<Vec<JobId>>,
        hurry: &Notify,
    ) -> Result<Option<Vec<JobId>>, Refusal> {
        let longest = Duration::from_millis(u64::from(wait_s) * 1000 + OWED_MS);
        let longest = self.ctx.clock.sleep(longest);
        tokio::pin!(longest);
        loop {
            tokio::select! {
                biased;
                jobs = &mut told => return Ok(Some(jobs.map_err(|_| HostError::NoAnswer)?)),
                () = self.ctx.tasks.draining.cancelled() => return Err(Refusal::Stopping),
                () = hurry.notified() => {}
                () = &mut longest => return Err(HostError::NoAnswer.into()),
            }
            if !self.may_be_answered(offer) {
                return Ok(None);
            }
            self.ctx.engine.tell(Event::OfferClosing(offer));
        }
    }

    /// Whether what was claimed for a request may be handed out. One that the engine has answered has its answer already.
    fn may_be_answered(&self, offer: OfferKey) -> bool {
        self.jobs.waiters.get(offer).is_none_or(|waiter| {
            let is_shut = self.lab.cordons.is_shut(&waiter.offerer.host);
            !is_shut && !self.placement.is_outdated(&waiter) && self.has_turn(&waiter.offerer)
        })
    }

    /// Whether there is something to say to a request that begins to wait: somebody may have asked to stop a job,
    /// reserved the host, or taken the turn, before it could be found among those that wait.
    fn has_news(&self, offer: OfferKey) -> bool {
        self.jobs.waiters.get(offer).is_some_and(|waiter| {
            let held = self.jobs.live.of_host(&waiter.offerer.host);
            let to_stop = held.iter().any(|live| live.stored.state.stop_asked);
            to_stop || !self.has_turn(&waiter.offerer) || self.placement.is_outdated(&waiter)
        })
    }

    fn make_offer(
        &self,
        ask: &WorkRequest,
        waits_until: Millis,
        hurry: &Arc<Notify>,
    ) -> (Offer, oneshot::Receiver<Vec<JobId>>, Claimed) {
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
            accounts: self.placement.served_accounts(name),
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
        let claimed = Claimed::default();
        let waiter = Waiter {
            offerer: ask.offerer.clone(),
            offer: offer.clone(),
            hurry: Arc::clone(hurry),
            claimed: claimed.clone(),
            answer,
        };
        self.jobs.waiters.insert(waiter);
        (offer, told, claimed)
    }

    fn consume_answer(&self, jobs: Vec<Grant>, stop: Vec<StopOrder>) -> ConsumeAnswer {
        ConsumeAnswer {
            lease_ms: self.ctx.config.lease_ms,
            heartbeat_ms: self.ctx.config.heartbeat_ms,
            jobs,
            stop,
        }
    }
}

#[cfg(test)]
mod tests {
    use fairlead_job::Stage;
    use fairlead_store::JobState;

    use super::*;
    use crate::{
        flows::Flows,
        testing::{flows, held, store_job, until},
    };
    use fairlead_base::mailbox::Message;

    /// A job that was handed to a session of host h, and one that was and is another host's by now.
    async fn one_of_two(flows: &Flows) -> [JobId; 2] {
        let mut ids = Vec::new();
        for (n, host) in [(1, "h"), (2, "other")] {
            let state = JobState {
                job_id: JobId::new(n),
                stage: Stage::Dispatch,
                host: host.to_owned(),
                ..held()
            };
            let stored = store_job(flows, state).await;
            flows.jobs.observe(&stored);
            ids.push(stored.state.job_id);
        }
        ids.try_into().unwrap()
    }

    fn ask(host: &str) -> WorkRequest {
        asks(host, 4)
    }

    fn asks(host: &str, request: u64) -> WorkRequest {
        let request = serde_json::json!({
            "session": "s", "request": request, "seen": request - 2, "kinds": ["dc"], "arch": "x86_64",
            "memory_mb": 1024, "free_memory_mb": 1024, "wait_s": 600,
        });
        WorkRequest::of(host, serde_json::from_value(request).unwrap()).unwrap()
    }

    /// What the requests tell the engine, one event after the other.
    async fn next_event(flows: &Flows, which: impl Fn(&Event) -> Option<OfferKey>) -> OfferKey {
        let mut found = None;
        until(flows, "an event for the engine", || {
            let messages = flows.ctx.engine.take().into_iter();
            let events = messages.filter_map(|message| match message {
                Message::Event(event) => which(&event),
                Message::Question(_) => None,
            });
            found = found.or(events.last());
            found.is_some()
        })
        .await;
        found.unwrap()
    }

    /// A fifth of all claims went back on a host whose jobs ended while it waited for more.
    #[tokio::test]
    async fn a_request_that_a_newer_one_replaces_is_answered_with_what_was_claimed_for_it() {
        let (_data, flows) = flows().await;
        let consume = |request| {
            let asks_core = Arc::clone(&flows);
            flows
                .ctx
                .tasks
                .spawn(async move { asks_core.hosts.consume(asks("h", request)).await })
        };
        let offers = |event: &Event| match event {
            Event::HostOffers(offer) => Some(offer.key),
            _ => None,
        };
        let older = consume(2);
        let offer = next_event(&flows, offers).await;
        let claimed = JobState {
            stage: Stage::Dispatch,
            host: "h".to_owned(),
            request: 2,
            ..held()
        };
        let id = store_job(&flows, claimed).await.state.job_id;
        let newer = consume(3);
        let closing = next_event(&flows, |event| match event {
            Event::OfferClosing(offer) => Some(*offer),
            _ => None,
        });
        assert_eq!(closing.await, offer);
        let stored = flows.jobs.stored_job(id).await.unwrap();
        assert!(flows.jobs.claim_committed(offer, &Arc::new(stored)));
        flows.dispatching.answer_waiter(offer, vec![id]);
        let granted = older.await.unwrap().unwrap().jobs;
        assert_eq!(granted[0].job_id, id.to_string());
        let next = next_event(&flows, offers).await;
        flows.dispatching.answer_waiter(next, Vec::new());
        let answer = newer.await.unwrap().unwrap();
        assert!(answer.jobs.is_empty() && answer.stop.is_empty());
        assert!(flows.jobs.live.get(id).is_some(), "it was put back");
        assert_eq!(flows.jobs.waiters.count(), 0);
    }

    /// A host whose answer hung got the claim of the host that had the job since.
    #[tokio::test]
    async fn a_job_that_is_another_host_s_by_now_is_not_handed_out() {
        let (_data, flows) = flows().await;
        let ids = one_of_two(&flows).await;
        let turn = flows.hosts.take_turn(&ask("h")).await.unwrap();
        let grants = flows.hosts.hand_out(&turn, ids.to_vec()).await.unwrap();
        let granted: Vec<&str> = grants.iter().map(|grant| grant.job_id.as_str()).collect();
        assert_eq!(granted, [ids[0].to_string()]);
    }

    #[tokio::test]
    async fn a_job_that_is_another_host_s_by_now_is_not_put_back_when_nobody_takes_the_answer() {
        let (_data, flows) = flows().await;
        let ids = one_of_two(&flows).await;
        let (offer, told) = flows.hosts.waiter_of("h");
        drop(told);
        let [its, others] = ids;
        // One after the other.
        flows.dispatching.answer_waiter(offer, vec![others, its]);
        until(&flows, "its own is put back", || {
            flows.jobs.live.get(its).is_none()
        })
        .await;
        let stored = flows
            .ctx
            .store
            .get(&[others])
            .await
            .unwrap()
            .remove(0)
            .unwrap();
        assert_eq!(stored.state.stage, Stage::Dispatch);
    }
}
