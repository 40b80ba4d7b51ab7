//! The main job, end to end: real files, a real store, real agents, and a scheduler that is killed meanwhile. Nothing
//! is lost, nothing runs twice, everything ends well.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use fairlead_tests::{
    Agent, Http, Scheduler, Store, clock, command, eventually, jobs, settings, until,
};
use serde_json::{Value, json};
use tempfile::TempDir;

const JOBS: usize = 200;
/// Lease, ms. A busy machine renews a lease within a second, so no job is tried twice.
const LEASE_MS: u64 = 6000;
/// Time limit for the end of everything, seconds, even beside a build.
const LIMIT_S: u64 = 300;

/// Record to which each run of a job appends a line at its start and one at its end.
struct Record {
    folder: TempDir,
}

impl Record {
    fn new() -> Self {
        let folder = TempDir::with_prefix("fairlead-record-").expect("a temporary folder");
        let record = Self { folder };
        let runner = format!("#!/bin/sh\n{}", record.script("0.1"));
        fs::write(record.runner(), runner).expect("the runner");
        fs::set_permissions(record.runner(), fs::Permissions::from_mode(0o755)).expect("its mode");
        record
    }

    /// Returns a job's script. Each line is one short append, so lines of concurrent jobs do not mix.
    fn script(&self, seconds: &str) -> String {
        let file = self.folder.path().join("runs");
        let file = file.display();
        format!(
            "echo \"$JOB_ID start $(date +%s%N)\" >> {file}\n\
             sleep {seconds}\n\
             echo \"$JOB_ID end $(date +%s%N)\" >> {file}\n"
        )
    }

    /// Returns the runner of jobs without a script, in place of the programs of a lab.
    fn runner(&self) -> PathBuf {
        self.folder.path().join("runner")
    }

    /// Returns the number of starts and ends of each job.
    fn runs(&self) -> BTreeMap<String, (usize, usize)> {
        let text = fs::read_to_string(self.folder.path().join("runs")).unwrap_or_default();
        let mut runs = BTreeMap::new();
        for line in text.lines() {
            let mut words = line.split(' ');
            let id = words.next().unwrap_or_default().to_owned();
            let run: &mut (usize, usize) = runs.entry(id).or_default();
            match words.next() {
                Some("start") => run.0 += 1,
                Some("end") => run.1 += 1,
                _ => panic!("a torn line: {line}"),
            }
        }
        runs
    }
}

/// Returns jobs of our examples, expanded by the command as for a user, and shortened to run anywhere.
fn jobs_of_examples() -> Vec<Value> {
    let folder = settings::project().join("examples");
    let mut paths: Vec<_> = fs::read_dir(&folder)
        .expect("examples")
        .map(|entry| entry.expect("an example").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "yaml"))
        .collect();
    paths.sort();
    let mut all = Vec::new();
    for path in paths {
        let file = path.to_string_lossy();
        let words = ["submit", "--dry-run", "--json", &file];
        let out = command::fairlead(&folder, &[], &words);
        let expanded: Vec<Value> =
            serde_json::from_str(out.expect_code(0)).expect("an array of jobs");
        assert!(!expanded.is_empty(), "{file} holds no job");
        all.extend(expanded.into_iter().take(4));
    }
    all
}

/// Returns real jobs of a lab. They have no script, so the runner takes them.
fn jobs_of_corpus(corpus: &Path) -> Vec<Value> {
    let folder = corpus.join("golden");
    let mut paths: Vec<_> = fs::read_dir(&folder)
        .expect("the corpus' golden folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .collect();
    paths.sort();
    let first = |path: &PathBuf| {
        let text = fs::read_to_string(path).expect("a golden file");
        let golden: Value = serde_json::from_str(&text).expect("its JSON");
        golden["jobs"]
            .as_array()
            .and_then(|jobs| jobs.first())
            .cloned()
    };
    paths.iter().filter_map(first).take(50).collect()
}

/// Returns 200 jobs of two accounts for all three hosts.
fn all_jobs(record: &Record) -> Vec<Value> {
    let anywhere = json!({
        "testbox": "dc", "need_memory": "1g", "memory": null, "arch": null, "tbox_group": null,
        "cluster": null, "runtime": null, "timeout": null, "memory_minimum": null, "tags": null,
        "target_machines": null, "cache_dirs": null, "wait_on": null, "queue": null, "sched": null,
    });
    let corpus = settings::corpus()
        .map(|corpus| jobs_of_corpus(&corpus))
        .unwrap_or_default();
    let mut all: Vec<Value> = corpus
        .into_iter()
        .map(|job| jobs::with(jobs::with(job, &anywhere), &json!({"script": null})))
        .collect();
    // Examples are real work, so the record is kept around them.
    for job in jobs_of_examples() {
        let script = job["script"]
            .as_str()
            .expect("an example brings its script")
            .to_owned();
        let script = format!("{}( {script}\n) || exit 1\n", record.script("0"));
        all.push(jobs::with(
            jobs::with(job, &anywhere),
            &json!({"script": script}),
        ));
    }
    let own = json!({"script": record.script("0.2")});
    while all.len() < JOBS {
        let (hw, dc) = (jobs::hw("x"), jobs::dc("x"));
        let vm = jobs::with(dc.clone(), &json!({"testbox": "vm", "need_memory": "2g"}));
        let job = [hw, dc, vm]
            .into_iter()
            .cycle()
            .nth(all.len())
            .expect("a cycle has no end");
        all.push(jobs::with(job, &own));
    }
    all.truncate(JOBS);
    for (at, job) in all.iter_mut().enumerate() {
        let account = if at % 4 == 0 { "light" } else { "heavy" };
        *job = jobs::with(job.clone(), &json!({"my_account": account}));
    }
    all
}

async fn ended(http: &Http) -> u64 {
    let path =
        "/scheduler/v1/jobs?stage=finish,cancel,abort_invalid,abort_wait,abort_provider&limit=1";
    let reply = http
        .try_send(reqwest::Method::GET, path, "", Vec::new())
        .await;
    let list = reply.ok().filter(|reply| reply.status == 200);
    let list = list.and_then(|reply| serde_json::from_str::<Value>(&reply.text).ok());
    list.and_then(|list| list["total"].as_u64()).unwrap_or(0)
}

/// Waits for the end of the last job. On a timeout it shows the unfinished ones.
async fn all_end(http: &Http) {
    let begin = clock::now();
    until("all have ended", 2 * LIMIT_S, async || {
        let ended = ended(http).await;
        if clock::now() - begin > Duration::from_secs(LIMIT_S) {
            let stages = "submit,dispatch,boot,setup,running,post_run";
            let open = http
                .get(&format!("/scheduler/v1/jobs?stage={stages}"))
                .await
                .json();
            let mut about = vec![http.get("/scheduler/v1/hosts").await.text];
            for job in open["jobs"].as_array().into_iter().flatten() {
                let id = job["job_id"].as_str().unwrap_or_default();
                about.push(
                    http.get(&format!("/scheduler/v1/jobs/{id}/explain"))
                        .await
                        .text,
                );
            }
            panic!("{ended} have ended; open are {open}\n{}", about.join("\n"));
        }
        (ended >= 200).then_some(())
    })
    .await;
}

fn agents(scheduler: &Scheduler, record: &Record) -> Vec<Agent> {
    let runner = record.runner();
    let runner = runner.to_string_lossy();
    let url = scheduler.url();
    let hw = ["--kind", "hw", "--runner", &runner];
    let host = ["--kind", "vm,dc", "--memory", "20g", "--runner", &runner];
    vec![
        Agent::start(&url, "machine-1", &hw),
        Agent::start(&url, "machine-2", &hw),
        Agent::start(&url, "server-1", &host),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn main_job() {
    let record = Record::new();
    let lease = format!("{LEASE_MS}ms");
    let mut scheduler = Scheduler::start_with(Store::Elasticsearch, &["--lease", &lease]).await;
    let http = scheduler.http();
    for (account, weight) in [("heavy", 3), ("light", 1)] {
        let path = format!("/scheduler/v1/queues/{account}");
        let reply = http.post(&path, &json!({"weight": weight})).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
    }
    let jobs = all_jobs(&record);
    let submitted = http.submit(&json!(jobs)).await;
    assert_eq!(submitted.len(), JOBS);
    let mut running = agents(&scheduler, &record);

    // The scheduler is killed during work, and restarted at once.
    eventually("a fifth has ended", async || {
        (ended(&http).await >= 40).then_some(())
    })
    .await;
    scheduler.kill();
    scheduler.restart().await;

    // It is killed again, and restarted when every lease would have expired.
    eventually("half has ended", async || {
        (ended(&http).await >= 100).then_some(())
    })
    .await;
    scheduler.kill();
    let back = clock::now() + Duration::from_millis(LEASE_MS * 3 / 2);
    eventually("every lease has passed", async || {
        (clock::now() >= back).then_some(())
    })
    .await;
    scheduler.restart().await;

    all_end(&http).await;
    let runs = record.runs();
    for (id, asked) in submitted.iter().zip(&jobs) {
        let job = http.job(id).await;
        let about = format!("{id}: {job}");
        // One example job is meant to fail.
        let fails = asked["suite"] == "fail" && asked["step"] == "second";
        assert_eq!(
            job["job_health"],
            if fails { "fail" } else { "success" },
            "{about}"
        );
        assert_eq!(job["attempt"], 1, "{about}");
        assert_eq!(runs.get(id), Some(&(1, 1)), "{about}");
    }
    assert_eq!(runs.len(), JOBS, "something ran that was not submitted");
    for agent in &mut running {
        agent.stop().await;
    }
    assert!(scheduler.stop().await.success());
}
