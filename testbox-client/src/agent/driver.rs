//! The agent's one loop. It drives the protocol: carries out its actions, and feeds it the outcomes.

use std::{
    collections::{BTreeMap, HashMap},
    future::Future,
    sync::Arc,
    time::Duration,
};

use fairlead_api::{
    Client, ClientError, ConsumeAnswer, ConsumeRequest, Grant, HeartbeatAnswer, HostLoad, JobUpdate,
};
use tokio::{
    sync::{mpsc, watch},
    task::{AbortHandle, Id, JoinError, JoinSet},
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    AgentEvent, JobLine,
    job::{Context, Course, JobFolder, suite_of},
    protocol::{Action, Core, Event, Failure, Host, Key, Measured, Time, Told},
    timer::seed,
};

/// Maximum number of job events in the queue. A job waits if the queue is full.
const EVENTS_MAX: usize = 256;
/// Longest sleep of the loop.
const WAKE_MAX: Duration = Duration::from_hours(1);
/// Time for killed jobs to disappear after an order to kill.
const KILL_PATIENCE: Duration = Duration::from_secs(2);

/// Result of a request that was sent.
enum Answered {
    Work(u64, Result<ConsumeAnswer, ClientError>),
    Beat(u64, Result<HeartbeatAnswer, ClientError>),
    Report(Key, u64, Result<(), ClientError>),
}

/// A job that was started.
struct Job {
    teller: watch::Sender<Told>,
    /// Its report in flight.
    report: Option<AbortHandle>,
}

pub(super) struct Driver {
    pub(super) context: Arc<Context>,
    /// Client for requests to one replica after the other, once each. The core repeats requests.
    asker: Client,
    /// Client with a shorter timeout, for heartbeats.
    beater: Client,
    core: Core,
    started: Instant,
    events: mpsc::Receiver<Event>,
    pub(super) sender: mpsc::Sender<Event>,
    courses: JoinSet<()>,
    names: HashMap<Id, Key>,
    jobs: BTreeMap<Key, Job>,
    calls: JoinSet<Answered>,
    asking: Vec<AbortHandle>,
    beating: Option<AbortHandle>,
    /// Base URL of the last replica that answered.
    url: String,
    /// Token of all requests.
    token: Option<String>,
    /// Refusal of this agent by the scheduler.
    unwelcome: Option<Failure>,
}

impl Driver {
    /// Creates a driver. The two clients ask for work and send heartbeats.
    pub(super) fn new(
        context: Arc<Context>,
        (asker, beater): (Client, Client),
        host: Host,
        load: Option<Measured>,
    ) -> Self {
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        Self {
            core: Core::new(host, Time::ZERO, seed()).with_load(load),
            started: Instant::now(),
            token: context.config.token.clone(),
            context,
            asker,
            beater,
            events,
            sender,
            courses: JoinSet::new(),
            names: HashMap::new(),
            jobs: BTreeMap::new(),
            calls: JoinSet::new(),
            asking: Vec::new(),
            beating: None,
            url: String::new(),
            unwelcome: None,
        }
    }

    /// Works until `stop`, or with `once` until it has served. Fails if the scheduler refuses this agent.
    pub(super) async fn work(&mut self, stop: &CancellationToken) -> anyhow::Result<()> {
        let kill_now = self.context.config.kill_now.clone();
        while !self.core.is_done() {
            let event = tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                () = kill_now.cancelled() => return Ok(()),
                event = self.next_event() => event,
            };
            self.handle(event);
            if let Some(failure) = self.unwelcome.take() {
                let error = anyhow::Error::msg(failure.text().to_owned());
                return Err(error.context("the scheduler refuses this testbox"));
            }
        }
        Ok(())
    }

    /// Stops running jobs, delivers results within the time limit, and leaves the rest to the journal.
    pub(super) async fn wind_down(mut self) {
        let context = Arc::clone(&self.context);
        let config = &context.config;
        let mut rest = config.report_on_stop;
        if self.core.is_busy() {
            rest += config.grace + KILL_PATIENCE;
        }
        let mut deadline = Instant::now() + rest;
        let mut killed = false;
        self.handle(Event::Stop);
        while !self.courses.is_empty() {
            tokio::select! {
                biased;
                () = config.kill_now.cancelled(), if !killed => {
                    killed = true;
                    deadline = deadline.min(Instant::now() + KILL_PATIENCE);
                }
                () = sleep_until(deadline) => break,
                event = self.next_event() => self.handle(event),
            }
        }
        if !self.courses.is_empty() {
            let left = self.courses.len();
            tracing::warn!(
                left,
                "some ended jobs are not reported yet; the next start of the agent reports them"
            );
        }
        self.courses.shutdown().await;
    }

    fn now(&self) -> Time {
        self.started.elapsed()
    }

    async fn next_event(&mut self) -> Event {
        let wake = self.core.wakes_at();
        let wake = self.started + wake.unwrap_or_else(|| self.now() + WAKE_MAX);
        loop {
            let event = tokio::select! {
                biased;
                Some(event) = self.events.recv() => Some(event),
                Some(ended) = self.courses.join_next_with_id() => self.course_ended(ended),
                Some(answered) = self.calls.join_next() => self.answered(answered),
                () = sleep_until(wake) => Some(Event::Wake),
            };
            if let Some(event) = event {
                return event;
            }
        }
    }

    pub(super) fn handle(&mut self, event: Event) {
        let now = self.now();
        self.core.handle(now, event);
        while let Some(action) = self.core.next_action() {
            self.carry_out(action);
        }
    }

    fn carry_out(&mut self, action: Action) {
        let events = &self.context.events;
        match action {
            Action::AskForWork { call, request } => self.ask(call, request),
            Action::HangUp => self.asking.drain(..).for_each(|open| open.abort()),
            Action::Heartbeat { call, request } => {
                let (client, host) = (self.beater.clone(), self.context.config.host.clone());
                let beating =
                    async move { Answered::Beat(call, client.heartbeat(&host, &request).await) };
                abort(self.beating.replace(self.calls.spawn(beating)));
            }
            Action::Report { key, call, update } => self.report(&key, call, update),
            Action::Start(grant) => self.start(grant),
            Action::TurnAway { grant, room } => tracing::warn!(
                job_id = grant.job_id,
                attempt = grant.attempt,
                memory_mb = grant.memory_mb,
                cpus = grant.cpus,
                ?room,
                "the scheduler granted more than was offered; the job goes back"
            ),
            Action::Tell { key, word } => {
                if let Some(job) = self.jobs.get(&key) {
                    job.teller.send_modify(|told| told.hear(word));
                }
            }
            Action::NewSession => {
                let host = &self.context.config.host;
                tracing::warn!(
                    host,
                    "the scheduler knows a newer session of this host; beginning a new one (hint: if this repeats, two agents have this name)"
                );
                self.core.handle(self.now(), Event::Session(new_session()));
            }
            Action::Found => {
                let url = self.url.clone();
                tracing::info!(url, "a scheduler answers");
                events.send(AgentEvent::Connected { url });
            }
            Action::Lost(failure) => {
                let cause = failure.text().to_owned();
                tracing::warn!(error = cause, "no scheduler answers; running jobs continue");
                events.send(AgentEvent::Lost { cause });
            }
            Action::Refused(failure) => {
                tracing::warn!(error = failure.text(), "a scheduler refuses this agent");
            }
            Action::Unwelcome(failure) => self.unwelcome = Some(failure),
            Action::Loaded(load) => tell_of_load(load),
            Action::Rest(pause) => tracing::warn!(
                ?pause,
                "this machine could not start a job; it pauses before it asks again"
            ),
        }
    }

    fn ask(&mut self, call: u64, mut request: ConsumeRequest) {
        request.content = self.context.cache.manifests.words();
        request.facts.extend(self.context.executors.image_facts());
        let (client, host) = (self.asker.clone(), self.context.config.host.clone());
        let asking = async move { Answered::Work(call, client.consume(&host, &request).await) };
        self.asking.retain(|open| !open.is_finished());
        self.asking.push(self.calls.spawn(asking));
    }

    fn report(&mut self, key: &Key, call: u64, update: JobUpdate) {
        let client = self.context.client.clone();
        let name = key.clone();
        let reporting = async move {
            let answer = client.update(&name.0, &update).await;
            Answered::Report(name, call, answer.map(drop))
        };
        let report = self.calls.spawn(reporting);
        if let Some(job) = self.jobs.get_mut(key) {
            abort(job.report.replace(report));
        }
    }

    fn start(&mut self, grant: Grant) {
        let config = &self.context.config;
        let (job_id, attempt) = (grant.job_id.clone(), grant.attempt);
        let key = (job_id.clone(), attempt);
        let folder = match JobFolder::new(&config.work_dir, &job_id, attempt) {
            Ok(folder) => folder,
            Err(error) => {
                // The next request does not name the job, so it goes back.
                tracing::error!(job_id, %error, "a granted job cannot be accepted");
                return self.core.handle(self.now(), Event::Gone { key });
            }
        };
        let memory_mb = grant.memory_mb;
        tracing::info!(job_id, attempt, memory_mb, "job taken");
        self.context.events.send(AgentEvent::Granted {
            job_id,
            attempt,
            suite: suite_of(&grant),
            memory_mb,
        });
        let context = Arc::clone(&self.context);
        self.spawn(key, |line| {
            let run = Uuid::new_v4().to_string();
            Course {
                context,
                grant,
                folder,
                run,
                line,
                holds: Vec::new(),
            }
            .run()
        });
    }

    /// Runs a job's course to its end.
    pub(super) fn spawn<C>(&mut self, key: Key, course: impl FnOnce(JobLine) -> C)
    where
        C: Future<Output = ()> + Send + 'static,
    {
        let (teller, line) = JobLine::new(key.clone(), self.sender.clone());
        let id = self.courses.spawn(course(line)).id();
        self.names.insert(id, key.clone());
        let report = None;
        self.jobs.insert(key, Job { teller, report });
    }

    fn course_ended(&mut self, ended: Result<(Id, ()), JoinError>) -> Option<Event> {
        let id = match &ended {
            Ok((id, ())) => *id,
            Err(error) => error.id(),
        };
        let key = self.names.remove(&id)?;
        if let Err(error) = ended {
            tracing::error!(job_id = key.0, %error, "the task of a job failed; the end of the job stays in its journal");
        }
        abort(self.jobs.remove(&key).and_then(|job| job.report));
        Some(Event::Gone { key })
    }

    fn answered(&mut self, answered: Result<Answered, JoinError>) -> Option<Event> {
        let answered = match answered {
            Ok(answered) => answered,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // The job was given up.
            Err(_) => return None,
        };
        Some(match answered {
            Answered::Work(call, answer) => {
                if answer.is_ok() {
                    self.asker.last_good_url().clone_into(&mut self.url);
                }
                let answer = answer.map_err(|error| self.failure(&error));
                Event::Work { call, answer }
            }
            Answered::Beat(call, answer) => {
                if answer.is_ok() {
                    self.beater.last_good_url().clone_into(&mut self.url);
                }
                let answer = answer.map_err(|error| self.failure(&error));
                Event::Beat { call, answer }
            }
            Answered::Report(key, call, answer) => {
                let answer = answer.map_err(|error| Failure::from(&error));
                if let Err(failure) = answer.as_ref()
                    && !failure.is_final()
                {
                    let (job_id, error) = (&key.0, failure.text());
                    tracing::warn!(job_id, error, "no answer to a report yet; retrying");
                }
                Event::Reported { key, call, answer }
            }
        })
    }

    /// Returns a failure as the core takes it. A refused token may have been replaced since.
    fn failure(&mut self, error: &ClientError) -> Failure {
        let failure = Failure::from(error);
        if self.has_new_token(error) {
            return failure.mended();
        }
        failure
    }

    /// Reads the token file again after a refusal. Returns true if it has another token, which all later requests use.
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
                tracing::warn!(%error, file = %file.display(), "the token file cannot be read");
                return false;
            }
        };
        if token.is_empty() || self.token.as_ref() == Some(&token) {
            return false;
        }
        let clients = [&self.asker, &self.beater, &self.context.client];
        for client in clients {
            if let Err(error) = client.set_token(Some(&token)) {
                tracing::warn!(%error, file = %file.display(), "the token file has no valid token");
                return false;
            }
        }
        tracing::info!(file = %file.display(), "the token was refused; using the new one in its file");
        self.token = Some(token);
        true
    }
}

fn tell_of_load(load: Option<HostLoad>) {
    let Some(load) = load.filter(|load| load.loaded) else {
        tracing::info!("the machine is loaded no more; it takes jobs as before");
        return;
    };
    tracing::warn!(
        memory_used_percent = load.memory_used_percent(),
        memory_available_mb = load.memory_available_mb,
        "the machine is loaded; other hosts get the jobs, as long as there are some"
    );
}

fn abort(call: Option<AbortHandle>) {
    if let Some(call) = call {
        call.abort();
    }
}

/// Returns a session name that contains its start time. So a late request of an earlier session is recognized.
pub(super) fn new_session() -> String {
    Uuid::now_v7().to_string()
}
