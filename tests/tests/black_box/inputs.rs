//! Tests of inputs and outputs with a real agent: what jobs find, what is fetched, and what is damaged.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use fairlead_tests::{Agent, Http, Scheduler, Store, content::Input, eventually, jobs};
use serde_json::{Value, json};
use tempfile::TempDir;

async fn ended(http: &Http, id: &str) -> Value {
    eventually("the job has ended", async || {
        let job = http.job(id).await;
        let stage = job["job_stage"].as_str().unwrap_or_default();
        (stage == "finish" || stage.starts_with("abort")).then_some(job)
    })
    .await
}

async fn log(http: &Http, id: &str) -> String {
    let path = format!("/scheduler/v1/jobs/{id}/log");
    http.get(&path).await.text
}

/// A scheduler, and an agent with its work folder.
struct Lab {
    scheduler: Scheduler,
    http: Http,
    agent: Agent,
    work: TempDir,
}

impl Lab {
    async fn start() -> Self {
        let scheduler = Scheduler::start(Store::Embedded).await;
        let work = TempDir::with_prefix("fairlead-work-").expect("a folder");
        Self {
            http: scheduler.http(),
            agent: agent(&scheduler, work.path()),
            scheduler,
            work,
        }
    }

    async fn runs(&self, fields: &Value) -> (String, Value) {
        let job = jobs::with(jobs::dc("alice"), fields);
        let id = self.http.submit(&job).await.remove(0);
        let job = ended(&self.http, &id).await;
        (log(&self.http, &id).await, job)
    }

    /// Returns the number of jobs that fetched this number of bytes for their inputs, from the agent's log.
    fn fetches(&self, bytes: u64) -> usize {
        let log = self.agent.log();
        let lines = log.lines().filter(|line| line.contains("has its inputs"));
        let word = format!("fetched_bytes={bytes}");
        lines.filter(|line| line.ends_with(&word)).count()
    }
}

fn agent(scheduler: &Scheduler, work: &Path) -> Agent {
    let work = work.to_string_lossy();
    let more = ["--kind", "vm,dc", "--memory", "4g", "--work-dir", &work];
    Agent::start(&scheduler.url(), "host-1", &more)
}

/// Returns the file of a chunk, or of a file in an agent's cache, with this digest.
fn file_of(folder: &Path, digest: &str) -> std::path::PathBuf {
    folder.join(&digest[..2]).join(digest)
}

fn overwrite(file: &Path, text: &str) {
    let open = fs::Permissions::from_mode(0o644);
    fs::set_permissions(file, open).expect("its mode can be changed");
    fs::write(file, text).expect("it can be written");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_build_leaves_is_there_for_its_tests_and_is_fetched_once() {
    let mut lab = Lab::start().await;
    let source = Input::of("int main;");
    source.put(&lab.http, "").await;
    let build = json!({
        "name": "build", "inputs": source.id, "outputs": ["lib", "tool"],
        "script": "cp inputs/a outputs/tool; mkdir outputs/lib; echo built > outputs/lib/x; chmod 755 outputs/tool",
    });
    let test = json!({
        "needs": "build", "inputs": [{"from": "build", "folder": "product"}, source.id],
        "script": "cd $FAIRLEAD_INPUTS; cat product/lib/x product/tool a; stat -c ' %a' product/tool a",
    });
    for round in 1..=2 {
        let both = [&build, &test].map(|fields| jobs::with(jobs::dc("alice"), fields));
        let ids = lab.http.submit(&json!(both)).await;
        let tested = ended(&lab.http, &ids[1]).await;
        let said = log(&lab.http, &ids[1]).await;
        assert_eq!(tested["job_health"], "success", "{tested} {said}");
        assert_eq!(said, "built\nint main;int main; 555\n 444\n");
        let outputs = lab.http.field(&ids[0], "outputs").await;
        assert_eq!(outputs.len(), 64, "{outputs}");
        // The first job fetches the source. The second fetches only the built file that is no copy of it, and the third
        // nothing.
        let fetched = [9, 6, 0].map(|bytes| lab.fetches(bytes));
        assert_eq!(fetched, [1, 1, if round == 1 { 0 } else { 2 }]);
    }
    lab.agent.stop().await;
    lab.agent = agent(&lab.scheduler, lab.work.path());
    let (said, job) = lab
        .runs(&json!({"inputs": source.id, "script": "cat inputs/a"}))
        .await;
    assert_eq!(
        (said.as_str(), &job["job_health"]),
        ("int main;", &json!("success"))
    );
    assert_eq!((lab.fetches(0), lab.fetches(9)), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_byte_that_flips_in_a_cache_is_told_and_healed() {
    let lab = Lab::start().await;
    let input = Input::of("right bytes");
    input.put(&lab.http, "").await;
    let fields = json!({"inputs": input.id, "script": "cat inputs/a"});
    lab.runs(&fields).await;
    let cached = file_of(&lab.work.path().join("cache/files"), &input.chunk);
    overwrite(&cached, "wrong bytes");
    let (said, job) = lab.runs(&fields).await;
    assert_eq!(
        (said.as_str(), &job["job_health"]),
        ("right bytes", &json!("success"))
    );
    let log = lab.agent.log();
    assert!(log.contains("has a damaged file"), "{log}");
    assert_eq!(
        fs::read_to_string(cached).expect("it is there"),
        "right bytes"
    );
    assert_eq!(lab.fetches(11), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_does_not_run_on_bytes_that_flipped_in_the_store() {
    let lab = Lab::start().await;
    let input = Input::of("right bytes");
    input.put(&lab.http, "").await;
    let chunks = lab.scheduler.data().join("content/chunks");
    overwrite(&file_of(&chunks, &input.chunk), "wrong bytes");
    let fields = json!({"inputs": input.id, "script": "cat inputs/a"});
    let (said, job) = lab.runs(&fields).await;
    assert_eq!(job["job_health"], "abort_provider", "{job}");
    let reason = job["reason"].as_str().unwrap_or_default();
    assert!(
        reason.contains(&input.id) && reason.contains("file 'a'"),
        "{reason}"
    );
    assert!(!said.contains("bytes"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_success_without_its_output_is_a_failure() {
    let lab = Lab::start().await;
    let fields = json!({"outputs": ["x", "y"], "script": "echo 1 > outputs/x"});
    let (_, job) = lab.runs(&fields).await;
    assert_eq!(job["job_health"], "fail", "{job}");
    assert_eq!(job["reason"], "its output 'y' is missing");
    assert_eq!(job["outputs"].as_str().map(str::len), Some(64), "{job}");
}
