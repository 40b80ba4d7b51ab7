//! A small lab of this version, recorded for the upgrade test. A release records itself once, into
//! `tests/recorded/NAME`, and later versions must carry that lab on.
//!
//! The lab has jobs in every situation that a rolling upgrade meets, and an agent that holds some of them. For each
//! store the folder gets what was stored, and `lab.json`: tokens, job ids, and the agent's requests and grants, byte
//! for byte as the old agent sends them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use fairlead_tests::{Guarded, Http, Scheduler, Store, Testbox, jobs, recorded::copy, settings};
use reqwest::Method;
use serde_json::{Map, Value, json};

/// Maximum time limit of a job, s. A recorded job reaches it after ten years.
const LONGEST_S: u64 = 315_360_000;
/// Start time in the far future.
const NEVER: &str = "2199-01-01 00:00";

/// Records a small lab of this version, on both stores, for the upgrade test
#[derive(Debug, clap::Args)]
pub(crate) struct Record {
    /// Folder to record into, as tests/recorded/NAME
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

impl Record {
    pub(crate) async fn record(&self) {
        for (store, name) in [
            (Store::Embedded, "embedded"),
            (Store::Elasticsearch, "elasticsearch"),
        ] {
            let folder = self.folder.join(name);
            fs::create_dir_all(&folder).expect("a folder to record into");
            record(store, &folder).await;
        }
    }
}

async fn record(store: Store, folder: &Path) {
    let Guarded {
        mut scheduler,
        admin,
    } = Guarded::start(store, &[]).await;
    let root = admin.token().expect("an admin's token").to_owned();
    let mut lab = Map::new();
    lab.insert("tokens".to_owned(), accounts(&admin, &root).await);
    queues_and_hosts(&admin).await;
    let client = |name: &str| {
        let token = lab["tokens"][name].as_str().expect("a token");
        scheduler.http().with_token(token)
    };
    let (agent, held) = an_agent_at_work(&client("alice"), &client("boxes")).await;
    let mut ids = held;
    ids.extend(waiting(&client("alice"), &client("bob")).await);
    scheduler.stop().await;
    lab.insert("ids".to_owned(), Value::Object(ids));
    lab.insert("agent".to_owned(), agent);
    let text = serde_json::to_string_pretty(&lab).expect("a lab in JSON");
    fs::write(folder.join("lab.json"), text + "\n").expect("lab.json");
    copy(&scheduler.data(), &folder.join("data"));
    if store == Store::Elasticsearch {
        dump(&scheduler, &folder.join("indices.json")).await;
    }
}

async fn accounts(admin: &Http, root: &str) -> Value {
    let mut tokens = Map::new();
    tokens.insert("root".to_owned(), json!(root));
    for (name, body) in [
        ("alice", json!({"role": "user"})),
        (
            "bob",
            json!({"role": "user", "limits": {"running": {"soft": 20}}}),
        ),
        ("carol", json!({"role": "user", "vip": true})),
        ("boxes", json!({"role": "testbox"})),
    ] {
        let path = format!("/scheduler/v1/accounts/{name}");
        let made = admin.post(&path, &body).await.json();
        tokens.insert(name.to_owned(), made["my_token"].clone());
    }
    Value::Object(tokens)
}

async fn queues_and_hosts(admin: &Http) {
    for (queue, body) in [
        ("alice", json!({"weight": 30})),
        ("nightly", json!({"weight": 5, "priority": 2})),
    ] {
        let path = format!("/scheduler/v1/queues/{queue}");
        admin.post(&path, &body).await.json();
    }
    let closed = "/scheduler/v1/hosts/host-closed";
    admin.post(closed, &json!({"arch": "x86_64"})).await.json();
    let path = format!("{closed}/cordon");
    admin
        .post(&path, &json!({"reason": "a new disk"}))
        .await
        .json();
}

/// Submits jobs that one agent takes: one that has ended, one that runs, and one that was handed out and not started.
async fn an_agent_at_work(alice: &Http, boxes: &Http) -> (Value, Map<String, Value>) {
    let mut agent = Testbox::dc(boxes, "host-1", 8 << 10);
    "x86_64".clone_into(&mut agent.offer.arch);
    let job = |more: Value| {
        let job = jobs::with(
            jobs::dc("alice"),
            &json!({"arch": "x86_64", "timeout": LONGEST_S}),
        );
        jobs::with(job, &more)
    };
    let kept = json!({"secrets": {"password": "recorded-secret"}, "stage_timeouts": {"dispatch": LONGEST_S}});
    let submitted = [
        job(json!({"testcase": "ended"})),
        job(json!({"testcase": "running", "retry": 1})),
        job(jobs::with(kept, &json!({"testcase": "handed-out"}))),
    ];
    let ids = alice.submit(&json!(submitted)).await;
    let mut named = Map::new();
    for (name, id) in ["ended", "running", "handed_out"].iter().zip(&ids) {
        named.insert((*name).to_owned(), json!(id));
    }
    let grants = agent.ask(5).await;
    assert_eq!(grants.len(), ids.len(), "one answer has all three");
    let grant = |n: usize| {
        let of = |id: &str| grants.iter().find(|grant| grant.job_id == id);
        of(&ids[n]).cloned().expect("a grant for each job")
    };
    for n in [0, 1] {
        let reply = agent.report(&grant(n), "job_stage=running").await;
        assert_eq!(reply.status, 200, "{}: {}", reply.asked, reply.text);
    }
    log_and_file(boxes, &grant(0)).await;
    agent.finish_running(&grant(0)).await;
    agent.next_request(0);
    agent.ask_again().await;
    let beat = agent.heartbeat().await;
    assert!(beat.is_empty(), "nothing is to be stopped: {beat:?}");
    agent.next_request(0);
    let said = json!({
        "host": agent.host,
        "consume": agent.offer,
        "held": agent.held(),
        "ended": grant(0),
    });
    (said, named)
}

async fn log_and_file(boxes: &Http, grant: &fairlead_api::Grant) {
    let token = format!("job_token={}", grant.job_token);
    let log = format!(
        "/scheduler/v1/jobs/{}/log?attempt=1&offset=0&{token}",
        grant.job_id
    );
    let file = format!(
        "{}/report.txt?job_id={}&{token}",
        grant.result_root, grant.job_id
    );
    for path in [log, file] {
        let reply = boxes.send(Method::POST, &path, "", b"recorded output\n".to_vec());
        let reply = reply.await;
        assert_eq!(reply.status, 200, "{}: {}", reply.asked, reply.text);
    }
}

/// Submits jobs that nobody takes, one for each way to wait, and a timer.
async fn waiting(alice: &Http, bob: &Http) -> Map<String, Value> {
    let wait = |account: &str, more: Value| {
        let more = jobs::with(json!({"arch": "x86_64", "tags": ["later"]}), &more);
        jobs::with(jobs::dc(account), &more)
    };
    let secret = json!({"secrets": {"password": "recorded-secret"}});
    let mut named = Map::new();
    let mut first = String::new();
    for (name, who, job) in [
        ("own", alice, wait("alice", secret)),
        ("nightly", bob, wait("bob", json!({"queue": "nightly"}))),
        (
            "invented",
            bob,
            wait("bob", json!({"queue": "an-invented-name"})),
        ),
        ("of_another", bob, wait("bob", json!({"queue": "alice"}))),
        ("later", alice, wait("alice", json!({"start_at": NEVER}))),
        ("hw", alice, jobs::hw("alice")),
    ] {
        let id = who.submit(&job).await.remove(0);
        if name == "own" {
            first.clone_from(&id);
        }
        named.insert(name.to_owned(), json!(id));
    }
    let mut after = Map::new();
    after.insert(first, json!({"job_stage": "finish"}));
    let child = wait("alice", json!({"wait_on": after}));
    named.insert(
        "child".to_owned(),
        json!(alice.submit(&child).await.remove(0)),
    );
    let keyed = json!({"idempotency_key": "recorded"});
    let keyed = alice.submit(&wait("alice", keyed)).await.remove(0);
    named.insert("keyed".to_owned(), json!(keyed));
    let timer = json!({"timer": "yearly", "cron": "0 0 1 1 *", "missed": "skip"});
    alice
        .post("/scheduler/v1/timers", &wait("alice", timer))
        .await
        .json();
    named
}

/// Writes everything in the lab's indices, without their prefix: relevant settings, mappings, documents.
async fn dump(scheduler: &Scheduler, to: &Path) {
    let url = settings::elasticsearch().remove(0);
    let (http, prefix) = (Http::new(&url), scheduler.prefix());
    http.get(&format!("/{prefix}-*/_refresh")).await.json();
    let mappings = http.get(&format!("/{prefix}-*/_mapping")).await.json();
    // Dates are set by the server, and a request must not contain them.
    let fields = "filter_path=-index_templates.index_template.*_date*";
    let path = format!("/_index_template/{prefix}-*?{fields}");
    let templates = http.get(&path).await.json();
    let mut indices = Map::new();
    for (index, about) in mappings.as_object().expect("mappings by index") {
        let page = json!({"size": 10_000, "sort": ["_doc"], "query": {"match_all": {}}});
        let found = http.post(&format!("/{index}/_search"), &page).await.json();
        let hits = found["hits"]["hits"].as_array().expect("documents");
        let docs = hits
            .iter()
            .map(|hit| json!({"id": hit["_id"], "source": hit["_source"]}));
        let name = index.trim_start_matches(prefix).to_owned();
        let docs: Vec<Value> = docs.collect();
        indices.insert(
            name,
            json!({"mappings": about["mappings"], "documents": docs}),
        );
    }
    let text = json!({"templates": templates["index_templates"], "indices": indices});
    let text = serde_json::to_string_pretty(&text).expect("JSON");
    fs::write(to, text.replace(prefix, "PREFIX") + "\n").expect("indices.json");
}
