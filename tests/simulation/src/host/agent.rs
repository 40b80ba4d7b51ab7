//! The agent's loop: asks for work while there is room, sends heartbeats, obeys.
//!
//! It does what the real agent's loop does: when there is more room than the open request says, a newer
//! one replaces it, and the older one's answer is still read.

use std::{future::Future, pin::Pin, sync::Arc};

use fairlead_api::{
    ConsumeAnswer, ConsumeRequest, ErrorCode, Grant, HeartbeatAnswer, HeartbeatRequest, StopOrder,
};
use tokio::{sync::mpsc, task::JoinSet};

use super::{
    client::{ANSWER_MS, BEAT_MS, Backoff, Client},
    course::{Course, resume},
    machine,
    roster::{Held, Journal, Key, Room, Roster, Stop},
};
use crate::{
    net::{Answer, Failed, Message},
    scenario::HostPlan,
    timer::pause,
    world::World,
};

/// A box takes no job while the last one's end is on its way, but no longer than this, ms.
const HW_HOLD_MS: u64 = 20_000;
/// How long it delivers what an earlier agent left before it asks for work, ms.
const LEFTOVER_HOLD_MS: u64 = 10_000;
/// Longest sleep of the loop, ms.
const WAKE_MS: u64 = 3_600_000;

type Waiting = Pin<Box<dyn Future<Output = Result<Answer, Failed>> + Send>>;

/// What an agent shares with the courses of its jobs.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) world: Arc<World>,
    pub(super) host: usize,
    pub(super) plan: HostPlan,
    pub(super) roster: Roster,
    pub(super) reporter: Client,
    /// Told when nothing of a job runs any more, or it left the roster.
    pub(super) freed: mpsc::UnboundedSender<Key>,
}

struct Ask {
    request: ConsumeRequest,
    room: Room,
    sent_ms: u64,
    answer: Waiting,
}

struct Beat {
    sent_ms: u64,
    answer: Waiting,
}

/// One life of an agent.
pub(super) struct Agent {
    shared: Arc<Shared>,
    asker: Arc<Client>,
    beater: Arc<Client>,
    courses: JoinSet<()>,
    freed: mpsc::UnboundedReceiver<Key>,
    /// Whether any replica has answered, and when the last request that was answered well was sent.
    ever: bool,
    heard_ms: u64,
    lease_ms: u64,
    heartbeat_ms: u64,
    ask_backoff: Backoff,
    beat_backoff: Backoff,
    session: String,
    number: u64,
    ask: Option<Ask>,
    /// The request before it, replaced but not answered yet.
    older: Option<Ask>,
    /// An answer was lost: the next request says so, even if the room is the same.
    ask_anew: bool,
    unanswered: Option<(ConsumeRequest, Room)>,
    ask_at_ms: u64,
    beat: Option<Beat>,
    beat_at_ms: u64,
}

impl Agent {
    pub(super) fn new(
        world: &Arc<World>,
        host: usize,
        plan: HostPlan,
        session: String,
        left: Vec<Journal>,
    ) -> Self {
        let (freed, frees) = mpsc::unbounded_channel();
        let now_ms = world.now_ms();
        let shared = Arc::new(Shared {
            world: Arc::clone(world),
            host,
            plan,
            roster: Roster::default(),
            reporter: Client::new(world, host),
            freed,
        });
        let mut agent = Self {
            asker: Arc::new(Client::new(world, host)),
            beater: Arc::new(Client::new(world, host)),
            courses: JoinSet::new(),
            freed: frees,
            ever: false,
            heard_ms: 0,
            lease_ms: 60_000,
            heartbeat_ms: 10_000,
            ask_backoff: Backoff::new(100, 5_000),
            beat_backoff: Backoff::new(100, 2_000),
            session,
            number: 0,
            ask: None,
            older: None,
            ask_anew: false,
            unanswered: None,
            ask_at_ms: now_ms,
            beat: None,
            beat_at_ms: now_ms,
            shared,
        };
        agent.adopt(left, now_ms);
        agent
    }

    /// Goes on with what an earlier agent left: jobs that still run, and ends to deliver.
    fn adopt(&mut self, left: Vec<Journal>, now_ms: u64) {
        for journal in left {
            let running = journal.end.is_none();
            let mut held = Held::new(journal.clone(), running);
            if !running {
                held.hold_until_ms = now_ms + LEFTOVER_HOLD_MS;
                held.gone.cancel();
            }
            if running && journal.grant.stop_when_cut_off {
                held.cut_off_since_ms = Some(now_ms);
            }
            self.shared.roster.insert(held);
            self.courses
                .spawn(resume(Arc::clone(&self.shared), journal));
        }
    }

    /// What of its jobs is on disk when it dies.
    pub(super) fn dies(mut self) -> Vec<Journal> {
        self.courses.abort_all();
        let jobs = self.shared.roster.jobs();
        jobs.values().map(|held| held.journal.clone()).collect()
    }

    fn now_ms(&self) -> u64 {
        self.shared.world.now_ms()
    }

    fn patience_ms(&self) -> u64 {
        self.lease_ms * 2 / 3
    }

    /// Works for ever.
    pub(super) async fn work(&mut self) {
        loop {
            let now_ms = self.now_ms();
            self.keep_asking(now_ms);
            let beats = self.beat.is_none() && self.needs_beats();
            let roster = &self.shared.roster;
            let wake_ms = roster
                .wakes_at_ms(now_ms, self.heard_ms, self.patience_ms())
                .map_or(WAKE_MS, |at| at.saturating_sub(now_ms));
            tokio::select! {
                biased;
                Some(_) = self.freed.recv() => {}
                Some(_) = self.courses.join_next() => {}
                answer = open(self.ask.as_mut().map(|ask| &mut ask.answer)) => self.answered(answer),
                answer = open(self.older.as_mut().map(|ask| &mut ask.answer)) => self.older_answered(answer),
                answer = open(self.beat.as_mut().map(|beat| &mut beat.answer)) => self.beaten(answer),
                () = pause(self.beat_at_ms.saturating_sub(now_ms)), if beats => self.send_beat(),
                () = pause(wake_ms) => self.cut_off(),
            }
        }
    }

    fn cut_off(&self) {
        let grace_ms = self.lease_ms / 6;
        let (now_ms, patience_ms) = (self.now_ms(), self.patience_ms());
        self.shared
            .roster
            .cut_off(now_ms, self.heard_ms, patience_ms, grace_ms);
    }

    fn keep_asking(&mut self, now_ms: u64) {
        let Some(room) = self.shared.roster.room(&self.shared.plan, now_ms) else {
            return;
        };
        let says_enough = self.ask.as_ref().is_some_and(|open| open.room.covers(room));
        if (says_enough && !self.ask_anew) || self.older.is_some() {
            return;
        }
        self.older = self.ask.take().filter(|open| open.sent_ms <= now_ms);
        self.ask_anew = false;
        let request = match self.unanswered.take() {
            Some((request, asked)) if asked == room && self.older.is_none() => request,
            _ => self.next_request(room),
        };
        let sent_ms = self.ask_at_ms.max(now_ms);
        let path = format!("/scheduler/v1/testboxes/{}/consume", self.shared.plan.name);
        let what = format!("{} consume {}", self.shared.plan.name, request.request);
        let message = Message::new(what, path, &request);
        let limit_ms = u64::from(request.wait_s) * 1000 + ANSWER_MS;
        let (client, shared) = (Arc::clone(&self.asker), Arc::clone(&self.shared));
        let asks = request.clone();
        self.ask = Some(Ask {
            request,
            room,
            sent_ms,
            answer: Box::pin(async move {
                shared.world.timer.until(sent_ms).await;
                shared.world.check().host_asks(shared.host, &asks, sent_ms);
                client.call(&message, limit_ms).await
            }),
        });
    }

    fn next_request(&mut self, room: Room) -> ConsumeRequest {
        self.number += 1;
        let plan = &self.shared.plan;
        let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect();
        ConsumeRequest {
            session: self.session.clone(),
            request: self.number,
            seen: self
                .older
                .as_ref()
                .map(|older| older.request.request.saturating_sub(1)),
            kinds: words(&plan.kinds),
            arch: plan.arch.to_owned(),
            group: String::new(),
            memory_mb: plan.memory_mb,
            free_memory_mb: room.free_mb,
            tags: words(&plan.tags),
            devices: words(&plan.devices),
            cache_dirs: Vec::new(),
            jobs_max: room.slots,
            wait_s: plan.wait_s,
            running: self.shared.roster.named(),
            instance: String::new(),
            isolation: String::new(),
        }
    }

    fn older_answered(&mut self, outcome: Result<Answer, Failed>) {
        let Some(older) = self.older.take() else {
            return;
        };
        match outcome {
            Ok(answer) if answer.is_good() => {
                // Of what the open request offers the scheduler counts these off.
                if let (Some(open), Some(told)) = (&mut self.ask, answer.json::<ConsumeAnswer>()) {
                    open.room = open.room.without(&told.jobs);
                }
                self.take_answer(&older, &answer);
            }
            // The newer one was there first: nothing was granted.
            Ok(answer) if answer.status == 409 => {}
            _ => self.ask_anew = true,
        }
    }

    fn answered(&mut self, outcome: Result<Answer, Failed>) {
        let Some(ask) = self.ask.take() else {
            return;
        };
        let world = &self.shared.world;
        world.check().host_answered(self.shared.host);
        if let Ok(answer) = &outcome
            && answer.is_good()
        {
            self.take_answer(&ask, answer);
            return;
        }
        self.ask_at_ms = world.now_ms() + self.ask_backoff.step(world);
        let is_over = |answer: &Answer| answer.code() == Some(ErrorCode::SessionOver);
        if outcome.as_ref().is_ok_and(is_over) {
            self.begin_anew();
        }
        // A conflict says that this number is behind: only a new one can help.
        if outcome.is_err() || outcome.is_ok_and(|answer| answer.status != 409) {
            self.unanswered = Some((ask.request, ask.room));
        }
    }

    /// Another session was heard of since: a request of an earlier life that was long on its way.
    fn begin_anew(&mut self) {
        let Shared {
            world, host, plan, ..
        } = &*self.shared;
        self.session = machine::session(world, *host);
        self.number = 0;
        world.note(format_args!(
            "{} begins session {}",
            plan.name, self.session
        ));
        world.check().session_begins(*host, &self.session);
    }

    fn take_answer(&mut self, ask: &Ask, answer: &Answer) {
        let Some(answer) = answer.json::<ConsumeAnswer>() else {
            return;
        };
        self.heard(ask.sent_ms, answer.lease_ms, answer.heartbeat_ms);
        self.shared.heard_with(ask.sent_ms, &ask.request.running);
        self.ask_backoff.reset();
        self.obey(answer.stop, ask.sent_ms);
        for grant in answer.jobs {
            self.take(grant);
        }
    }

    fn heard(&mut self, sent_ms: u64, lease_ms: u64, heartbeat_ms: u64) {
        self.ever = true;
        self.heard_ms = self.heard_ms.max(sent_ms);
        self.lease_ms = lease_ms.max(100);
        self.heartbeat_ms = heartbeat_ms.clamp(20, self.lease_ms);
    }

    fn needs_beats(&self) -> bool {
        let wait_ms = u64::from(self.shared.plan.wait_s) * 1000;
        !self.shared.roster.jobs().is_empty() || (self.ever && wait_ms > self.lease_ms / 2)
    }

    fn send_beat(&mut self) {
        let plan = &self.shared.plan;
        let request = HeartbeatRequest {
            session: self.session.clone(),
            running: self.shared.roster.named(),
            free_memory_mb: self.shared.roster.free(plan).free_mb,
        };
        let path = format!("/scheduler/v1/testboxes/{}/heartbeat", plan.name);
        let message = Message::new(format!("{} heartbeat", plan.name), path, &request);
        let (client, shared) = (Arc::clone(&self.beater), Arc::clone(&self.shared));
        let sent_ms = self.now_ms();
        self.shared.says(&request.running);
        self.beat = Some(Beat {
            sent_ms,
            answer: Box::pin(async move {
                let outcome = client.call(&message, BEAT_MS).await;
                if outcome.as_ref().is_ok_and(Answer::is_good) {
                    shared.heard_with(sent_ms, &request.running);
                }
                outcome
            }),
        });
    }

    fn beaten(&mut self, outcome: Result<Answer, Failed>) {
        let Some(beat) = self.beat.take() else {
            return;
        };
        let good = outcome.ok().filter(Answer::is_good);
        if let Some(answer) = good.and_then(|answer| answer.json::<HeartbeatAnswer>()) {
            self.heard(beat.sent_ms, answer.lease_ms, answer.heartbeat_ms);
            self.beat_backoff.reset();
            self.beat_at_ms = beat.sent_ms + self.heartbeat_ms;
            self.obey(answer.stop, beat.sent_ms);
        } else {
            let world = &self.shared.world;
            let step_ms = self.beat_backoff.step(world);
            self.beat_at_ms = world.now_ms() + step_ms.min(self.heartbeat_ms);
        }
    }

    fn obey(&self, orders: Vec<StopOrder>, sent_ms: u64) {
        let shared = &self.shared;
        for order in orders {
            let key = (order.job_id.clone(), order.attempt);
            let health = order.health.parse().ok();
            let grace_ms = u64::from(order.grace_s) * 1000;
            let token = shared.roster.with(&key, |held| {
                held.order(Stop { health, grace_ms });
                held.journal.grant.claim_token.clone()
            });
            if let Some(token) = token.filter(|_| health.is_none()) {
                shared
                    .world
                    .told_to_forget(shared.host, &key, &token, sent_ms);
            }
        }
    }

    /// Starts a course for a job that fits. One that does not is left: the next request does not name
    /// it, and so it goes back.
    fn take(&mut self, grant: Grant) {
        let shared = Arc::clone(&self.shared);
        let key = (grant.job_id.clone(), grant.attempt);
        if shared.roster.jobs().contains_key(&key) {
            return;
        }
        let room = shared.roster.free(&shared.plan);
        let fits = room.slots > 0 && grant.memory_mb <= room.free_mb;
        let has: Vec<Key> = shared.roster.jobs().keys().cloned().collect();
        shared.world.granted(shared.host, &grant, fits, &has);
        if !fits {
            return;
        }
        // A newer attempt means that the older one is lost: never both at once.
        let after = {
            let mut jobs = shared.roster.jobs();
            let older = jobs
                .values_mut()
                .find(|held| held.running && held.journal.grant.job_id == grant.job_id);
            older.map(|held| {
                held.order(Stop {
                    health: None,
                    grace_ms: 1_000,
                });
                held.gone.clone()
            })
        };
        let journal = Journal {
            grant,
            runs_until_ms: None,
            end: None,
        };
        let mut held = Held::new(journal.clone(), true);
        if journal.grant.stop_when_cut_off {
            held.cut_off_since_ms = Some(shared.world.now_ms());
        }
        shared.roster.insert(held);
        let hold_ms = if shared.plan.is_hw() { HW_HOLD_MS } else { 0 };
        let course = Course {
            shared,
            journal,
            hold_ms,
        };
        self.courses.spawn(course.run(after));
    }
}

impl Shared {
    /// It says to some replica that it has these jobs and no others, whether or not it hears an answer.
    fn says(&self, running: &[fairlead_api::HeldJob]) {
        self.world.check().named(self.host, &tokens(running));
    }

    /// A request that named these jobs was answered well.
    fn heard_with(&self, sent_ms: u64, running: &[fairlead_api::HeldJob]) {
        let tokens = tokens(running);
        self.world.check().renewed(self.host, &tokens, sent_ms);
    }
}

fn tokens(running: &[fairlead_api::HeldJob]) -> Vec<&str> {
    let tokens = running.iter().map(|held| held.claim_token.as_str());
    tokens.collect()
}

/// The answer of what is open; never, when nothing is.
async fn open(waiting: Option<&mut Waiting>) -> Result<Answer, Failed> {
    match waiting {
        Some(waiting) => waiting.await,
        None => std::future::pending().await,
    }
}
