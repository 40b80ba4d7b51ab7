//! Incidents of Elasticsearch in a site's life, on the tests' own servers: lost nodes, a full disk, too little memory,
//! no server at all. fairlead reports the problem, refuses what it cannot keep, loses nothing, and recovers by itself.

use std::{fs, path::Path};

use fairlead_api::ErrorCode;
use fairlead_tests::{Agent, Http, Reply, Scheduler, Server, Testbox, eventually, jobs};
use reqwest::Method;
use serde_json::json;

const SUBMIT: &str = "/scheduler/v1/jobs/submit";

async fn health(http: &Http) -> Option<Reply> {
    let reply = http.try_send(Method::GET, "/scheduler/v1/health", "", Vec::new());
    reply.await.ok()
}

/// Submits until it is refused for this reason, with 503 and a hint. Accepted jobs fit no host.
async fn refused(http: &Http, reason: &str) {
    let job = jobs::with(jobs::dc("alice"), &json!({"need_memory": "900g"}));
    eventually("submits are refused", async || {
        let reply = http.post(SUBMIT, &job).await;
        let refusal = (reply.status != 200).then(|| reply.refused(503))?;
        // The fate of a submit in progress at the start of the trouble is unknown.
        (refusal.code != ErrorCode::Unknown).then(|| {
            assert_eq!(refusal.code, ErrorCode::Unavailable, "{refusal:?}");
        })
    })
    .await;
    // A request in progress at the start of the trouble first reports that start: a broken connection.
    eventually(&format!("health says {reason}"), async || {
        let told = health(http).await.filter(|reply| reply.status == 503)?;
        told.text.contains(reason).then_some(())
    })
    .await;
}

async fn accepted(http: &Http) -> String {
    eventually("submits are taken again", async || {
        let reply = http.post(SUBMIT, &jobs::dc("alice")).await;
        (reply.status == 200).then(|| reply.json()[0]["job_id"].as_str().map(str::to_owned))?
    })
    .await
}

/// Submits a job that a real agent runs until the file exists.
async fn runs_until(http: &Http, file: &Path) -> String {
    let script = format!("until [ -e {} ]; do sleep 0.1; done", file.display());
    let job = jobs::with(jobs::dc("alice"), &json!({"script": script}));
    let id = http.submit(&job).await.remove(0);
    eventually("it runs", async || {
        (http.field(&id, "job_stage").await == "running").then_some(())
    })
    .await;
    id
}

async fn ended_well(http: &Http, id: &str) {
    eventually("it has ended", async || {
        (http.field(id, "job_stage").await == "finish").then_some(())
    })
    .await;
    assert_eq!(http.field(id, "job_health").await, "success");
    assert_eq!(http.field(id, "attempt").await, "1", "it ran once");
}

/// Ends a running job while the store is in trouble. Its result counts as soon as there is a store again.
async fn endures(
    scheduler: &Scheduler,
    reason: &str,
    begin: impl AsyncFnOnce(),
    end: impl AsyncFnOnce(),
) {
    let http = scheduler.http();
    let file = scheduler.folder().join(format!("go-{}", reason.len()));
    let id = runs_until(&http, &file).await;
    begin().await;
    refused(&http, reason).await;
    fs::write(&file, "").unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    end().await;
    ended_well(&http, &id).await;
    let later = accepted(&http).await;
    ended_well(&http, &later).await;
    let well = health(&http).await.map(|reply| reply.status);
    assert_eq!(well, Some(200));
}

#[tokio::test(flavor = "multi_thread")]
async fn trouble_is_told_and_ends_by_itself() {
    let mut server = Server::start(&[]);
    let scheduler = server.scheduler(&[]).await;
    let _agent = Agent::start(
        &scheduler.url(),
        "host-1",
        &["--kind", "dc", "--memory", "4g"],
    );
    server
        .set(&json!({"cluster.info.update.interval": "10s"}))
        .await;
    let full = |full: bool| {
        let free = full.then_some("100000gb");
        json!({"cluster.routing.allocation.disk": {
            "threshold_enabled": full.then_some(true),
            "watermark": {"low": free, "high": free, "flood_stage": free},
        }})
    };
    endures(
        &scheduler,
        "flood stage",
        async || server.set(&full(true)).await,
        async || server.set(&full(false)).await,
    )
    .await;

    let memory = |limit: Option<&str>| json!({"indices.breaker.total.limit": limit});
    endures(
        &scheduler,
        "circuit_breaking",
        async || server.set(&memory(Some("1mb"))).await,
        async || server.set(&memory(None)).await,
    )
    .await;

    server.kill(1);
    refused(&scheduler.http(), "Connection refused").await;
    server.revive();
    let later = accepted(&scheduler.http()).await;
    ended_well(&scheduler.http(), &later).await;
}

/// Returns the number of the master node.
async fn master(server: &Server, asked: usize) -> usize {
    let name = server.get(asked, "/_cat/master?h=node").await;
    let digits = name
        .trim()
        .trim_start_matches(|c: char| !c.is_ascii_digit());
    digits
        .parse()
        .unwrap_or_else(|_| panic!("which node is {name}?"))
}

async fn all_shards_twice(server: &Server) {
    let path = "/_cluster/health?wait_for_status=green&timeout=60s";
    server.get(1, path).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_node_costs_no_job() {
    let mut server = Server::start(&["--nodes", "3"]);
    let scheduler = server.scheduler(&[]).await;
    let http = scheduler.http();
    let mut ids = http.submit(&jobs::times(20, &jobs::dc("alice"))).await;
    // First the master fails, so that another must be elected; then one of the others.
    for _ in 0..2 {
        all_shards_twice(&server).await;
        let lost = master(&server, 1).await;
        server.kill(lost);
        ids.push(accepted(&http).await);
        server.revive();
    }
    all_shards_twice(&server).await;
    let mut given = Testbox::dc(&http, "host-1", 64_000).run_all(5).await;
    given.sort_unstable();
    ids.sort_unstable();
    assert_eq!(given, ids, "each once");
}
