//! A lab over Elasticsearch that is restored from a snapshot, as the operator's guide says.

use std::collections::BTreeSet;

use fairlead_api::Grant;
use fairlead_tests::{Http, Scheduler, Server, Store, Testbox, clock, eventually, fairlead, jobs};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// Sends a request to Elasticsearch, which must answer with success.
async fn ask(elastic: &Http, method: Method, path: &str, body: &Value) -> Value {
    let body = if body.is_null() {
        Vec::new()
    } else {
        body.to_string().into_bytes()
    };
    let reply = elastic.send(method, path, "application/json", body).await;
    reply.json()
}

async fn take(http: &Http, testbox: &mut Testbox) -> (String, Grant) {
    let id = http.submit(&jobs::dc("alice")).await.remove(0);
    let grant = testbox.take().await;
    assert_eq!(grant.job_id, id);
    let reply = testbox.report(&grant, "job_stage=running").await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    (id, grant)
}

/// Submits until it is told to stop, and records the acknowledged jobs.
async fn submit_all_the_time(
    http: &Http,
    mut stop: tokio::sync::watch::Receiver<bool>,
) -> BTreeSet<String> {
    let held = jobs::with(jobs::dc("bob"), &json!({"target_machines": ["nowhere"]}));
    let mut ids = BTreeSet::new();
    while !*stop.borrow_and_update() {
        ids.extend(http.submit(&jobs::times(5, &held)).await);
    }
    ids
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_is_restored_and_nothing_acknowledged_before_it_is_lost() {
    let server = Server::start(&[]);
    let url = server.urls.first().expect("a node").clone();
    let elastic = Http::new(&url);
    let prefix = format!("t-{}", clock::unique());
    let store = ["--elasticsearch", &url, "--index-prefix", &prefix];
    let mut scheduler = Scheduler::start_with(Store::Embedded, &store).await;
    let http = scheduler.http();
    let mut testbox = Testbox::dc(&http, "server-1", 8 << 10);
    let (ended, grant) = take(&http, &mut testbox).await;
    testbox.finish_running(&grant).await;
    let (goes_on, still) = take(&http, &mut testbox).await;
    let (run, ends) = take(&http, &mut testbox).await;
    let waiting = http.submit(&jobs::dc("alice")).await.remove(0);
    let weight = json!({"weight": 30});
    http.post("/scheduler/v1/queues/alice", &weight)
        .await
        .json();

    let repository = json!({"type": "fs", "settings": {"location": "lab"}});
    ask(&elastic, Method::PUT, "/_snapshot/lab", &repository).await;
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let mut load = JoinSet::new();
    load.spawn({
        let http = http.clone();
        async move { submit_all_the_time(&http, stopped).await }
    });
    let parts =
        json!({"indices": format!("{prefix}-*"), "include_global_state": false, "partial": false});
    let before = http.submit(&jobs::times(5, &jobs::hw("carol"))).await;
    let path = "/_snapshot/lab/one?wait_for_completion=true";
    let taken = ask(&elastic, Method::PUT, path, &parts).await;
    assert_eq!(taken["snapshot"]["state"], "SUCCESS", "{taken}");
    stop.send(true).expect("the load goes on");
    let during = load.join_next().await.expect("the load");
    let during = during.expect("the load ends");
    assert!(!during.is_empty());

    // After the snapshot one job starts, one ends, and one is new.
    let begun = testbox.take().await;
    assert_eq!(begun.job_id, waiting);
    let reply = testbox.report(&begun, "job_stage=running").await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    testbox.finish_running(&ends).await;
    let (new, _) = take(&http, &mut testbox).await;

    // All replicas are stopped. Another cluster has no templates either.
    scheduler.kill();
    let list = format!("/_cat/indices/{prefix}-*?h=index");
    let indices = elastic.get(&list).await.text;
    let indices: Vec<&str> = indices.split_whitespace().collect();
    let path = format!("/{}", indices.join(","));
    ask(&elastic, Method::DELETE, &path, &Value::Null).await;
    let templates = format!("/_index_template/{prefix}*");
    ask(&elastic, Method::DELETE, &templates, &Value::Null).await;
    let path = "/_snapshot/lab/one/_restore?wait_for_completion=true";
    let parts = json!({"indices": format!("{prefix}-*"), "include_global_state": false});
    let restored = ask(&elastic, Method::POST, path, &parts).await;
    assert_eq!(restored["snapshot"]["shards"]["failed"], 0, "{restored}");
    let data = scheduler.data();
    let data = data.to_str().expect("letters").to_owned();
    let mut words = vec!["check", "--json", "--files", &data, "--set-aside"];
    words.extend(store);
    let checked = fairlead(scheduler.folder(), &[], &words);
    checked.expect_code(0);
    scheduler.restart().await;

    assert_eq!(http.field(&ended, "job_health").await, "success");
    for id in &before {
        assert_eq!(http.field(id, "job_stage").await, "submit");
    }
    // Each job that was submitted meanwhile is either complete or missing.
    let mut kept = 0;
    for id in &during {
        let reply = http.get(&format!("/scheduler/v1/jobs/{id}")).await;
        assert!([200, 404].contains(&reply.status), "{}", reply.text);
        kept += u32::from(reply.status == 200);
    }
    let found = http.get("/scheduler/v1/jobs?account=bob&limit=1").await;
    assert_eq!(found.json()["total"], kept, "{}", found.text);
    let reply = http.get(&format!("/scheduler/v1/jobs/{new}")).await;
    assert_eq!(reply.status, 404, "{}", reply.text);
    let queues = http.get("/scheduler/v1/queues").await.json();
    let queues = queues.as_array().expect("queues");
    let queue = queues.iter().find(|queue| queue["name"] == "alice");
    assert_eq!(queue.expect("the queue")["weight"], 30);

    // The host is told which jobs are no longer its own. A job that has run since before goes on, and the others run
    // again, each once.
    let told: BTreeSet<String> = testbox.heartbeat().await.into_iter().collect();
    assert_eq!(told, BTreeSet::from([waiting.clone(), new.clone()]));
    testbox.drop_job(&waiting);
    testbox.drop_job(&new);
    testbox.finish_running(&still).await;
    assert_eq!(http.field(&goes_on, "job_health").await, "success");
    let mut again = BTreeSet::new();
    eventually("both run again", async || {
        for grant in testbox.ask(1).await {
            testbox.finish(&grant).await;
            assert!(again.insert(grant.job_id), "twice");
        }
        (again.len() == 2).then_some(())
    })
    .await;
    assert_eq!(again, BTreeSet::from([run, waiting]));
    assert_eq!(testbox.ask(0).await, []);
}
