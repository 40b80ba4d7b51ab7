//! Tests of real agents: their runs, ends and results.

use std::{fs, path::Path};

use fairlead_tests::{Agent, Http, Scheduler, Store, eventually, jobs};
use serde_json::{Value, json};
use tempfile::TempDir;

async fn ended(http: &Http, id: &str) -> Value {
    eventually("the job has ended", async || {
        let job = http.job(id).await;
        let over = [
            "finish",
            "cancel",
            "abort_invalid",
            "abort_wait",
            "abort_provider",
        ];
        let over = over.iter().any(|stage| job["job_stage"] == *stage);
        // Results arrive after the end.
        (over && job["job_data_readiness"] != "uploading" && job["job_data_readiness"] != "N/A")
            .then_some(job)
    })
    .await
}

async fn runs(script: &str, fields: &Value) -> (Scheduler, Http, Value) {
    let scheduler = Scheduler::start(Store::Embedded).await;
    let http = scheduler.http();
    let agent = Agent::start(
        &scheduler.url(),
        "host-1",
        &["--kind", "vm,dc", "--memory", "4g"],
    );
    let job = jobs::with(jobs::dc("alice"), &json!({"script": script}));
    let id = http.submit(&jobs::with(job, fields)).await.remove(0);
    let job = ended(&http, &id).await;
    drop(agent);
    (scheduler, http, job)
}

fn id(job: &Value) -> &str {
    job["job_id"]
        .as_str()
        .or_else(|| job["id"].as_str())
        .expect("a job says its id")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_s_output_and_results_arrive() {
    let script = "echo \"hello $size $deep_size\"; echo oops >&2\n\
                  mkdir $RESULT_ROOT/sub; printf 42 > $RESULT_ROOT/sub/answer\n";
    let fields = json!({"size": 7, "deep": {"size": "x y"}});
    let (_scheduler, http, job) = runs(script, &fields).await;
    assert_eq!(job["job_health"], "success", "{job}");
    let log = http
        .get(&format!("/scheduler/v1/jobs/{}/log", id(&job)))
        .await;
    assert!(
        log.text.contains("hello 7 x y") && log.text.contains("oops"),
        "{}",
        log.text
    );
    let root = job["result_root"].as_str().expect("a result root");
    let answer = http.get(&format!("{root}/sub/answer")).await;
    assert_eq!((answer.status, answer.text.as_str()), (200, "42"), "{job}");
    let list = http.get(root).await;
    assert!(
        list.status == 200 && list.text.contains("sub"),
        "{}",
        list.text
    );
    for stage in ["submit", "dispatch", "running"] {
        assert!(
            job.to_string().contains(&format!("{stage}_")),
            "no time of {stage}: {job}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exit_code_decides_the_health() {
    let (_scheduler, _, job) = runs("exit 3", &json!({})).await;
    assert_eq!(
        (&job["job_stage"], &job["job_health"]),
        (&json!("finish"), &json!("fail")),
        "{job}"
    );
    assert_eq!(job["exit_code"], 3, "{job}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_over_its_time_is_stopped_whole() {
    let folder = TempDir::with_prefix("fairlead-pids-").expect("a temporary folder");
    let pids = folder.path().join("pids");
    let script = format!(
        "( echo $(exec sh -c 'echo $PPID') >> {0}; sleep 600 ) & echo $$ >> {0}; sleep 600; wait",
        pids.display()
    );
    let (_scheduler, _, job) = runs(&script, &json!({"timeout": "2s"})).await;
    assert_eq!(job["job_health"], "soft_timeout", "{job}");
    nothing_is_left(&pids).await;
}

/// Checks that no process whose id the job wrote is alive.
async fn nothing_is_left(pids: &Path) {
    let text = fs::read_to_string(pids).expect("the job wrote its process ids");
    let ids: Vec<_> = text.split_whitespace().collect();
    assert_eq!(ids.len(), 2, "{text}");
    eventually("its processes are gone", async || {
        ids.iter().all(|id| !alive(id)).then_some(())
    })
    .await;
}

/// Returns true if the process is alive. A zombie counts as gone.
fn alive(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}

#[tokio::test(flavor = "multi_thread")]
async fn row_10_a_terminated_job_s_processes_are_gone_whatever_it_ran_on() {
    for kind in ["hw", "vm", "dc"] {
        terminated_on(kind).await;
    }
}

async fn terminated_on(kind: &str) {
    let folder = TempDir::with_prefix("fairlead-pids-").expect("a temporary folder");
    let pids = folder.path().join("pids");
    let scheduler = Scheduler::start(Store::Embedded).await;
    let http = scheduler.http();
    let _agent = Agent::start(&scheduler.url(), "host-1", &["--kind", kind]);
    let script = format!(
        "trap '' TERM; sleep 600 & echo $! $$ >> {}; sleep 600; sleep 600",
        pids.display()
    );
    let fields = json!({"script": script, "testbox": kind});
    let id = http.submit(&jobs::with(jobs::hw("alice"), &fields)).await;
    let id = id.first().expect("a job");
    eventually("the job runs", async || {
        let text = fs::read_to_string(&pids).unwrap_or_default();
        text.ends_with('\n').then_some(())
    })
    .await;
    let path = format!("/scheduler/v1/jobs/{id}/terminate");
    let reply = http.post(&path, &json!({"my_account": "alice"})).await;
    assert_eq!(reply.status, 200, "{kind}: {}", reply.text);
    let job = ended(&http, id).await;
    assert_eq!(job["job_health"], "terminate", "{kind}: {job}");
    nothing_is_left(&pids).await;
}

/// Returns the maximum number of concurrent runs in a record.
fn at_once_at_most(record: &str) -> usize {
    let mut open = 0_usize;
    let mut most = 0;
    for line in record.lines() {
        if line == "start" {
            open += 1;
            most = most.max(open);
        } else {
            open -= 1;
        }
    }
    most
}

async fn peak(kind: &[&str], job: &Value, count: usize) -> usize {
    let folder = TempDir::with_prefix("fairlead-peak-").expect("a temporary folder");
    let record = folder.path().join("record");
    let file = record.display();
    let script = format!("echo start >> {file}; sleep 0.5; echo end >> {file}");
    let scheduler = Scheduler::start(Store::Embedded).await;
    let http = scheduler.http();
    let job = jobs::with(job.clone(), &json!({"script": script}));
    let ids = http.submit(&jobs::times(count, &job)).await;
    let _agent = Agent::start(&scheduler.url(), "host-1", kind);
    for id in &ids {
        assert_eq!(ended(&http, id).await["job_health"], "success");
    }
    let text = fs::read_to_string(&record).expect("the record");
    assert_eq!(text.lines().count(), 2 * count);
    at_once_at_most(&text)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_runs_as_many_jobs_as_fit_and_no_more() {
    let peak = peak(
        &["--kind", "vm,dc", "--memory", "4g"],
        &jobs::dc("alice"),
        10,
    )
    .await;
    assert!((2..=4).contains(&peak), "{peak} of 1 GB at once on 4 GB");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_runs_one_job_at_a_time() {
    assert_eq!(peak(&["--kind", "hw"], &jobs::hw("alice"), 4).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_agent_s_job_is_tried_again_elsewhere() {
    let scheduler = Scheduler::start_with(Store::Embedded, &["--lease", "6s"]).await;
    let http = scheduler.http();
    let mut first = Agent::start(&scheduler.url(), "host-1", &["--kind", "hw"]);
    // The first try runs as long as this test, the second one ends.
    let folder = TempDir::with_prefix("fairlead-flag-").expect("a temporary folder");
    let script = format!(
        "test \"$ATTEMPT\" = 2 || while test -d {}; do sleep 0.2; done",
        folder.path().display()
    );
    let script = json!({"script": script});
    let id = http
        .submit(&jobs::with(jobs::hw("alice"), &script))
        .await
        .remove(0);
    eventually("the job runs", async || {
        (http.field(&id, "job_stage").await == "running").then_some(())
    })
    .await;
    first.kill();
    let _second = Agent::start(&scheduler.url(), "host-2", &["--kind", "hw"]);
    let job = ended(&http, &id).await;
    assert_eq!(
        (&job["job_health"], &job["attempt"]),
        (&json!("success"), &json!(2)),
        "{job}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_without_script_or_runner_ends_with_its_reason() {
    let (_scheduler, _, job) = runs("", &json!({"script": null, "prog": {"a": 1}})).await;
    assert_eq!(job["job_health"], "abort_invalid", "{job}");
    assert!(
        job["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains("runner")),
        "{job}"
    );
}

/// Two real testboxes. The client finds the server by the address that it is given.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_of_a_cluster_begin_together() {
    let scheduler = Scheduler::start(Store::Embedded).await;
    let http = scheduler.http();
    let script = "echo \"$role: server=$server clients=$direct_client_ips\"\n\
                  [ $role = client ] || { trap 'echo served; exit 0' TERM; sleep 600 & wait; }\n";
    // Each host has room for one node.
    let fields = json!({"script": script, "cluster": "cs-s1-c1", "need_memory": "700M", "cluster_wait": "10m"});
    let ids = http.submit(&jobs::with(jobs::dc("alice"), &fields)).await;
    assert_eq!(ids.len(), 2);
    let agent = |host: &str, address: &str| {
        let more = ["--kind", "dc", "--memory", "1g", "--address", address];
        Agent::start(&scheduler.url(), host, &more)
    };
    let _first = agent("host-1", "10.0.0.1");
    eventually("one waits for the other", async || {
        let stages = [
            http.field(&ids[0], "job_stage").await,
            http.field(&ids[1], "job_stage").await,
        ];
        stages
            .iter()
            .any(|stage| stage == "wait_peer")
            .then_some(())
    })
    .await;
    let mut explained = String::new();
    for id in &ids {
        let path = format!("/scheduler/v1/jobs/{id}/explain");
        explained += &http.get(&path).await.text;
    }
    assert!(
        explained.contains("has no testbox: it waits"),
        "{explained}"
    );
    assert!(
        explained.contains("is in stage wait_peer on host host-1"),
        "{explained}"
    );
    let _second = agent("host-2", "10.0.0.2");
    let mut logs = Vec::new();
    for id in &ids {
        let job = ended(&http, id).await;
        assert_eq!(job["job_health"], "success", "{job}");
        logs.push(http.get(&format!("/scheduler/v1/jobs/{id}/log")).await.text);
    }
    let addresses = |n: usize| ["10.0.0.1", "10.0.0.2"].map(|a| logs[n].contains(a));
    assert!(
        logs[0].contains("server: ") && logs[0].contains("served"),
        "{logs:?}"
    );
    assert!(logs[1].contains("client: "), "{logs:?}");
    assert_eq!(
        (addresses(0), addresses(1)),
        ([true; 2], [true; 2]),
        "{logs:?}"
    );
}
