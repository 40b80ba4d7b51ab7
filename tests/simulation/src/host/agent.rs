//! One life of an agent: it drives the real agent's protocol over lines that lose, delay and double.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use fairlead_api::{
    ConsumeAnswer, ConsumeRequest, Grant, HeartbeatAnswer, HeartbeatRequest, HeldJob, JobUpdate,
    StopOrder,
};
use fairlead_testbox::{
    JobLine,
    protocol::{Action, Core, Event, Failure, Host, Key, LOADED_REST, Time, Told},
};
use parking_lot::{Mutex, MutexGuard};
use serde::de::DeserializeOwned;
use tokio::{
    sync::{mpsc, watch},
    task::{AbortHandle, JoinSet},
};

use super::{
    client::{ANSWER_MS, BEAT_MS, Client},
    course::Course,
    journal::Journal,
    machine, refusal,
};
use crate::{
    net::{Answer, Failed, Message},
    scenario::HostPlan,
    world::World,
};

/// Default grace period of a job. It exceeds a sixth of any lease, so that jobs that are cut off may use all the
/// remaining lease.
const GRACE: Duration = Duration::from_secs(4);
/// Maximum sleep of the loop.
const WAKE: Duration = Duration::from_hours(1);
/// Maximum number of job events in the queue.
const EVENTS: usize = 64;

type Outcome = Result<Answer, Failed>;

/// State that an agent shares with the courses of its jobs.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) world: Arc<World>,
    pub(super) host: usize,
    pub(super) plan: HostPlan,
    pub(super) reporter: Client,
    disk: Mutex<BTreeMap<Key, Journal>>,
}

impl Shared {
    /// Returns the journals of its jobs on disk.
    pub(super) fn disk(&self) -> MutexGuard<'_, BTreeMap<Key, Journal>> {
        self.disk.lock()
    }

    fn now(&self) -> Time {
        Duration::from_millis(self.world.now_ms())
    }
}

/// A request that is answered or lost.
struct Called {
    what: What,
    call: u64,
    outcome: Outcome,
}

/// Kind of a request, its time, and the jobs that it named.
enum What {
    Work(u64, Vec<HeldJob>),
    Beat(u64, Vec<HeldJob>),
    Report(Key, bool),
}

/// A job that was started.
struct Job {
    teller: watch::Sender<Told>,
    /// Its report in transit.
    report: Option<AbortHandle>,
}

/// One life of an agent.
pub(super) struct Agent {
    shared: Arc<Shared>,
    asker: Arc<Client>,
    beater: Arc<Client>,
    core: Core,
    events: mpsc::Receiver<Event>,
    sender: mpsc::Sender<Event>,
    courses: JoinSet<Key>,
    jobs: BTreeMap<Key, Job>,
    calls: JoinSet<Called>,
    /// Number of its newest request for work.
    newest: u64,
}

impl Agent {
    pub(super) fn new(
        world: &Arc<World>,
        host: usize,
        plan: HostPlan,
        session: String,
        left: Vec<Journal>,
    ) -> Self {
        let (sender, events) = mpsc::channel(EVENTS);
        let seed = world.chance().draw();
        let shared = Arc::new(Shared {
            world: Arc::clone(world),
            host,
            plan,
            reporter: Client::new(world, host),
            disk: Mutex::default(),
        });
        let mut agent = Self {
            asker: Arc::new(Client::new(world, host)),
            beater: Arc::new(Client::new(world, host)),
            core: Core::new(says(&shared.plan, session), shared.now(), seed),
            events,
            sender,
            courses: JoinSet::new(),
            jobs: BTreeMap::new(),
            calls: JoinSet::new(),
            newest: 0,
            shared,
        };
        let adopted = left.iter().map(Journal::leftover).collect();
        for journal in left {
            agent.spawn(journal);
        }
        agent.handle(Event::Adopted(adopted));
        agent
    }

    /// Returns the journals on disk when the agent dies.
    pub(super) fn dies(mut self) -> Vec<Journal> {
        self.courses.abort_all();
        self.calls.abort_all();
        std::mem::take(&mut *self.shared.disk())
            .into_values()
            .collect()
    }

    /// Works forever.
    pub(super) async fn work(&mut self) {
        loop {
            let event = self.next_event().await;
            self.handle(event);
        }
    }

    async fn next_event(&mut self) -> Event {
        let shared = Arc::clone(&self.shared);
        let wake = self.core.wakes_at().unwrap_or(shared.now() + WAKE);
        // The clock counts whole milliseconds.
        let wake_ms = u64::try_from(wake.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
        loop {
            let event = tokio::select! {
                biased;
                Some(event) = self.events.recv() => Some(event),
                Some(ended) = self.courses.join_next() => ended.ok().map(|key| self.gone(key)),
                Some(called) = self.calls.join_next() => called.ok().map(|it| self.answered(it)),
                () = shared.world.timer.until(wake_ms) => Some(Event::Wake),
            };
            // An aborted call has no event.
            if let Some(event) = event {
                return event;
            }
        }
    }

    fn gone(&mut self, key: Key) -> Event {
        give_up(self.jobs.remove(&key).and_then(|job| job.report));
        self.shared.disk().remove(&key);
        Event::Gone { key }
    }

    fn handle(&mut self, event: Event) {
        self.core.handle(self.shared.now(), event);
        while let Some(action) = self.core.next_action() {
            self.carry_out(action);
        }
    }

    fn carry_out(&mut self, action: Action) {
        match action {
            Action::AskForWork { call, request } => self.ask(call, request),
            Action::Heartbeat { call, request } => self.beat(call, request),
            Action::Report { key, call, update } => self.report(&key, call, &update),
            Action::Start(grant) => {
                self.granted(&grant, true);
                self.spawn(Journal::new(grant));
            }
            Action::TurnAway { grant, .. } => self.granted(&grant, false),
            Action::Tell { key, word } => {
                if let Some(job) = self.jobs.get(&key) {
                    job.teller.send_modify(|told| told.hear(word));
                }
            }
            Action::NewSession => self.begin_anew(),
            Action::HangUp
            | Action::Found
            | Action::Lost(_)
            | Action::Refused(_)
            | Action::Unwelcome(_)
            | Action::Loaded(_)
            | Action::Rest(_) => {}
        }
    }

    fn spawn(&mut self, journal: Journal) {
        let key = journal.key();
        let (teller, line) = JobLine::new(key.clone(), self.sender.clone());
        let report = None;
        self.jobs.insert(key.clone(), Job { teller, report });
        self.shared.disk().insert(key, journal.clone());
        let course = Course {
            shared: Arc::clone(&self.shared),
            journal,
            line,
        };
        self.courses.spawn(course.run());
    }

    fn granted(&self, grant: &Grant, fits: bool) {
        let has: Vec<Key> = self.core.jobs().cloned().collect();
        let shared = &self.shared;
        shared.world.granted(shared.host, grant, fits, &has);
    }

    /// Starts a new session. Another one was heard of since: a delayed request of an earlier life.
    fn begin_anew(&mut self) {
        let Shared {
            world, host, plan, ..
        } = &*self.shared;
        let session = machine::session(world, *host);
        world.note(format_args!("{} begins session {session}", plan.name));
        world.check().session_begins(*host, &session);
        self.core.handle(self.shared.now(), Event::Session(session));
    }

    fn ask(&mut self, call: u64, request: ConsumeRequest) {
        let Shared {
            world, host, plan, ..
        } = &*self.shared;
        self.newest = call;
        let sent_ms = world.now_ms();
        world.check().host_asks(*host, &request, sent_ms);
        let path = format!("/scheduler/v1/testboxes/{}/consume", plan.name);
        let what = format!("{} consume {}", plan.name, request.request);
        let message = Message::new(what, path, &request);
        let limit_ms = u64::from(request.wait_s) * 1000 + ANSWER_MS;
        let what = What::Work(sent_ms, request.running);
        let client = Arc::clone(&self.asker);
        self.call(
            what,
            call,
            async move { client.call(&message, limit_ms).await },
        );
    }

    fn beat(&mut self, call: u64, request: HeartbeatRequest) {
        let Shared {
            world, host, plan, ..
        } = &*self.shared;
        // The request tells some replica that the host has exactly these jobs, even if no answer arrives.
        world.check().named(*host, &tokens(&request.running));
        let path = format!("/scheduler/v1/testboxes/{}/heartbeat", plan.name);
        let message = Message::new(format!("{} heartbeat", plan.name), path, &request);
        let what = What::Beat(world.now_ms(), request.running);
        let client = Arc::clone(&self.beater);
        self.call(
            what,
            call,
            async move { client.call(&message, BEAT_MS).await },
        );
    }

    fn report(&mut self, key: &Key, call: u64, update: &JobUpdate) {
        let stage = update.job_stage.as_deref().unwrap_or_default();
        let (id, attempt) = key;
        let mut path = format!(
            "/scheduler/v1/jobs/{id}/update?attempt={attempt}&job_token={}&job_stage={stage}",
            update.job_token.as_deref().unwrap_or_default()
        );
        let code = update.exit_code.map(|code| code.to_string());
        for (name, value) in [
            ("job_health", &update.job_health),
            ("job_data_readiness", &update.job_data_readiness),
            ("exit_code", &code),
        ] {
            if let Some(value) = value {
                path.extend(["&", name, "=", value]);
            }
        }
        let message = Message {
            what: format!("{} report {id} #{attempt} {stage}", self.shared.plan.name),
            path,
            body: bytes::Bytes::new(),
        };
        let what = What::Report(key.clone(), update.job_health.is_some());
        let shared = Arc::clone(&self.shared);
        let report = self.call(what, call, async move {
            shared.reporter.call(&message, ANSWER_MS).await
        });
        if let Some(job) = self.jobs.get_mut(key) {
            give_up(job.report.replace(report));
        }
    }

    fn call(
        &mut self,
        what: What,
        call: u64,
        asking: impl Future<Output = Outcome> + Send + 'static,
    ) -> AbortHandle {
        self.calls.spawn(async move {
            Called {
                what,
                call,
                outcome: asking.await,
            }
        })
    }

    fn answered(&mut self, called: Called) -> Event {
        let Called {
            what,
            call,
            outcome,
        } = called;
        let shared = &self.shared;
        match what {
            What::Work(sent_ms, running) => {
                if call == self.newest {
                    shared.world.check().host_answered(shared.host);
                }
                let answer: Result<ConsumeAnswer, _> = judged(outcome);
                if let Ok(answer) = &answer {
                    shared.heard(sent_ms, &running, &answer.stop);
                }
                Event::Work { call, answer }
            }
            What::Beat(sent_ms, running) => {
                let answer: Result<HeartbeatAnswer, _> = judged(outcome);
                if let Ok(answer) = &answer {
                    shared.heard(sent_ms, &running, &answer.stop);
                }
                Event::Beat { call, answer }
            }
            What::Report(key, is_end) => {
                let answer = shared.report_answered(&key, is_end, &outcome);
                Event::Reported { key, call, answer }
            }
        }
    }
}

impl Shared {
    /// Handles a good answer with these orders, to a request that named these jobs.
    fn heard(&self, sent_ms: u64, running: &[HeldJob], orders: &[StopOrder]) {
        let world = &self.world;
        let tokens = tokens(running);
        world.check().renewed(self.host, &tokens, sent_ms);
        let forgotten = orders.iter().filter(|order| order.health.is_empty());
        for order in forgotten {
            let key = (order.job_id.clone(), order.attempt);
            let token = self.disk().get(&key).map(|it| it.grant.claim_token.clone());
            if let Some(token) = token {
                world.told_to_forget(self.host, &key, &token, sent_ms);
            }
        }
    }

    fn report_answered(&self, key: &Key, is_end: bool, outcome: &Outcome) -> Result<(), Failure> {
        let said = match outcome {
            Ok(answer) if answer.is_good() => Ok(()),
            Ok(answer) => Err(refusal(answer)),
            Err(_) => Err(lost()),
        };
        let is_last = said.as_ref().err().is_none_or(Failure::is_final);
        let ended = self.disk().get(key).filter(|_| is_end && is_last).cloned();
        if let (Ok(answer), Some(journal)) = (outcome, ended)
            && let Some(end) = journal.end
        {
            self.world
                .end_answered(self.host, &journal.grant, end.health, answer);
        }
        if let Err(failure) = &said
            && is_last
        {
            self.world.note(format_args!(
                "{} is refused for {} #{}: {}",
                self.plan.name,
                key.0,
                key.1,
                failure.text(),
            ));
        }
        said
    }
}

fn give_up(call: Option<AbortHandle>) {
    if let Some(call) = call {
        call.abort();
    }
}

fn judged<T: DeserializeOwned>(outcome: Outcome) -> Result<T, Failure> {
    match outcome {
        Ok(answer) if answer.is_good() => answer.json().ok_or_else(lost),
        Ok(answer) => Err(refusal(&answer)),
        Err(_) => Err(lost()),
    }
}

fn lost() -> Failure {
    Failure::lost("no answer")
}

fn says(plan: &HostPlan, session: String) -> Host {
    let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect();
    Host {
        says: ConsumeRequest {
            content: Vec::new(),
            load: None,
            session,
            request: 0,
            seen: None,
            kinds: words(&plan.kinds),
            arch: plan.arch.to_owned(),
            group: String::new(),
            memory_mb: plan.memory_mb,
            free_memory_mb: plan.memory_mb,
            cpus: plan.cpus,
            free_cpus: plan.cpus,
            tags: words(&plan.tags),
            devices: words(&plan.devices),
            cache_dirs: Vec::new(),
            jobs_max: plan.jobs_max,
            wait_s: plan.wait_s,
            running: Vec::new(),
            instance: String::new(),
            isolation: String::new(),
            executors: Vec::new(),
            facts: facts(plan),
        },
        grace: GRACE,
        loaded_rest: LOADED_REST,
        once: false,
    }
}

/// Returns the facts that the machine reports.
fn facts(plan: &HostPlan) -> BTreeMap<String, Vec<String>> {
    let said = plan.boots.into_iter().flat_map(|boots| {
        [
            ("kernel".to_owned(), vec![format!("6.{boots}")]),
            ("cpu-model".to_owned(), vec!["one".to_owned()]),
        ]
    });
    said.collect()
}

fn tokens(running: &[HeldJob]) -> Vec<&str> {
    let tokens = running.iter().map(|held| held.claim_token.as_str());
    tokens.collect()
}
