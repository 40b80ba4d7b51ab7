//! One cheap testbox: a task that drives the real agent's protocol, pretends to run jobs, and notes when each ran.
//!
//! Killed, it loses all; paused, nothing of it moves, its jobs included, as on a machine that hangs.

use std::{collections::BTreeMap, pin::Pin, sync::Arc, time::Duration};

use fairlead_api::{Client, ConsumeRequest, Grant, HeartbeatRequest, JobUpdate};
use fairlead_job::Stage;
use fairlead_testbox::{
    JobLine,
    protocol::{Action, Core, Event, Failure, Host, Key, LOADED_REST, Told, Why, Word},
};
use futures_util::{
    StreamExt,
    future::{AbortHandle, Abortable},
    stream::FuturesUnordered,
};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep_until},
};

use super::{
    course::{Job, SUCCESS},
    history::{Finish, History, Interval, micros},
};

/// Time for which a request for work may wait at the scheduler, seconds.
pub(super) const WAIT_S: u32 = 10;
/// Grace period of jobs. All jobs end at once.
const GRACE: Duration = Duration::from_secs(1);
/// Maximum number of concurrent jobs on a host.
const JOBS_MAX: u32 = 64;
/// Maximum number of job events in the queue.
const EVENTS: usize = 64;
/// Maximum sleep of the loop.
const WAKE: Duration = Duration::from_hours(1);

/// Properties of a testbox.
#[derive(Debug, Clone)]
pub(super) struct Testbox {
    pub(super) host: String,
    pub(super) hw: bool,
    pub(super) memory_mb: u32,
}

/// Power state of a testbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Power {
    /// The machine runs.
    On,
    /// The machine is frozen.
    Paused,
    /// The machine lost everything.
    Off,
}

type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Clients for the replicas. Each one remembers the replica that answered last.
#[derive(Debug, Clone)]
pub(super) struct Lines {
    /// Client for work and reports.
    pub(super) client: Client,
    /// Client for heartbeats, with a shorter timeout, so that several are tried within a lease.
    pub(super) beater: Client,
}

/// A job that the testbox has.
struct Held {
    job: Job,
    teller: watch::Sender<Told>,
    /// Its report in transit.
    report: Option<AbortHandle>,
    /// True if it must run now: it is started, not stopped, and its end is not being reported.
    runs: bool,
    /// Its open interval.
    interval: Option<usize>,
}

/// One life of a testbox, from its start to its loss.
struct Life {
    about: Testbox,
    lines: Lines,
    history: Arc<History>,
    core: Core,
    started: Instant,
    events: mpsc::Receiver<Event>,
    sender: mpsc::Sender<Event>,
    held: BTreeMap<Key, Held>,
    courses: FuturesUnordered<Work<Key>>,
    calls: FuturesUnordered<Abortable<Work<Event>>>,
}

/// Runs a testbox until `power` has no sender any more.
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

/// Error: the power switch has no owner any more.
struct Abandoned;

/// Returns a session name that contains its start time.
fn new_session() -> String {
    uuid::Uuid::now_v7().to_string()
}

impl Life {
    fn new(about: Testbox, lines: Lines, history: Arc<History>) -> Self {
        let (sender, events) = mpsc::channel(EVENTS);
        let seed = uuid::Uuid::new_v4().as_u64_pair().0;
        Self {
            core: Core::new(about.host(), Duration::ZERO, seed),
            started: Instant::now(),
            about,
            lines,
            history,
            events,
            sender,
            held: BTreeMap::new(),
            courses: FuturesUnordered::new(),
            calls: FuturesUnordered::new(),
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
            let wake = self.core.wakes_at().map(|at| self.started + at);
            let wake = wake.unwrap_or_else(|| Instant::now() + WAKE);
            tokio::select! {
                biased;
                switched = power.changed() => switched.map_err(|_| Abandoned)?,
                Some(event) = self.events.recv() => self.comes(event),
                Some(key) = self.courses.next() => {
                    self.held.remove(&key);
                    self.handle(Event::Gone { key });
                }
                Some(called) = self.calls.next() => {
                    // An aborted call has no event.
                    if let Ok(event) = called {
                        self.handle(event);
                    }
                }
                () = sleep_until(wake) => {}
            }
        }
    }

    /// Ends the intervals of all jobs, because the machine is frozen.
    fn freeze(&mut self) {
        for held in self.held.values_mut() {
            if let Some(interval) = held.interval.take() {
                self.history.stopped(interval);
            }
        }
    }

    /// Resumes after a freeze. First it checks whether its jobs are still its own, then they go on.
    fn thaw(&mut self) {
        self.handle(Event::Wake);
        let begin = self.held.values_mut().filter(|held| held.runs);
        for held in begin.filter(|held| held.interval.is_none()) {
            held.interval = Some(self.history.started(Interval {
                job: held.job.key.0.clone(),
                attempt: held.job.key.1,
                token: held.job.token.clone(),
                host: self.about.host.clone(),
                memory_mb: held.job.memory_mb,
                start: self.history.now(),
                end: None,
            }));
        }
    }

    /// Handles the progress of a job.
    fn comes(&mut self, event: Event) {
        match &event {
            // Its interval opens in the next round of the loop, after a check that the job is still ours.
            Event::Stage { key, stage, .. } if *stage == Stage::Running => {
                if let Some(held) = self.held.get_mut(key) {
                    held.runs = held.teller.borrow().stop.is_none();
                }
            }
            Event::Stage { key, more, .. } if more.job_health.as_deref() == Some(SUCCESS) => {
                self.history.facts().finishes_sent.push(key.clone());
            }
            Event::Over { key, .. } => self.stops(key),
            _ => {}
        }
        self.handle(event);
    }

    fn handle(&mut self, event: Event) {
        self.core.handle(self.started.elapsed(), event);
        while let Some(action) = self.core.next_action() {
            self.carry_out(action);
        }
    }

    fn carry_out(&mut self, action: Action) {
        match action {
            Action::AskForWork { call, request } => self.ask(call, request),
            Action::Heartbeat { call, request } => self.beat(call, request),
            Action::Report { key, call, update } => self.report(key, call, update),
            Action::Start(grant) => self.start(&grant),
            Action::TurnAway { grant, room } => {
                let (job, host, free_mb) = (&grant.job_id, &self.about.host, room.free_mb);
                let what = format!("{job} to {host}, {free_mb} MB free");
                self.history.facts().overgranted.push(what);
            }
            Action::Tell { key, word } => {
                if let Word::Stop(stop) = &word {
                    self.history.trouble(match stop.why {
                        Why::Order { .. } => "jobs stopped by order",
                        Why::Agent | Why::Forget { .. } => "jobs that were no longer its own",
                    });
                    self.stops(&key);
                }
                if let Some(held) = self.held.get(&key) {
                    held.teller.send_modify(|told| told.hear(word));
                }
            }
            Action::NewSession => {
                let session = Event::Session(new_session());
                self.core.handle(self.started.elapsed(), session);
            }
            Action::HangUp
            | Action::Found
            | Action::Lost(_)
            | Action::Refused(_)
            | Action::Unwelcome(_)
            | Action::Loaded(_)
            | Action::Rest(_) => {}
        }
    }

    fn start(&mut self, grant: &Grant) {
        let job = Job::of(grant);
        let (teller, line) = JobLine::new(job.key.clone(), self.sender.clone());
        let (client, history) = (self.lines.client.clone(), Arc::clone(&self.history));
        self.courses
            .push(Box::pin(job.clone().run(line, client, history)));
        let held = Held {
            job,
            teller,
            report: None,
            runs: false,
            interval: None,
        };
        self.held.insert(held.job.key.clone(), held);
    }

    /// Notes that a job runs no more.
    fn stops(&mut self, key: &Key) {
        if let Some(held) = self.held.get_mut(key) {
            held.runs = false;
            if let Some(interval) = held.interval.take() {
                self.history.stopped(interval);
            }
        }
    }

    fn call(&self, asking: impl Future<Output = Event> + Send + 'static) -> AbortHandle {
        let (handle, registration) = AbortHandle::new_pair();
        let asking: Work<Event> = Box::pin(asking);
        self.calls.push(Abortable::new(asking, registration));
        handle
    }

    fn ask(&self, call: u64, request: ConsumeRequest) {
        let (client, host) = (self.lines.client.clone(), self.about.host.clone());
        let history = Arc::clone(&self.history);
        self.call(async move {
            let sent = Instant::now();
            let answer = client.consume(&host, &request).await;
            match &answer {
                Ok(answer) if answer.jobs.is_empty() => {}
                Ok(_) => history.facts().consume_took.push(micros(sent.elapsed())),
                Err(_) => history.trouble("requests for work that failed"),
            }
            let answer = answer.map_err(|error| Failure::from(&error));
            Event::Work { call, answer }
        });
    }

    fn beat(&self, call: u64, request: HeartbeatRequest) {
        let (client, host) = (self.lines.beater.clone(), self.about.host.clone());
        let history = Arc::clone(&self.history);
        self.call(async move {
            let answer = client.heartbeat(&host, &request).await;
            if answer.is_err() {
                history.trouble("heartbeats that failed");
            }
            let answer = answer.map_err(|error| Failure::from(&error));
            Event::Beat { call, answer }
        });
    }

    fn report(&mut self, key: Key, call: u64, update: JobUpdate) {
        let client = self.lines.client.clone();
        let history = Arc::clone(&self.history);
        let name = key.clone();
        let report = self.call(async move {
            let answer = client.update(&key.0, &update).await.map(drop);
            let answer = answer.map_err(|error| Failure::from(&error));
            let is_last = answer.as_ref().err().is_none_or(Failure::is_final);
            if is_last && update.job_health.as_deref() == Some(SUCCESS) {
                let (job, attempt) = key.clone();
                let at = history.now();
                history.facts().finishes.push(Finish {
                    job,
                    attempt,
                    confirmed: answer.is_ok(),
                    at,
                });
            }
            Event::Reported { key, call, answer }
        });
        let before = self
            .held
            .get_mut(&name)
            .and_then(|held| held.report.replace(report));
        if let Some(before) = before {
            before.abort();
        }
    }
}

impl Testbox {
    fn host(&self) -> Host {
        let kinds: &[&str] = if self.hw { &["hw"] } else { &["vm", "dc"] };
        Host {
            says: ConsumeRequest {
                content: Vec::new(),
                load: None,
                session: new_session(),
                request: 0,
                seen: None,
                kinds: kinds.iter().map(|&kind| kind.to_owned()).collect(),
                arch: std::env::consts::ARCH.to_owned(),
                group: String::new(),
                memory_mb: self.memory_mb,
                free_memory_mb: self.memory_mb,
                cpus: None,
                free_cpus: None,
                tags: Vec::new(),
                devices: Vec::new(),
                cache_dirs: Vec::new(),
                jobs_max: if self.hw { 1 } else { JOBS_MAX },
                wait_s: WAIT_S,
                running: Vec::new(),
                instance: self.host.clone(),
                isolation: String::new(),
                executors: Vec::new(),
                facts: BTreeMap::new(),
            },
            grace: GRACE,
            loaded_rest: LOADED_REST,
            once: false,
        }
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.freeze();
    }
}
