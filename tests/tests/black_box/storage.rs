//! Parts of what keeps a lab that take nothing: one index of several, or the data folder. Health, metrics and `doctor` say
//! so without a break, and no job waits for ever.

use std::{fs, os::unix::fs::symlink, path::Path};

use fairlead_tests::{
    Agent, Http, Metrics, Reply, Scheduler, Store, eventually, fairlead, jobs, settings,
};
use reqwest::Method;
use serde_json::{Value, json};

async fn health(http: &Http) -> Reply {
    http.get("/scheduler/v1/health").await
}

async fn ask(elastic: &Http, method: Method, path: &str, body: &Value) -> Value {
    let body = match body {
        Value::Null => Vec::new(),
        body => body.to_string().into_bytes(),
    };
    let reply = elastic.send(method, path, "application/json", body).await;
    assert_eq!(reply.status, 200, "{}: {}", reply.asked, reply.text);
    reply.json()
}

/// Creates an index again that no node may have. Returns its name.
async fn redden(elastic: &Http, prefix: &str, kind: &str) -> String {
    let all = elastic
        .get(&format!("/{prefix}-{kind}*/_mapping"))
        .await
        .json();
    let (index, about) = all
        .as_object()
        .and_then(|all| all.iter().next())
        .expect(kind);
    let body = json!({
        "mappings": about["mappings"],
        "settings": {
            "index.routing.allocation.require._name": "no-such-node", "index.number_of_replicas": 0,
        },
    });
    ask(elastic, Method::DELETE, &format!("/{index}"), &Value::Null).await;
    let path = format!("/{index}?wait_for_active_shards=0");
    ask(elastic, Method::PUT, &path, &body).await;
    index.clone()
}

/// Regression: health flapped, because other indices took writes, and `store_writable` stayed 1.
#[tokio::test(flavor = "multi_thread")]
async fn each_index_that_is_gone_is_told_without_a_break_until_it_is_back() {
    const ROUNDS: &str = "fairlead_chore_seconds_count{chore=\"store\"}";
    let scheduler = Scheduler::start(Store::Elasticsearch).await;
    let (http, elastic) = (scheduler.http(), Http::new(&settings::elasticsearch()[0]));
    let _agent = Agent::start(
        &scheduler.url(),
        "host-1",
        &["--kind", "dc", "--memory", "4g"],
    );
    http.submit(&jobs::dc("alice")).await;
    for kind in ["jobs-", "session", "documents"] {
        let index = redden(&elastic, scheduler.prefix(), kind).await;
        eventually(&format!("health names {index}"), async || {
            let told = health(&http).await;
            let writable = Metrics::of(&http).await.get("fairlead_store_writable");
            (told.text.contains(&index) && writable < 1.0).then_some(())
        })
        .await;
        for round in 0..4 {
            let before = Metrics::of(&http).await.get(ROUNDS);
            eventually("another round", async || {
                (Metrics::of(&http).await.get(ROUNDS) > before).then_some(())
            })
            .await;
            let told = health(&http).await;
            assert_eq!(told.status, 503, "{index}, round {round}: {}", told.text);
            let writable = Metrics::of(&http).await.get("fairlead_store_writable");
            assert!(writable < 1.0, "{index}, round {round}");
        }
        http.post("/scheduler/v1/jobs/submit", &jobs::dc("alice"))
            .await
            .refused(503);
        let anywhere = json!({"index.routing.allocation.require._name": null});
        ask(
            &elastic,
            Method::PUT,
            &format!("/{index}/_settings"),
            &anywhere,
        )
        .await;
        eventually(&format!("{index} is back"), async || {
            (health(&http).await.status == 200).then_some(())
        })
        .await;
    }
}

/// Replaces the log of a job by a file that takes no data, as on a full disk.
fn full_log(scheduler: &Scheduler, job: &str) {
    let log = scheduler.data().join("logs").join(&job[..4]);
    fs::create_dir_all(&log).expect("a folder");
    symlink("/dev/full", log.join(format!("{job}.1.log"))).expect("a link");
}

fn doctor(folder: &Path, scheduler: &Scheduler) -> String {
    let words = ["doctor", "--server", &scheduler.url()];
    fairlead(folder, &[], &words).out
}

/// Regression: jobs stayed in `post_run` forever, health was 200, and `doctor` found nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_data_folder_is_told_and_keeps_no_job_from_its_end() {
    let scheduler = Scheduler::start(Store::Embedded).await;
    let http = scheduler.http();
    let noisy = jobs::with(jobs::dc("alice"), &json!({"script": "echo out"}));
    let id = http.submit(&noisy).await.remove(0);
    full_log(&scheduler, &id);
    let words = ["--kind", "dc", "--memory", "4g", "--store-wait", "0"];
    let _agent = Agent::start(&scheduler.url(), "host-1", &words);
    eventually("it ends", async || {
        (http.field(&id, "job_stage").await == "finish").then_some(())
    })
    .await;
    assert_eq!(http.field(&id, "job_health").await, "success");
    assert_eq!(http.field(&id, "job_data_readiness").await, "incomplete");
    let told = health(&http).await;
    assert_eq!(told.status, 200, "jobs are dispatched: {}", told.text);
    assert!(told.text.contains("The data folder"), "{}", told.text);
    let metrics = Metrics::of(&http).await;
    for name in [
        "fairlead_refusals_total{code=\"data_full\"}",
        "fairlead_data_free_bytes",
    ] {
        assert!(metrics.get(name) > 0.0, "{name}: {metrics:?}");
    }
    let found = doctor(scheduler.folder(), &scheduler);
    assert!(found.contains("files of jobs were refused"), "{found}");
}

/// Checks that files that an agent leaves out are reported, and that the others exist.
async fn ends_with(http: &Http, files: &[(&str, u32)], kept: &[&str], why: &str) {
    let write = |(name, kb): &(&str, u32)| format!("head -c {kb}k /dev/zero > $RESULT_ROOT/{name}");
    let script = files.iter().map(write).collect::<Vec<_>>().join("\n");
    let job = jobs::with(jobs::dc("alice"), &json!({"script": script}));
    let id = http.submit(&job).await.remove(0);
    eventually("it ends", async || {
        (http.field(&id, "job_stage").await == "finish").then_some(())
    })
    .await;
    assert_eq!(http.field(&id, "job_health").await, "success");
    assert_eq!(http.field(&id, "job_data_readiness").await, "incomplete");
    let reason = http.field(&id, "reason").await;
    assert!(reason.contains(why), "{reason}");
    let root = http.field(&id, "result_root").await;
    for (name, _) in files {
        let status = http.get(&format!("{root}/{name}")).await.status;
        assert_eq!(status == 200, kept.contains(name), "{name}: {status}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_and_an_account_keep_no_more_than_their_quotas() {
    let scheduler = Scheduler::start_with(Store::Embedded, &["--job-results-max", "1m"]).await;
    let http = scheduler.http();
    let words = ["--kind", "dc", "--memory", "4g", "--store-wait", "0"];
    let _agent = Agent::start(&scheduler.url(), "host-1", &words);
    let files = [("a", 3_000), ("b", 400), ("c", 900), ("d", 300)];
    let why = "'a': the files of the job would have more than 1048576 bytes";
    ends_with(&http, &files, &["b", "d"], why).await;
    let limits = json!({"limits": {"results_mb": {"hard": 0}}});
    let set = http.post("/scheduler/v1/accounts/alice", &limits).await;
    assert_eq!(set.status, 200, "{}", set.text);
    let why = "account 'alice' has";
    ends_with(&http, &[("a", 1)], &[], why).await;
}
