//! Incidents with the lab's key: lost, doubled or changed. No job runs without its secrets, and no lab is split.

use std::{
    fs,
    process::{Command, Stdio},
};

use fairlead_tests::{
    Guarded, Http, Scheduler, Store, Testbox, eventually, fairlead, jobs, reaper, settings,
};
use reqwest::Method;
use serde_json::{Value, json};

fn secret_job() -> Value {
    let secret = json!({"secrets": {"password": "hush"}});
    jobs::with(jobs::dc("alice"), &secret)
}

/// Settings document with the key, in a lab on Elasticsearch.
struct KeyDocument {
    elasticsearch: Http,
    path: String,
}

impl KeyDocument {
    fn of(scheduler: &Scheduler) -> Self {
        Self {
            elasticsearch: Http::new(&settings::elasticsearch()[0]),
            path: format!(
                "/{}-settings/_doc/sealing-key?refresh=true",
                scheduler.prefix()
            ),
        }
    }

    async fn read(&self) -> Value {
        let doc = self.elasticsearch.get(&self.path).await.json();
        doc["_source"]["body"].clone()
    }

    async fn lose(&self) {
        let http = &self.elasticsearch;
        let deleted = http.send(Method::DELETE, &self.path, "", Vec::new()).await;
        assert_eq!(deleted.status, 200, "{}", deleted.text);
    }
}

/// Returns the message of a `serve` that does not start.
async fn refusal_to_start(scheduler: &Scheduler) -> String {
    let log = scheduler.folder().join("refusal");
    let file = fs::File::create(&log).unwrap_or_else(|error| panic!("a log file: {error}"));
    let mut child = Command::new(settings::binary("fairlead"))
        .arg("serve")
        .args(scheduler.store_arguments())
        .args(["--listen", "127.0.0.1:0"])
        .env("HOME", scheduler.folder())
        .envs([reaper::variable()])
        .stdout(Stdio::null())
        .stderr(file)
        .spawn()
        .unwrap_or_else(|error| panic!("fairlead serve: {error}"));
    let text = || fs::read_to_string(&log).unwrap_or_default();
    let ended = eventually("it starts, or says why not", async || {
        let ended = child.try_wait().ok().flatten();
        let started = text().contains("ready");
        (ended.is_some() || started).then_some(ended)
    })
    .await;
    let _ = child.kill();
    let _ = child.wait();
    assert!(
        ended.is_some_and(|status| !status.success()),
        "it started: {}",
        text()
    );
    text()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_key_is_never_made_anew() {
    let mut scheduler = Scheduler::start(Store::Elasticsearch).await;
    let http = scheduler.http();
    http.submit(&secret_job()).await;
    let key = KeyDocument::of(&scheduler);
    let backup = key.read().await;
    scheduler.stop().await;
    key.lose().await;

    let said = refusal_to_start(&scheduler).await;
    assert!(said.contains("sealing key is lost"), "{said}");
    assert!(said.contains("fairlead key import"), "{said}");

    let file = scheduler.folder().join("backup.json");
    fs::write(&file, backup.to_string()).unwrap();
    let file = file.to_string_lossy().into_owned();
    Guarded::command(&scheduler, &["key", "import", &file]);
    scheduler.restart().await;
    let grant = Testbox::dc(&http, "host-1", 2 << 10).take().await;
    assert_eq!(grant.job["secrets"]["password"], "hush");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_key_is_lost_does_not_run_without_its_secrets() {
    let mut scheduler = Scheduler::start(Store::Elasticsearch).await;
    let http = scheduler.http();
    let id = http.submit(&secret_job()).await.remove(0);
    let key = KeyDocument::of(&scheduler);
    let mut testbox = Testbox::dc(&http, "host-1", 2 << 10);
    scheduler.stop().await;
    // This simulates a backup of another lab: a document with another key.
    let mut other = key.read().await;
    other["key"] = json!("ab".repeat(32));
    other["keys"] = json!([]);
    key.lose().await;
    let doc = json!({"id": "sealing-key", "body": other});
    let path = key.path.clone();
    let put = doc.to_string().into_bytes();
    let stored = key
        .elasticsearch
        .send(Method::PUT, &path, "application/json", put);
    assert_eq!(stored.await.status, 201);
    scheduler.restart().await;

    let got = testbox.ask(10).await;
    assert!(
        got.is_empty(),
        "it got a job without its secrets: {:?}",
        got[0].job
    );
    let why = eventually("the job says why it waits", async || {
        testbox.ask(0).await;
        let job = http.job(&id).await.to_string();
        job.contains("secrets cannot be opened").then_some(job)
    })
    .await;
    assert!(why.contains("import"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_key_ends_no_running_job_and_shows_no_key() {
    let mut scheduler = Scheduler::start(Store::Embedded).await;
    let http = scheduler.http();
    http.submit(&json!([secret_job(), secret_job()])).await;
    let mut testbox = Testbox::dc(&http, "host-1", 1 << 10);
    let grant = testbox.take().await;
    scheduler.stop().await;
    let first = Guarded::command(&scheduler, &["--json", "key", "show"]);
    let rotated = Guarded::command(&scheduler, &["--json", "key", "rotate"]);
    let export = Guarded::command(&scheduler, &["key", "show", "--export"]);
    let read = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
    let (first, rotated, export) = (read(&first), read(&rotated), read(&export));
    assert_eq!(rotated["keys"].as_array().map(Vec::len), Some(2));
    assert_eq!(rotated["keys"][1]["id"], first["keys"][0]["id"]);
    for key in export["keys"].as_array().into_iter().flatten() {
        let key = key["key"].as_str().unwrap();
        assert!(!rotated.to_string().contains(key) && key.len() == 64);
    }
    // A key is removed only when nothing may use it any more.
    let id = first["keys"][0]["id"].as_str().unwrap();
    let store = scheduler.store_arguments();
    let mut retire = vec!["key", "retire", id];
    retire.extend(store.iter().map(String::as_str));
    let early = fairlead(scheduler.folder(), &[], &retire);
    early.expect_code(5);
    assert!(early.err.contains("may be in use until"), "{}", early.err);
    scheduler.restart().await;
    assert_eq!(
        testbox.report(&grant, "job_stage=running").await.status,
        200
    );
    testbox.finish_running(&grant).await;
    let next = testbox.take().await;
    assert_eq!(next.job["secrets"]["password"], "hush");
    testbox.finish(&next).await;
}
