//! A fake scheduler: grants jobs as ordered, records all requests, and can vanish and return.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use crate::store::Store;
use bytes::Bytes;
use fairlead_api::{
    ConsumeAnswer, ConsumeRequest, Grant, HeartbeatAnswer, HeartbeatRequest, Renewal, StopOrder,
};
use serde_json::{Value, json};
use tokio::{
    runtime::Runtime,
    sync::watch,
    time::{Instant, timeout_at},
};
use warp::{Filter, Reply, http::StatusCode, reply::Response};

/// Maximum wait of any test.
const PATIENCE: Duration = Duration::from_mins(3);

/// State of the fake scheduler.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// Waiting jobs.
    pub(crate) waiting: VecDeque<Grant>,
    /// Requests for work, in order.
    pub(crate) asked: Vec<ConsumeRequest>,
    /// Jobs granted in each request.
    answers: HashMap<(String, u64), Vec<Grant>>,
    /// Grant for the next request that is replaced, as if made just before.
    pub(crate) late_grant: Option<Grant>,
    /// Number of answers with grants that get lost.
    pub(crate) lose_answers: usize,
    /// Reports by job, as they arrived and were accepted.
    pub(crate) updates: Vec<(String, BTreeMap<String, String>)>,
    /// Jobs whose reports are refused, with the status.
    pub(crate) refuse: HashMap<String, u16>,
    /// Status with which files and pieces of logs of at least this size, bytes, are refused.
    pub(crate) no_room: Option<(u16, usize)>,
    pub(crate) logs: HashMap<String, Vec<u8>>,
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    pub(crate) beats: Vec<HeartbeatRequest>,
    /// Orders in each heartbeat's answer.
    pub(crate) stops: Vec<StopOrder>,
    pub(crate) lease_ms: u64,
    pub(crate) heartbeat_ms: u64,
    /// Renewals in each heartbeat's answer.
    pub(crate) renewals: Vec<Renewal>,
    /// Required token of requests for work and heartbeats. `None`: none.
    pub(crate) token: Option<String>,
}

impl State {
    /// Returns the stages that were reported for a job.
    pub(crate) fn stages(&self, job_id: &str) -> Vec<&str> {
        let of_job = self.updates.iter().filter(|(id, _)| id == job_id);
        of_job
            .filter_map(|(_, update)| update.get("job_stage").map(String::as_str))
            .collect()
    }

    /// Returns the last report of a job, once it has ended.
    pub(crate) fn end(&self, job_id: &str) -> Option<BTreeMap<String, String>> {
        let of_job = self.updates.iter().filter(|(id, _)| id == job_id);
        let ends =
            of_job.filter(|(_, update)| update.get("job_stage").is_some_and(|s| s == "finish"));
        ends.map(|(_, update)| update.clone()).next()
    }

    pub(crate) fn log(&self, job_id: &str) -> String {
        let log = self.logs.get(job_id).cloned().unwrap_or_default();
        String::from_utf8(log).unwrap()
    }
}

#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    pub(crate) store: Store,
    changed: watch::Sender<u64>,
}

impl Shared {
    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        let result = work(&mut self.state.lock().unwrap());
        self.changed.send_modify(|version| *version += 1);
        result
    }
}

/// The fake scheduler, up or down.
pub(crate) struct Fake {
    shared: Arc<Shared>,
    address: SocketAddr,
    runtime: Option<Runtime>,
}

impl Fake {
    pub(crate) fn start() -> Self {
        let mut fake = Self {
            shared: Arc::new(Shared {
                state: Mutex::new(State {
                    lease_ms: 60_000,
                    heartbeat_ms: 50,
                    ..State::default()
                }),
                store: Store::new(),
                changed: watch::Sender::new(0),
            }),
            address: "127.0.0.1:0".parse().unwrap(),
            runtime: None,
        };
        fake.up();
        fake
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Starts at the same address, with its earlier state.
    pub(crate) fn up(&mut self) {
        let listener = std::net::TcpListener::bind(self.address).unwrap();
        listener.set_nonblocking(true).unwrap();
        self.address = listener.local_addr().unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let routes = routes(Arc::clone(&self.shared));
        runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            warp::serve(routes).incoming(listener).run().await;
        });
        self.runtime = Some(runtime);
    }

    /// Disappears with all its connections.
    pub(crate) fn down(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }

    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        self.shared.with(work)
    }

    /// Returns the store of its content.
    pub(crate) fn store(&self) -> &Store {
        &self.shared.store
    }

    pub(crate) fn grant(&self, grant: Grant) {
        self.with(|state| state.waiting.push_back(grant));
    }

    /// Waits until `found` returns a value.
    pub(crate) async fn until<T>(&self, what: &str, found: impl Fn(&State) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        let mut changed = self.shared.changed.subscribe();
        loop {
            {
                let state = self.shared.state.lock().unwrap();
                if let Some(value) = found(&state) {
                    return value;
                }
            }
            let waited = timeout_at(deadline, changed.changed()).await;
            assert!(
                waited.is_ok(),
                "{what}: not within {PATIENCE:?}: {:#?}",
                self.shared.state
            );
        }
    }

    /// Returns the last report of a job.
    pub(crate) async fn end(&self, job_id: &str) -> BTreeMap<String, String> {
        self.until("an end", |state| state.end(job_id)).await
    }

    pub(crate) async fn stage(&self, job_id: &str, stage: &str) {
        let seen = |state: &State| state.stages(job_id).contains(&stage).then_some(());
        self.until(stage, seen).await;
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.down();
    }
}

/// Polls for a condition without notifications.
pub(crate) async fn poll<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    let mut tick = tokio::time::interval(Duration::from_millis(5));
    loop {
        if let Some(value) = found() {
            return value;
        }
        assert!(Instant::now() < deadline, "{what}: not within {PATIENCE:?}");
        tick.tick().await;
    }
}

pub(crate) type Query = BTreeMap<String, String>;

pub(crate) fn refusal(status: u16, message: &str) -> Response {
    let body = json!({"code": "conflict", "message": message, "hint": "none"});
    warp::reply::with_status(
        warp::reply::json(&body),
        StatusCode::from_u16(status).unwrap(),
    )
    .into_response()
}

fn routes(
    shared: Arc<Shared>,
) -> impl Filter<Extract = (impl Reply,), Error = warp::Rejection> + Clone {
    let shared = warp::any().map(move || Arc::clone(&shared));
    let testboxes = warp::path!("scheduler" / "v1" / "testboxes" / String / String)
        .and(shared.clone())
        .and(warp::header::optional::<String>("authorization"))
        .and(warp::body::json())
        .then(
            |_host: String, what: String, shared: Arc<Shared>, who: Option<String>, body| async move {
                if is_known(&shared, who.as_deref()) {
                    testbox(what, shared, body).await
                } else {
                    refusal(401, "the token is wrong")
                }
            },
        );
    let content = warp::path!("scheduler" / "v1" / "content" / ..)
        .and(warp::path::tail())
        .and(warp::method())
        .and(shared.clone())
        .and(warp::query::<Query>())
        .and(warp::header::<String>("job-token"))
        .and(warp::body::bytes())
        .then(
            |path: warp::path::Tail,
             method,
             shared: Arc<Shared>,
             query: Query,
             token: String,
             body| async move {
                assert_eq!(token, "token");
                shared
                    .store
                    .answer(method, path.as_str(), &query, body)
                    .await
            },
        );
    let jobs = warp::path!("scheduler" / "v1" / "jobs" / String / String)
        .and(shared.clone())
        .and(warp::query::<Query>())
        .and(warp::body::bytes())
        .map(
            |id: String, what: String, shared: Arc<Shared>, query: Query, body: Bytes| {
                shared.with(|state| match what.as_str() {
                    "update" => update(state, id, query),
                    _ => append(state, &id, &query, &body),
                })
            },
        );
    let results = warp::path("result")
        .and(warp::path::tail())
        .and(shared)
        .and(warp::body::bytes())
        .map(|path: warp::path::Tail, shared: Arc<Shared>, body: Bytes| {
            shared.with(|state| {
                if let Some(refused) = no_room(state, &body) {
                    return refused;
                }
                if state.files.contains_key(path.as_str()) {
                    return refusal(409, "the file exists");
                }
                state.files.insert(path.as_str().to_owned(), body.to_vec());
                StatusCode::OK.into_response()
            })
        });
    let of_jobs = jobs.or(content).unify().or(results).unify();
    testboxes.or(of_jobs).unify().boxed()
}

fn is_known(shared: &Shared, who: Option<&str>) -> bool {
    let token = shared.with_quietly(|state| state.token.clone());
    token.is_none_or(|token| who == Some(&format!("Bearer {token}")))
}

async fn testbox(what: String, shared: Arc<Shared>, body: Value) -> Response {
    if what == "heartbeat" {
        let beat: HeartbeatRequest = serde_json::from_value(body).unwrap();
        let answer = shared.with(|state| {
            state.beats.push(beat);
            HeartbeatAnswer {
                lease_ms: state.lease_ms,
                heartbeat_ms: state.heartbeat_ms,
                stop: state.stops.clone(),
                renewed: state.renewals.clone(),
            }
        });
        return warp::reply::json(&answer).into_response();
    }
    let request: ConsumeRequest = serde_json::from_value(body).unwrap();
    shared.with(|state| state.asked.push(request.clone()));
    let deadline = Instant::now() + Duration::from_secs(u64::from(request.wait_s));
    let mut changed = shared.changed.subscribe();
    loop {
        let (jobs, lost) = shared.with_quietly(|state| granted(state, &request));
        if lost {
            return refusal(503, "lost on the way");
        }
        let replaced = shared.with_quietly(|state| is_replaced(state, &request));
        let in_time =
            jobs.is_empty() && !replaced && timeout_at(deadline, changed.changed()).await.is_ok();
        if !in_time {
            let answer = ConsumeAnswer {
                lease_ms: shared.with_quietly(|state| state.lease_ms),
                heartbeat_ms: shared.with_quietly(|state| state.heartbeat_ms),
                jobs,
                stop: Vec::new(),
            };
            return warp::reply::json(&answer).into_response();
        }
    }
}

impl Shared {
    fn with_quietly<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.state.lock().unwrap())
    }
}

/// Returns true if a newer request exists. Then the older one is answered at once.
fn is_replaced(state: &State, request: &ConsumeRequest) -> bool {
    let newest = state.asked.iter().map(|asked| asked.request).max();
    newest.is_some_and(|newest| newest > request.request)
}

/// Returns the jobs for a request, and true if the answer gets lost.
fn granted(state: &mut State, request: &ConsumeRequest) -> (Vec<Grant>, bool) {
    let key = (request.session.clone(), request.request);
    if let Some(again) = state.answers.get(&key) {
        return (again.clone(), false);
    }
    if is_replaced(state, request) {
        return (state.late_grant.take().into_iter().collect(), false);
    }
    let mut free = request.free_memory_mb;
    let mut jobs = Vec::new();
    while let Some(next) = state.waiting.front() {
        if next.memory_mb > free || jobs.len() >= request.jobs_max as usize {
            break;
        }
        free -= next.memory_mb;
        jobs.extend(state.waiting.pop_front());
    }
    if jobs.is_empty() {
        return (jobs, false);
    }
    state.answers.insert(key, jobs.clone());
    let lost = state.lose_answers > 0;
    state.lose_answers = state.lose_answers.saturating_sub(1);
    (jobs, lost)
}

fn update(state: &mut State, id: String, query: Query) -> Response {
    assert_eq!(query.get("job_token").map(String::as_str), Some("token"));
    if let Some(status) = state.refuse.get(&id) {
        return refusal(*status, "another attempt is on");
    }
    state.updates.push((id, query));
    "ok".into_response()
}

fn no_room(state: &State, body: &[u8]) -> Option<Response> {
    let (status, bytes) = state.no_room?;
    (body.len() >= bytes).then(|| refusal(status, "there is no room"))
}

fn append(state: &mut State, id: &str, query: &Query, body: &[u8]) -> Response {
    if let Some(refused) = no_room(state, body) {
        return refused;
    }
    let offset: usize = query["offset"].parse().unwrap();
    let log = state.logs.entry(id.to_owned()).or_default();
    if offset > log.len() {
        let message = format!(
            "offset {offset} leaves a gap: the log has {} bytes",
            log.len()
        );
        return refusal(409, &message);
    }
    let known = log.len() - offset;
    log.extend_from_slice(body.get(known..).unwrap_or_default());
    warp::reply::json(&json!({"size": log.len()})).into_response()
}
