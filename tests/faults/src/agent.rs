//! One cheap testbox: a task that asks for work, pretends to run it, and notes when each job ran.
//!
//! It does what the real agent does where promises depend on it: one request at a time, repeated until it is
//! answered; heartbeats that name what it has; stop orders obeyed; jobs stopped by itself when no replica
//! answered for two thirds of a lease. A job begins only when the scheduler has confirmed it. Killed, it
//! loses all; paused, nothing of it moves, its jobs included, as on a machine that hangs.

use std::{collections::BTreeMap, future::Future, pin::Pin, sync::Arc, time::Duration};

use fairlead_api::{
    Client, ClientError, ConsumeAnswer, ConsumeRequest, Grant, HeartbeatAnswer, HeartbeatRequest,
    HeldJob, StopOrder,
};
use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::{
    course::{Job, Step},
    history::{Finish, History, Interval},
};

/// How long a request for work may wait at the scheduler, seconds.
pub(super) const WAIT_S: u32 = 10;
/// Pauses before the next try of what failed.
const RETRY_MIN: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(2);
const BEAT_REST: Duration = Duration::from_millis(300);
/// Longest sleep of the loop.
const WAKE: Duration = Duration::from_hours(1);

/// What a testbox is.
#[derive(Debug, Clone)]
pub(super) struct Testbox {
    pub(super) host: String,
    pub(super) hw: bool,
    pub(super) memory_mb: u32,
}

/// Whether its machine runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Power {
    /// It runs.
    On,
    /// Nothing of it moves.
    Paused,
    /// It lost everything.
    Off,
}

type Waiting<T> = Pin<Box<dyn Future<Output = Result<T, ClientError>> + Send>>;
type Course = Pin<Box<dyn Future<Output = (HeldJob, Step)> + Send>>;

/// Its ways to the replicas. Each knows by itself which one answered last.
#[derive(Debug, Clone)]
pub(super) struct Lines {
    /// For work and reports.
    pub(super) client: Client,
    /// For heartbeats: less patient, so that several are tried within a lease.
    pub(super) beater: Client,
}

/// A job that it has.
struct Held {
    job: Job,
    granted: Instant,
    /// Cancelled when it is to be forgotten.
    over: CancellationToken,
    /// Whether it is to run now (as opposed to: not begun, or its end is being told).
    executing: bool,
    /// Its open interval.
    interval: Option<usize>,
}

/// One life of a testbox, from its start to its loss.
struct Life {
    about: Testbox,
    lines: Lines,
    history: Arc<History>,
    session: String,
    number: u64,
    held: BTreeMap<String, Held>,
    courses: FuturesUnordered<Course>,
    ask: Option<(ConsumeRequest, Instant, Waiting<ConsumeAnswer>)>,
    /// A request that got no answer: it is sent again as it was.
    unanswered: Option<ConsumeRequest>,
    ask_at: Instant,
    ask_rest: Duration,
    beat: Option<(Instant, Waiting<HeartbeatAnswer>)>,
    beat_at: Instant,
    /// When the last request that was answered well was sent.
    contact: Option<Instant>,
    lease: Duration,
    heartbeat: Duration,
}

/// Lives until `power` has no owner any more.
pub(super) async fn live(
    about: Testbox,
    lines: Lines,
    history: Arc<History>,
    mut power: watch::Receiver<Power>,
) {
    loop {
        if power.wait_for(|power| *power != Power::Off).await.is_err() {
            return;
        }
        let mut life = Life::new(about.clone(), lines.clone(), Arc::clone(&history));
        if life.work(&mut power).await.is_err() {
            return;
        }
    }
}

/// Nobody will switch it any more.
struct Abandoned;

impl Life {
    fn new(about: Testbox, lines: Lines, history: Arc<History>) -> Self {
        let now = Instant::now();
        Self {
            about,
            lines,
            history,
            session: uuid::Uuid::new_v4().to_string(),
            number: 0,
            held: BTreeMap::new(),
            courses: FuturesUnordered::new(),
            ask: None,
            unanswered: None,
            ask_at: now,
            ask_rest: RETRY_MIN,
            beat: None,
            beat_at: now,
            contact: None,
            lease: Duration::from_mins(1),
            heartbeat: Duration::from_secs(10),
        }
    }

    /// Works until it is switched off.
    async fn work(&mut self, power: &mut watch::Receiver<Power>) -> Result<(), Abandoned> {
        loop {
            let now = *power.borrow_and_update();
            match now {
                Power::Off => return Ok(()),
                Power::Paused => {
                    self.freeze();
                    power.changed().await.map_err(|_| Abandoned)?;
                    continue;
                }
                Power::On => self.thaw(),
            }
            self.keep_asking();
            let beats = self.beat.is_none() && !self.held.is_empty();
            let wake = self.wakes_at();
            tokio::select! {
                biased;
                switched = power.changed() => switched.map_err(|_| Abandoned)?,
                Some((named, step)) = self.courses.next() => self.stepped(&named, step),
                answer = open(self.ask.as_mut().map(|(_, _, answer)| answer)) => self.answered(answer),
                answer = open(self.beat.as_mut().map(|(_, answer)| answer)) => self.beaten(answer),
                () = sleep_until(self.beat_at), if beats => self.send_beat(),
                () = sleep_until(wake) => {}
            }
        }
    }

    /// Nothing of the machine moves: no job runs.
    fn freeze(&mut self) {
        for held in self.held.values_mut() {
            if let Some(interval) = held.interval.take() {
                self.history.stopped(interval);
            }
        }
    }

    /// The machine moves: first of all it looks whether its jobs are still its own, then they go on.
    fn thaw(&mut self) {
        let (now, patience) = (Instant::now(), self.patience());
        let cut: Vec<String> = self
            .held
            .iter()
            .filter(|(_, held)| {
                now >= self.contact.map_or(held.granted, |at| at.max(held.granted)) + patience
            })
            .map(|(id, _)| id.clone())
            .collect();
        for id in cut {
            self.history
                .trouble("jobs stopped because no replica answered");
            self.forget(&id);
        }
        for held in self.held.values_mut() {
            if held.executing && held.interval.is_none() {
                let HeldJob {
                    job_id,
                    attempt,
                    claim_token,
                } = held.job.named.clone();
                held.interval = Some(self.history.started(Interval {
                    job: job_id,
                    attempt,
                    token: claim_token,
                    host: self.about.host.clone(),
                    memory_mb: held.job.memory_mb,
                    start: self.history.now(),
                    end: None,
                }));
            }
        }
    }

    /// How long it goes on without contact: the rest of the lease is for stopping.
    fn patience(&self) -> Duration {
        self.lease * 2 / 3
    }

    fn wakes_at(&self) -> Instant {
        let patience = self.patience();
        let cuts = self
            .held
            .values()
            .map(|held| self.contact.map_or(held.granted, |at| at.max(held.granted)) + patience);
        let asks = (self.ask.is_none() && self.ask_at > Instant::now()).then_some(self.ask_at);
        cuts.chain(asks)
            .min()
            .unwrap_or_else(|| Instant::now() + WAKE)
    }

    fn forget(&mut self, job_id: &str) {
        if let Some(held) = self.held.remove(job_id) {
            held.over.cancel();
            if let Some(interval) = held.interval {
                self.history.stopped(interval);
            }
        }
    }

    fn named(&self) -> Vec<HeldJob> {
        self.held
            .values()
            .map(|held| held.job.named.clone())
            .collect()
    }

    /// What is not taken by jobs, MB; a hw machine is free or not.
    fn free_mb(&self) -> u32 {
        if self.about.hw {
            return if self.held.is_empty() {
                self.about.memory_mb
            } else {
                0
            };
        }
        let used: u32 = self.held.values().map(|held| held.job.memory_mb).sum();
        self.about.memory_mb.saturating_sub(used)
    }

    fn keep_asking(&mut self) {
        let free_mb = self.free_mb();
        if self.ask.is_some() || free_mb == 0 || Instant::now() < self.ask_at {
            return;
        }
        let request = match self.unanswered.take() {
            // Its jobs may be in an answer that was lost: asked for again, with what it has by now.
            Some(request) => ConsumeRequest {
                running: self.named(),
                ..request
            },
            None => self.next_request(free_mb),
        };
        let (client, host, body) = (
            self.lines.client.clone(),
            self.about.host.clone(),
            request.clone(),
        );
        let answer = Box::pin(async move { client.consume(&host, &body).await });
        self.ask = Some((request, Instant::now(), answer));
    }

    fn next_request(&mut self, free_mb: u32) -> ConsumeRequest {
        self.number += 1;
        let kinds: &[&str] = if self.about.hw {
            &["hw"]
        } else {
            &["vm", "dc"]
        };
        ConsumeRequest {
            session: self.session.clone(),
            request: self.number,
            seen: None,
            kinds: kinds.iter().map(|&kind| kind.to_owned()).collect(),
            arch: std::env::consts::ARCH.to_owned(),
            group: String::new(),
            memory_mb: self.about.memory_mb,
            free_memory_mb: free_mb,
            tags: Vec::new(),
            devices: Vec::new(),
            cache_dirs: Vec::new(),
            jobs_max: 64,
            wait_s: WAIT_S,
            running: self.named(),
            instance: String::new(),
            isolation: String::new(),
        }
    }

    fn answered(&mut self, answer: Result<ConsumeAnswer, ClientError>) {
        let Some((request, sent, _)) = self.ask.take() else {
            return;
        };
        match answer {
            Ok(answer) => {
                self.ask_rest = RETRY_MIN;
                self.heard(sent, answer.lease_ms, answer.heartbeat_ms);
                self.obey(&answer.stop);
                if !answer.jobs.is_empty() {
                    let took = super::history::micros(sent.elapsed());
                    self.history.facts().consume_took.push(took);
                }
                for grant in &answer.jobs {
                    self.take(grant);
                }
            }
            Err(error) => {
                self.history.trouble("requests for work without an answer");
                // A conflict says that this number is behind: only a new one can help.
                if error.status() != Some(409) {
                    self.unanswered = Some(request);
                }
                self.ask_at = Instant::now() + self.ask_rest;
                self.ask_rest = (self.ask_rest * 2).min(RETRY_MAX);
            }
        }
    }

    fn heard(&mut self, sent: Instant, lease_ms: u64, heartbeat_ms: u64) {
        self.contact = self.contact.max(Some(sent));
        self.lease = Duration::from_millis(lease_ms);
        self.heartbeat = Duration::from_millis(heartbeat_ms);
    }

    fn take(&mut self, grant: &Grant) {
        let job = Job::of(grant);
        if let Some(held) = self.held.get(&grant.job_id) {
            if held.job.named == job.named {
                return;
            }
            // A newer claim means that the older one is lost: never both at once.
            self.forget(&grant.job_id);
        }
        let free_mb = self.free_mb();
        if free_mb == 0 || job.memory_mb > free_mb {
            let what = format!("{} to {}, {free_mb} MB free", grant.job_id, self.about.host);
            self.history.facts().overgranted.push(what);
            return;
        }
        let over = CancellationToken::new();
        self.courses.push(Box::pin(
            job.clone().begin(self.lines.client.clone(), over.clone()),
        ));
        let held = Held {
            job,
            granted: Instant::now(),
            over,
            executing: false,
            interval: None,
        };
        self.held.insert(grant.job_id.clone(), held);
    }

    fn obey(&mut self, orders: &[StopOrder]) {
        for order in orders {
            let same = self.held.get(&order.job_id);
            if same.is_some_and(|held| held.job.named.attempt == order.attempt) {
                self.history.trouble("jobs stopped by order");
                self.forget(&order.job_id);
            }
        }
    }

    fn stepped(&mut self, named: &HeldJob, step: Step) {
        let Some(held) = self.held.get_mut(&named.job_id) else {
            return;
        };
        if held.job.named != *named {
            return;
        }
        let (job, client, over) = (
            held.job.clone(),
            self.lines.client.clone(),
            held.over.clone(),
        );
        match step {
            Step::Begun(Ok(())) => {
                // Its interval opens when the loop comes round: after a look whether it is still ours.
                held.executing = true;
                self.courses.push(Box::pin(job.work(over)));
            }
            Step::Ran => {
                held.executing = false;
                if let Some(interval) = held.interval.take() {
                    self.history.stopped(interval);
                }
                let sent = (named.job_id.clone(), named.attempt);
                self.history.facts().finishes_sent.push(sent);
                self.courses.push(Box::pin(job.end(client, over)));
            }
            Step::Ended(said) => {
                let at = self.history.now();
                self.history.facts().finishes.push(Finish {
                    job: named.job_id.clone(),
                    attempt: named.attempt,
                    confirmed: said.is_ok(),
                    at,
                });
                self.forget(&named.job_id);
            }
            Step::Begun(Err(_)) => {
                self.history.trouble("jobs that were not to begin any more");
                self.forget(&named.job_id);
            }
            Step::Dropped => {}
        }
    }

    fn send_beat(&mut self) {
        let request = HeartbeatRequest {
            session: self.session.clone(),
            running: self.named(),
            free_memory_mb: self.free_mb(),
        };
        let (client, host) = (self.lines.beater.clone(), self.about.host.clone());
        let answer = Box::pin(async move { client.heartbeat(&host, &request).await });
        self.beat = Some((Instant::now(), answer));
    }

    fn beaten(&mut self, answer: Result<HeartbeatAnswer, ClientError>) {
        let Some((sent, _)) = self.beat.take() else {
            return;
        };
        if let Ok(answer) = answer {
            self.heard(sent, answer.lease_ms, answer.heartbeat_ms);
            self.beat_at = sent + self.heartbeat;
            self.obey(&answer.stop);
        } else {
            self.history.trouble("heartbeats without an answer");
            self.beat_at = Instant::now() + BEAT_REST;
        }
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.freeze();
    }
}

/// The answer of what is open; never, when nothing is.
async fn open<T>(waiting: Option<&mut Waiting<T>>) -> Result<T, ClientError> {
    match waiting {
        Some(waiting) => waiting.await,
        None => std::future::pending().await,
    }
}
