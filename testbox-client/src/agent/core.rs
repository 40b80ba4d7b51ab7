//! The agent's one loop. It owns the roster, asks for work as long as there is room, and sends
//! heartbeats. When there is more room than the open request says, a newer one replaces it: the
//! scheduler then answers the older at once, with what it had just granted, and that answer is read.
//! Hanging up instead would undo those grants. At most these two are open.

use std::{
    collections::HashMap,
    future::Future,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use anyhow::Context as _;
use fairlead_api::{
    Client, ClientError, ConsumeAnswer, ConsumeRequest, ErrorCode, HeartbeatAnswer,
    HeartbeatRequest,
};
use tokio::{
    sync::mpsc,
    task::{Id, JoinSet},
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::{
    contact::Contact,
    roster::{HW_HOLD, Key, Room, Roster},
};
use crate::{
    Kinds,
    job::{Context, Finished, Over},
    timer::Backoff,
};

/// Most ends of jobs that wait to be noticed; a job whose end waits here only holds its memory longer.
const OVER_MAX: usize = 256;
/// How long a machine rests that could not begin a job: at first, and at most after many.
const FAULT_PAUSE_MIN: Duration = Duration::from_secs(1);
const FAULT_PAUSE_MAX: Duration = Duration::from_mins(1);
/// How long killed jobs may take to vanish when the agent was told to kill.
const KILL_PATIENCE: Duration = Duration::from_secs(2);

type Waiting<T> = Pin<Box<dyn Future<Output = Result<T, ClientError>> + Send>>;

/// A request for work that is open.
struct Ask {
    request: ConsumeRequest,
    room: Room,
    sent: Instant,
    answer: Waiting<ConsumeAnswer>,
}

/// A heartbeat that is open.
struct Beat {
    sent: Instant,
    answer: Waiting<HeartbeatAnswer>,
}

pub(super) struct Core {
    pub(super) context: Arc<Context>,
    /// Tries each replica once: this loop does the repeating.
    pub(super) asker: Client,
    /// The same with a shorter patience.
    pub(super) beater: Client,
    pub(super) roster: Roster,
    pub(super) over: mpsc::Sender<Over>,
    overs: mpsc::Receiver<Over>,
    courses: JoinSet<Finished>,
    names: HashMap<Id, Key>,
    contact: Contact,
    /// Of the last request of the session.
    number: u64,
    ask: Option<Ask>,
    /// The request before it, replaced but not answered yet.
    older: Option<Ask>,
    /// An answer was lost on the way: the next request says so, even if the room is the same.
    ask_anew: bool,
    /// A request whose answer did not arrive: it is sent again as it was while the room is the same.
    unanswered: Option<(ConsumeRequest, Room)>,
    ask_at: Instant,
    fault_backoff: Backoff,
    beat: Option<Beat>,
    beat_at: Instant,
    /// With `once`: the jobs are here, no more are asked for.
    served: bool,
    /// The token that requests have.
    token: Option<String>,
}

impl Core {
    pub(super) fn new(context: Arc<Context>, asker: Client, beater: Client) -> Self {
        let (over, overs) = mpsc::channel(OVER_MAX);
        let now = Instant::now();
        Self {
            contact: Contact::new(context.events.clone()),
            token: context.config.token.clone(),
            context,
            asker,
            beater,
            roster: Roster::default(),
            over,
            overs,
            courses: JoinSet::new(),
            names: HashMap::new(),
            number: 0,
            ask: None,
            older: None,
            ask_anew: false,
            unanswered: None,
            ask_at: now,
            fault_backoff: Backoff::new(FAULT_PAUSE_MIN, FAULT_PAUSE_MAX),
            beat: None,
            beat_at: now,
            served: false,
        }
    }

    pub(super) fn spawn(
        &mut self,
        key: Key,
        course: impl Future<Output = Finished> + Send + 'static,
    ) {
        let id = self.courses.spawn(course).id();
        self.names.insert(id, key);
    }

    /// Works until `stop`, or until served with `once`. Errors: the scheduler refuses this agent.
    pub(super) async fn work(&mut self, stop: &CancellationToken) -> anyhow::Result<()> {
        let patience_max = Duration::from_hours(1);
        loop {
            if self.served && self.roster.is_empty() {
                return Ok(());
            }
            let now = Instant::now();
            let free_mb = self.roster.free(&self.context.config).free_mb;
            self.context.free_mb.store(free_mb, Ordering::Relaxed);
            self.keep_asking(now);
            let beats = self.beat.is_none() && self.needs_beats();
            let patience = self.contact.cut_off_patience();
            let wake = self.roster.wakes_at(now, self.contact.last, patience);
            let wake = wake.unwrap_or(now + patience_max);
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                () = self.context.config.kill_now.cancelled() => return Ok(()),
                Some(over) = self.overs.recv() => self.is_over(&over),
                Some(ended) = self.courses.join_next_with_id() => self.has_finished(ended),
                answer = open(self.ask.as_mut().map(|ask| &mut ask.answer)) => self.answered(answer)?,
                answer = open(self.older.as_mut().map(|ask| &mut ask.answer)) => self.older_answered(answer),
                answer = open(self.beat.as_mut().map(|beat| &mut beat.answer)) => self.beaten(answer),
                () = sleep_until(self.beat_at), if beats => self.send_beat(),
                () = sleep_until(wake) => self.cut_off(),
            }
        }
    }

    fn cut_off(&mut self) {
        let patience = self.contact.cut_off_patience();
        let grace = self.contact.cut_off_grace(self.context.config.grace);
        self.roster
            .cut_off(Instant::now(), self.contact.last, patience, grace);
    }

    fn is_over(&mut self, over: &Over) {
        let hw = self.context.config.kinds == Kinds::Hw;
        let hold = hw.then(|| Instant::now() + HW_HOLD);
        self.roster.over(&over.job_id, over.attempt, hold);
        if over.faulty {
            // A machine that can begin nothing (a full disk) must not eat job after job.
            let pause = self.fault_backoff.step();
            tracing::warn!(
                ?pause,
                "this machine could not begin a job, it rests before it asks again"
            );
            self.ask_at = self.ask_at.max(Instant::now() + pause);
        } else {
            self.fault_backoff.reset();
        }
    }

    fn has_finished(&mut self, ended: Result<(Id, Finished), tokio::task::JoinError>) {
        let id = match &ended {
            Ok((id, _)) => *id,
            Err(error) => error.id(),
        };
        let Some(key) = self.names.remove(&id) else {
            return;
        };
        if let Err(error) = ended {
            tracing::error!(job_id = key.0, %error, "a job's course broke off, its end stays in its journal");
        }
        self.roster.remove(&key);
    }

    /// Opens a request where there is room and none is open, or the open one says too little. One that
    /// says too much stays: the scheduler knows what it granted since.
    fn keep_asking(&mut self, now: Instant) {
        let room = self.roster.room(&self.context.config, now);
        if self.served {
            (self.ask, self.older) = (None, None);
            return;
        }
        let Some(room) = room else {
            return;
        };
        let says_enough = self.ask.as_ref().is_some_and(|open| open.room.covers(room));
        if says_enough && !self.ask_anew {
            return;
        }
        if self.older.is_some() {
            // Its answer is on its way: then a newer one takes its place.
            return;
        }
        // One that was not sent yet is not missed.
        self.older = self.ask.take().filter(|open| open.sent <= now);
        self.ask_anew = false;
        let request = match self.unanswered.take() {
            Some((request, asked)) if asked == room && self.older.is_none() => request,
            _ => self.next_request(room),
        };
        let (client, host) = (self.asker.clone(), self.context.config.host.clone());
        let (body, at) = (request.clone(), self.ask_at);
        self.ask = Some(Ask {
            request,
            room,
            sent: at.max(now),
            answer: Box::pin(async move {
                sleep_until(at).await;
                client.consume(&host, &body).await
            }),
        });
    }

    fn next_request(&mut self, room: Room) -> ConsumeRequest {
        self.number += 1;
        let config = &self.context.config;
        ConsumeRequest {
            session: self.context.session(),
            request: self.number,
            // Whatever was granted up to here and is not named was not read, and is dropped.
            seen: self
                .older
                .as_ref()
                .map(|older| older.request.request.saturating_sub(1)),
            kinds: config.kinds.words(),
            arch: config.arch.clone(),
            group: config.group.clone(),
            memory_mb: config.memory_mb,
            free_memory_mb: room.free_mb,
            tags: config.tags.clone(),
            devices: config.devices.clone(),
            cache_dirs: config.cache_dirs.clone(),
            jobs_max: room.slots,
            wait_s: config.wait_s,
            running: self.roster.named(),
            instance: self.context.instance.clone(),
            isolation: self.context.isolation().to_owned(),
        }
    }

    /// The answer to a request that was replaced meanwhile.
    fn older_answered(&mut self, answer: Result<ConsumeAnswer, ClientError>) {
        let Some(older) = self.older.take() else {
            return;
        };
        match answer {
            Ok(answer) => {
                // Of what the open request offers the scheduler counts these off.
                if let Some(open) = &mut self.ask {
                    open.room = open.room.without(&answer.jobs);
                }
                self.take_answer(older.sent, answer);
            }
            // A conflict says that the newer one was there first: nothing was granted.
            Err(error) if error.status() == Some(409) => {}
            Err(error) => {
                self.contact.failed(&error);
                self.ask_anew = true;
            }
        }
    }

    fn take_answer(&mut self, sent: Instant, answer: ConsumeAnswer) {
        let url = self.asker.last_good_url();
        self.contact
            .answered(url, sent, answer.lease_ms, answer.heartbeat_ms);
        self.contact.ask_backoff.reset();
        self.contact.conflict_backoff.reset();
        self.obey(answer.stop);
        self.take(answer.jobs);
        self.served = self.context.config.once && self.roster.running().next().is_some();
    }

    fn answered(&mut self, answer: Result<ConsumeAnswer, ClientError>) -> anyhow::Result<()> {
        let Some(ask) = self.ask.take() else {
            return Ok(());
        };
        let now = Instant::now();
        match answer {
            Ok(answer) => {
                self.take_answer(ask.sent, answer);
            }
            Err(error) => {
                let refused = error.status().is_some_and(|status| {
                    (400..500).contains(&status) && !matches!(status, 408 | 409 | 425 | 429)
                });
                let has_new_token = self.has_new_token(&error);
                if refused && !has_new_token && !self.contact.ever {
                    return Err(error).context("the scheduler refuses this testbox");
                }
                self.contact.failed(&error);
                let pause = if error.code() == Some(ErrorCode::HostConflict) {
                    self.contact.conflict_backoff.step()
                } else {
                    self.contact.ask_backoff.step()
                };
                self.ask_at = now + pause;
                if error.code() == Some(ErrorCode::SessionOver) {
                    self.begin_anew();
                }
                // A conflict says that this number is behind: only a new one can help.
                if error.status() != Some(409) {
                    self.unanswered = Some((ask.request, ask.room));
                }
            }
        }
        Ok(())
    }

    /// After a refusal of the token: whether its file has another one by now. All requests have it from then on.
    fn has_new_token(&mut self, refusal: &ClientError) -> bool {
        let Some(file) = self.context.config.token_file.as_ref() else {
            return false;
        };
        if refusal.status() != Some(401) {
            return false;
        }
        let token = match std::fs::read_to_string(file) {
            Ok(text) => text.trim().to_owned(),
            Err(error) => {
                tracing::warn!(%error, file = %file.display(), "the token file cannot be read again");
                return false;
            }
        };
        if token.is_empty() || self.token.as_ref() == Some(&token) {
            return false;
        }
        let clients = [&self.asker, &self.beater, &self.context.client];
        for client in clients {
            if let Err(error) = client.set_token(Some(&token)) {
                tracing::warn!(%error, file = %file.display(), "the token file has no token that can be sent");
                return false;
            }
        }
        tracing::info!(file = %file.display(), "the token was refused; its file has another one");
        self.token = Some(token);
        true
    }

    /// The scheduler has heard of another session since: of another agent of this name, or a request that an
    /// earlier start of this one sent was long on its way. Asking again as before would be refused for ever.
    fn begin_anew(&mut self) {
        self.context.begin_session();
        self.number = 0;
        let host = &self.context.config.host;
        tracing::warn!(
            host,
            "another session of this host was heard of; begins a new one (hint: if this goes on, two agents have this name)"
        );
    }

    /// Heartbeats are for leases; an idle agent is heard of by its requests, unless these wait long, or it rests.
    fn needs_beats(&self) -> bool {
        let wait = Duration::from_secs(u64::from(self.context.config.wait_s));
        let waits_long = wait > self.contact.lease / 2;
        let rests = self.ask_at > Instant::now() + self.contact.heartbeat;
        !self.roster.is_empty() || (self.contact.ever && (waits_long || rests))
    }

    fn send_beat(&mut self) {
        let request = HeartbeatRequest {
            session: self.context.session(),
            running: self.roster.named(),
            free_memory_mb: self.roster.free(&self.context.config).free_mb,
        };
        let (client, host) = (self.beater.clone(), self.context.config.host.clone());
        self.beat = Some(Beat {
            sent: Instant::now(),
            answer: Box::pin(async move { client.heartbeat(&host, &request).await }),
        });
    }

    fn beaten(&mut self, answer: Result<HeartbeatAnswer, ClientError>) {
        let Some(beat) = self.beat.take() else {
            return;
        };
        match answer {
            Ok(answer) => {
                let url = self.beater.last_good_url();
                self.contact
                    .answered(url, beat.sent, answer.lease_ms, answer.heartbeat_ms);
                self.contact.beat_backoff.reset();
                self.beat_at = beat.sent + self.contact.heartbeat;
                self.obey(answer.stop);
            }
            Err(error) => {
                self.has_new_token(&error);
                self.contact.failed(&error);
                let pause = self.contact.beat_backoff.step();
                self.beat_at = Instant::now() + pause.min(self.contact.heartbeat);
            }
        }
    }

    /// Stops what runs, delivers what can be delivered in time, and leaves the rest to the journal.
    pub(super) async fn wind_down(mut self) {
        (self.ask, self.older) = (None, None);
        let context = Arc::clone(&self.context);
        let config = &context.config;
        let mut rest = config.report_on_stop;
        if self.roster.running().next().is_some() {
            rest += config.grace + KILL_PATIENCE;
        }
        self.roster.stop_all(config.grace);
        let kill = config.kill_now.clone();
        let mut deadline = Instant::now() + rest;
        let mut killed = false;
        while !self.courses.is_empty() {
            // Jobs in their grace are still ours: without heartbeats others would begin them.
            let beats = self.beat.is_none() && self.needs_beats();
            tokio::select! {
                answer = open(self.beat.as_mut().map(|beat| &mut beat.answer)) => self.beaten(answer),
                () = sleep_until(self.beat_at), if beats => self.send_beat(),
                Some(over) = self.overs.recv() => self.is_over(&over),
                Some(ended) = self.courses.join_next_with_id() => self.has_finished(ended),
                () = kill.cancelled(), if !killed => {
                    killed = true;
                    deadline = deadline.min(Instant::now() + KILL_PATIENCE);
                }
                () = sleep_until(deadline) => break,
            }
        }
        if !self.courses.is_empty() {
            let left = self.courses.len();
            tracing::warn!(
                left,
                "ends are not delivered yet, the next start of the agent does it"
            );
        }
        self.courses.shutdown().await;
    }
}

/// The answer of what is open; never, when nothing is.
async fn open<T>(waiting: Option<&mut Waiting<T>>) -> Result<T, ClientError> {
    match waiting {
        Some(waiting) => waiting.await,
        None => std::future::pending().await,
    }
}
