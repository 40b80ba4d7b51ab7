//! Tests of a scheduler whose content lies in a real S3 server, `s3s-fs`, with real agents and clients.
//!
//! Chunks go past the scheduler. It counts the bytes that it moves itself.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod busy;
#[path = "../../../src/content/tests/suite/server.rs"]
mod server;

use std::fs;

use fairlead_tests::{
    Agent, Metrics, Ran, Scheduler, Store, content::digest, eventually, fairlead, jobs,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{busy::Busy, server::Server};

/// Place of the content: a part of the bucket, as in a lab that shares one.
const CONTENT: [&str; 2] = ["--content", "s3://lab/a/fairlead"];

/// A person's folder, and the lab that they use.
struct Person {
    folder: TempDir,
    url: String,
}

impl Person {
    fn of(scheduler: &Scheduler) -> Self {
        Self {
            folder: TempDir::with_prefix("fairlead-person-").expect("a folder"),
            url: scheduler.url(),
        }
    }

    fn run(&self, words: &[&str]) -> Ran {
        fairlead(self.folder.path(), &[("FAIRLEAD_SERVER", &self.url)], words)
    }

    fn json(&self, words: &[&str]) -> Value {
        let ran = self.run(&[words, &["--json"]].concat());
        serde_json::from_str(ran.expect_code(0)).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
    }
}

/// Returns bytes without a pattern, for several chunks.
fn noise(seed: &str) -> Vec<u8> {
    let blocks = (0..50_000).map(|n| digest(format!("{seed} {n}").as_bytes()));
    blocks.collect::<String>().into_bytes()
}

/// Returns the bytes of chunks that went through the scheduler: put, and read.
async fn moved(scheduler: &Scheduler) -> [f64; 2] {
    let metrics = Metrics::of(&scheduler.http()).await;
    ["put", "read"].map(|verb| metrics.get(&format!("fairlead_content_{verb}_bytes_total")))
}

/// Puts a folder, has a real agent run a job on it, and gets the job's outputs.
async fn put_run_and_get(scheduler: &Scheduler) {
    let http = scheduler.http();
    let person = Person::of(scheduler);
    let source = person.folder.path().join("source");
    fs::create_dir_all(source.join("deep")).expect("a folder");
    fs::write(source.join("image"), noise("image")).expect("a file");
    fs::write(source.join("deep/note"), "a note").expect("a file");
    let put = person.json(&["put", "source"]);
    assert!(put["chunks"].as_u64() > Some(2), "{put}");
    assert_eq!(put["sent_chunks"], put["chunks"]);

    let more = ["--kind", "dc", "--memory", "4g"];
    let mut agent = Agent::start(&scheduler.url(), "host-1", &more);
    let fields = json!({
        "inputs": put["id"], "outputs": ["twice", "note"],
        "script": "cp inputs/deep/note outputs/note; cat inputs/image inputs/deep/note inputs/image > outputs/twice",
    });
    let job = jobs::with(jobs::dc("alice"), &fields);
    let id = http.submit(&job).await.remove(0);
    let ended = eventually("the job has ended", async || {
        let job = http.job(&id).await;
        let stage = job["job_stage"].as_str().unwrap_or_default();
        (stage == "finish" || stage.starts_with("abort")).then_some(job)
    });
    let ended = ended.await;
    assert_eq!(ended["job_health"], "success", "{ended}");
    let outputs = ended["outputs"].as_str().expect("outputs");

    person.run(&["get", outputs, "back"]).expect_code(0);
    let read = |path: &str| fs::read(person.folder.path().join(path)).expect("a file");
    let image = noise("image");
    assert!(read("back/twice") == [&image[..], b"a note", &image].concat());
    assert!(read("back/note") == b"a note");
    let again = person.json(&["put", "back"]);
    assert_eq!(
        (&again["id"], &again["sent_chunks"]),
        (&json!(outputs), &json!(0))
    );
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_agents_and_people_move_goes_past_the_scheduler() {
    let s3 = Server::start();
    let scheduler = Scheduler::start_within(&s3.variables(), &CONTENT).await;
    put_run_and_get(&scheduler).await;
    let [put, read] = moved(&scheduler).await;
    assert!(put < 1.0 && read < 1.0, "{put} {read}");
    let checked = Person::of(&scheduler).json(&["content", "check"]);
    assert_eq!(checked["problems_total"], 0, "{checked}");

    // A content folder has no addresses, so the same bytes go through the scheduler, which counts them.
    let scheduler = Scheduler::start(Store::Embedded).await;
    put_run_and_get(&scheduler).await;
    let [put, read] = moved(&scheduler).await;
    let image = 3_200_000.0;
    assert!(put > image && read > 2.0 * image, "{put} {read}");
}

#[tokio::test(flavor = "multi_thread")]
async fn results_and_logs_lie_in_the_bucket_too() {
    let s3 = Server::start();
    let words = [&CONTENT[..], &["--files-in", "content"]].concat();
    let scheduler = Scheduler::start_within(&s3.variables(), &words).await;
    let http = scheduler.http();
    let more = ["--kind", "dc", "--memory", "4g"];
    let mut agent = Agent::start(&scheduler.url(), "host-1", &more);
    let script = "echo said; echo found > \"$RESULT_ROOT/x\"";
    let job = jobs::with(jobs::dc("alice"), &json!({ "script": script }));
    let id = http.submit(&job).await.remove(0);
    let path = format!("/scheduler/v1/jobs/{id}/log");
    eventually("the results are in", async || {
        let job = http.job(&id).await;
        (job["job_data_readiness"] == "uploaded").then_some(())
    })
    .await;
    assert_eq!(http.get(&path).await.text, "said\n");
    let root = http.field(&id, "result_root").await;
    assert_eq!(http.get(&format!("{root}/x")).await.text, "found\n");
    let data = scheduler.data();
    let inside = |name: &str| fs::read_dir(data.join(name)).map_or(0, Iterator::count);
    assert_eq!(["result", "logs"].map(inside), [0, 0]);
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_that_asks_for_fewer_requests_is_told_and_waited_for() {
    let s3 = Server::start();
    let mut variables = s3.variables();
    let busy = Busy::before(&mut variables).await;
    let scheduler = Scheduler::start_within(&variables, &CONTENT).await;
    let http = scheduler.http();
    let person = Person::of(&scheduler);
    fs::write(person.folder.path().join("one"), noise("one")).expect("a file");
    fs::write(person.folder.path().join("two"), noise("two")).expect("a file");
    person.run(&["put", "one"]).expect_code(0);
    let health = async || http.get("/scheduler/v1/health").await;
    assert!(!health().await.text.contains("fewer requests"));

    busy.set(true);
    let put = std::thread::scope(|threads| {
        let putting = threads.spawn(|| person.run(&["put", "two"]));
        let told = tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(async {
                eventually("health tells it", async || {
                    let told = health().await.text.contains("it asks for fewer requests");
                    told.then_some(())
                })
                .await;
                Metrics::of(&http).await
            })
        });
        for name in ["throttled", "available"] {
            assert!(
                told.get(&format!("fairlead_content_{name}")) > 0.5,
                "{name}"
            );
        }
        assert!(!putting.is_finished());
        busy.set(false);
        putting.join().expect("the put")
    });
    let id = put.expect_code(0).trim().to_owned();
    person.run(&["get", &id, "back"]).expect_code(0);
    let back = fs::read(person.folder.path().join("back/two")).expect("a file");
    assert!(back == noise("two"));
    let [put, read] = moved(&scheduler).await;
    assert!(put < 1.0 && read < 1.0, "{put} {read}");
}
