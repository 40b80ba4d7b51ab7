//! Two replicas over one store, in one process: hosts that move between them, hints and their loss, leases
//! taken over, weights and priorities that act on both.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use fairlead_api::{ConsumeAnswer, ConsumeRequest, Grant, HeldJob, SubmitItem};
use fairlead_scheduler::{Clock, Config, Parts, PeerLink, Replica};
use fairlead_store::{EmbeddedStore, JobStore};
use serde_json::{Value, json};

/// Carries messages between replicas of one process, while it is asked to.
#[derive(Debug, Default)]
struct Link {
    replicas: Mutex<BTreeMap<String, Arc<Replica>>>,
    cut: AtomicBool,
    /// What arrived: where it was sent, and the body.
    carried: Mutex<Vec<(String, Bytes)>>,
}

impl Link {
    /// Waits until the replica of this letter took a message with this text.
    async fn told(&self, letter: char, text: &str) {
        let to = format!("http://{letter}");
        let names = |body: &Bytes| body.windows(text.len()).any(|part| part == text.as_bytes());
        let arrived = || {
            let carried = self.carried.lock().unwrap();
            carried
                .iter()
                .any(|(base, body)| *base == to && names(body))
        };
        while !arrived() {
            tokio::task::yield_now().await;
        }
    }
}

#[async_trait::async_trait]
impl PeerLink for Link {
    async fn post(&self, url: &str, token: &str, body: Bytes) -> Result<(), String> {
        let (base, path) = url.split_at("http://x".len());
        let replica = self.replicas.lock().unwrap().get(base).cloned();
        let replica = replica.filter(|_| !self.cut.load(Ordering::Relaxed));
        let request = http::Request::post(path)
            .header("authorization", format!("Bearer {token}"))
            .body(body.clone())
            .unwrap();
        let answer = replica.ok_or("nobody there")?.call(request).await;
        assert_eq!(answer.status(), 200);
        let mut carried = self.carried.lock().unwrap();
        carried.push((base.to_owned(), body));
        Ok(())
    }
}

struct Lab {
    data: tempfile::TempDir,
    store: Arc<dyn JobStore>,
    link: Arc<Link>,
}

impl Lab {
    fn new() -> Self {
        let data = tempfile::tempdir().unwrap();
        let store = Arc::new(EmbeddedStore::open(data.path()).unwrap());
        Self {
            data,
            store,
            link: Arc::default(),
        }
    }

    async fn replica(&self, letter: char) -> Arc<Replica> {
        let config = Config {
            replica: letter.to_string(),
            lease_ms: 3_000,
            heartbeat_ms: 200,
            ..Config::embedded(self.data.path().to_owned())
        };
        let store = Arc::clone(&self.store);
        let peers = Arc::clone(&self.link) as Arc<dyn PeerLink>;
        let parts = Parts::new(
            store,
            Clock::system(),
            peers,
            fairlead_content::ContentStore::in_memory(),
            Arc::new(fairlead_scheduler::Programs::default()),
        );
        let url = format!("http://{letter}");
        let replica = Arc::new(Replica::start(config, parts, url.clone()).await.unwrap());
        let all = &self.link.replicas;
        all.lock().unwrap().insert(url, Arc::clone(&replica));
        replica
    }

    async fn pair(&self) -> (Arc<Replica>, Arc<Replica>) {
        (self.replica('a').await, self.replica('b').await)
    }
}

async fn post(replica: &Replica, path: &str, body: &Value) -> (u16, Value) {
    let request = http::Request::post(path)
        .body(Bytes::from(body.to_string()))
        .unwrap();
    read(&replica.call(request).await)
}

async fn get(replica: &Replica, path: &str) -> (u16, Value) {
    let request = http::Request::get(path).body(Bytes::new()).unwrap();
    read(&replica.call(request).await)
}

fn read(answer: &http::Response<Bytes>) -> (u16, Value) {
    let text = String::from_utf8(answer.body().to_vec()).unwrap();
    let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
    (answer.status().as_u16(), value)
}

async fn submit(replica: &Replica, more: &Value) -> String {
    let mut job = json!({"suite": "sleep", "script": "true", "my_account": "user1", "testbox": "dc", "arch": "x86_64"});
    let fields = more.as_object().unwrap().clone();
    job.as_object_mut().unwrap().extend(fields);
    let (status, answer) = post(replica, "/scheduler/v1/jobs/submit", &job).await;
    let items: Vec<SubmitItem> = serde_json::from_value(answer).unwrap();
    assert_eq!((status, items[0].message.as_str()), (200, ""));
    items[0].job_id.clone()
}

fn ask(session: &str, request: u64) -> ConsumeRequest {
    serde_json::from_value(json!({
        "session": session, "request": request, "kinds": ["dc"], "arch": "x86_64",
        "memory_mb": 8192, "free_memory_mb": 8192, "jobs_max": 1, "wait_s": 20,
    }))
    .unwrap()
}

fn hw(session: &str, request: u64) -> ConsumeRequest {
    ConsumeRequest {
        kinds: vec!["hw".to_owned()],
        ..ask(session, request)
    }
}

async fn try_consume(replica: &Replica, host: &str, request: &ConsumeRequest) -> (u16, Value) {
    let path = format!("/scheduler/v1/testboxes/{host}/consume");
    post(replica, &path, &serde_json::to_value(request).unwrap()).await
}

async fn consume(replica: &Replica, host: &str, request: &ConsumeRequest) -> Vec<Grant> {
    let (status, answer) = try_consume(replica, host, request).await;
    assert_eq!(status, 200, "{answer}");
    let answer: ConsumeAnswer = serde_json::from_value(answer).unwrap();
    answer.jobs
}

async fn report(replica: &Replica, grant: &Grant, what: &str) -> u16 {
    let path = format!(
        "/scheduler/v1/jobs/{}/update?attempt={}&job_token={}&{what}",
        grant.job_id, grant.attempt, grant.job_token
    );
    post(replica, &path, &Value::Null).await.0
}

async fn job(replica: &Replica, id: &str) -> Value {
    let (status, job) = get(replica, &format!("/scheduler/v1/jobs/{id}")).await;
    assert_eq!(status, 200);
    job
}

fn held(grant: &Grant) -> HeldJob {
    HeldJob {
        job_id: grant.job_id.clone(),
        attempt: grant.attempt,
        claim_token: grant.claim_token.clone(),
    }
}

#[tokio::test]
async fn a_job_submitted_here_goes_to_a_host_that_waits_there() {
    let lab = Lab::new();
    let (a, b) = lab.pair().await;
    for cut in [false, true] {
        lab.link.cut.store(cut, Ordering::Relaxed);
        let host = format!("h{cut}");
        let (request, plain) = (ask("s", 1), json!({}));
        let (grants, id) = tokio::join!(consume(&b, &host, &request), submit(&a, &plain));
        assert_eq!(grants[0].job_id, id, "hints cut: {cut}");
        assert_eq!(
            report(&a, &grants[0], "job_stage=finish&exit_code=0").await,
            200
        );
    }
}

#[tokio::test]
async fn a_host_that_moves_is_served_by_one_replica_at_a_time() {
    let lab = Lab::new();
    let (a, b) = lab.pair().await;
    let (first, mut second) = (hw("s", 1), hw("s", 2));
    (second.seen, second.wait_s) = (Some(0), 2);
    // The second request may come before or after the first: either way the box gets one job.
    let job = json!({"testbox": "hw"});
    let (first, second, ..) = tokio::join!(
        try_consume(&a, "box", &first),
        try_consume(&b, "box", &second),
        submit(&a, &job),
        submit(&b, &job),
    );
    let handed = |answer: &Value| answer["jobs"].as_array().map_or(0, Vec::len);
    assert_eq!(second.0, 200, "{}", second.1);
    assert_eq!(
        handed(&first.1) + handed(&second.1),
        1,
        "{} {}",
        first.1,
        second.1
    );
}

#[tokio::test]
async fn a_lost_answer_is_repeated_by_the_other_replica() {
    let lab = Lab::new();
    let (a, b) = lab.pair().await;
    submit(&a, &json!({})).await;
    let lost = consume(&a, "h", &ask("s", 1)).await;
    let again = consume(&b, "h", &ask("s", 1)).await;
    assert_eq!(lost, again);
    let late = try_consume(&a, "h", &ask("s", 1)).await;
    assert_eq!(late.1["jobs"][0]["job_id"], json!(lost[0].job_id));
}

#[tokio::test]
async fn an_end_told_here_frees_the_host_there() {
    let lab = Lab::new();
    let (a, b) = lab.pair().await;
    lab.link.cut.store(true, Ordering::Relaxed);
    let ids = [
        submit(&a, &json!({"testbox": "hw"})).await,
        submit(&a, &json!({"testbox": "hw"})).await,
    ];
    let first = consume(&a, "box", &hw("s", 1)).await;
    assert_eq!(first[0].job_id, ids[0]);
    assert_eq!(report(&b, &first[0], "job_stage=running").await, 200);
    assert_eq!(
        report(&b, &first[0], "job_stage=finish&exit_code=0").await,
        200
    );
    let next = consume(&a, "box", &hw("s", 2)).await;
    assert_eq!(next[0].job_id, ids[1]);
    assert_eq!(job(&a, &ids[0]).await["job_health"], "success");
}

#[tokio::test]
async fn a_new_session_there_loses_what_ran_since_here() {
    let lab = Lab::new();
    let (a, b) = lab.pair().await;
    lab.link.cut.store(true, Ordering::Relaxed);
    let id = submit(&a, &json!({"testbox": "hw"})).await;
    let first = consume(&a, "box", &hw("one", 1)).await;
    assert_eq!(report(&a, &first[0], "job_stage=running").await, 200);
    let second = consume(&b, "box", &hw("two", 1)).await;
    assert_eq!(
        (second[0].job_id.as_str(), second[0].attempt),
        (id.as_str(), 2)
    );
    assert_eq!(
        report(&a, &first[0], "job_stage=finish&exit_code=0").await,
        409
    );
    let late = try_consume(&a, "box", &hw("one", 2)).await;
    assert_eq!(late.0, 409, "{}", late.1);
}

#[tokio::test]
async fn leases_are_renewed_through_any_replica_and_taken_over_from_a_dead_one() {
    let lab = Lab::new();
    let (a, b) = lab.pair().await;
    let id = submit(&a, &json!({})).await;
    let grants = consume(&a, "h", &ask("s", 1)).await;
    assert_eq!(report(&a, &grants[0], "job_stage=running").await, 200);
    // Beats go to `b` only, for longer than a lease; then nobody beats and `a` is gone.
    for request in 1..=5 {
        let beat = json!({"session": "s", "running": [held(&grants[0])], "free_memory_mb": 1});
        let (status, answer) = post(&b, "/scheduler/v1/testboxes/h/heartbeat", &beat).await;
        assert_eq!((status, answer["stop"].as_array().unwrap().len()), (200, 0));
        // Another host waits for a second, in vain.
        let mut bystander = hw("i", request);
        bystander.wait_s = 1;
        assert_eq!(consume(&b, "bystander", &bystander).await, []);
    }
    assert_eq!(job(&b, &id).await["attempt"], 1);
    a.drain();
    let next = consume(&b, "other", &ask("t", 1)).await;
    assert_eq!((next[0].job_id.as_str(), next[0].attempt), (id.as_str(), 2));
}

#[tokio::test]
async fn vip_jobs_and_weights_act_on_every_replica() {
    let lab = Lab::new();
    let (a, b) = lab.pair().await;
    for _ in 0..5 {
        submit(&b, &json!({})).await;
    }
    let vip = submit(&a, &json!({"queue": "vip", "my_account": "boss"})).await;
    let (status, _) = post(&a, "/scheduler/v1/queues/user1", &json!({"paused": true})).await;
    assert_eq!(status, 200);
    lab.link.told('b', "\"queues\":[\"user1\"]").await;
    let grants = consume(&b, "h", &ask("s", 1)).await;
    assert_eq!(grants[0].job_id, vip);
    let mut none = ask("s", 2);
    (none.wait_s, none.running) = (1, vec![held(&grants[0])]);
    assert_eq!(
        consume(&b, "h", &none).await,
        [],
        "the queue is paused on both"
    );
}

#[tokio::test]
async fn ids_of_two_replicas_of_one_name_never_meet() {
    let lab = Lab::new();
    let (a, b) = (lab.replica('a').await, lab.replica('a').await);
    let mut ids = std::collections::BTreeSet::new();
    for _ in 0..50 {
        assert!(ids.insert(submit(&a, &json!({})).await));
        assert!(ids.insert(submit(&b, &json!({})).await));
    }
}
