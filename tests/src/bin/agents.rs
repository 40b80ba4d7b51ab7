//! Measures the cost of agents that each run a job, for one replica and its store.
//!
//! `cargo run -p fairlead-tests --release --bin agents -- 10000`; build the workspace's binaries in release before.
//! `ES_URL` names an Elasticsearch.
//!
//! Each host asks once and gets its own job, which runs during the whole measurement. Then each host sends heartbeats
//! as often as it was told, spread evenly, for several leases. No lease may be lost. It prints a table, and takes long,
//! so it is no test.

use std::time::{Duration, Instant};

use fairlead_tests::{Http, Lab, Metrics, Scheduler, Testbox, clock, cpu, jobs, settings};
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// Agents if no number is given: enough to see that it works.
const FEW: usize = 100;
/// How long heartbeats are sent, leases.
const LEASES: u64 = 4;
/// Jobs of one request, and hosts that ask at one time.
const ABREAST: usize = 500;
const MEMORY_MB: u32 = 4 << 10;
/// How often one heartbeat is sent at most.
const TRIES: usize = 3;

fn host(n: usize) -> String {
    format!("agent{n}")
}

/// What only this host can run.
fn job_of(n: usize) -> Value {
    let account = format!("user{}", n % 100);
    let more = json!({"target_machines": [host(n)], "need_memory": "1g", "runtime": "10h"});
    jobs::with(jobs::dc(&account), &more)
}

/// All hosts, each with its job running.
async fn running(http: &Http, count: usize) -> Vec<Testbox> {
    for first in (0..count).step_by(ABREAST) {
        let all: Vec<Value> = (first..count.min(first + ABREAST)).map(job_of).collect();
        http.submit(&json!(all)).await;
    }
    let (mut asking, mut boxes) = (JoinSet::new(), Vec::new());
    for n in 0..count {
        let mut testbox = Testbox::dc(http, &host(n), MEMORY_MB);
        asking.spawn(async move {
            let grants = testbox.ask(60).await;
            assert_eq!(grants.len(), 1, "{} got {grants:?}", testbox.host);
            for grant in &grants {
                let reply = testbox.report(grant, "job_stage=running").await;
                assert_eq!(reply.status, 200, "{}", reply.text);
            }
            testbox
        });
        if asking.len() == ABREAST {
            boxes.extend(asking.join_next().await);
        }
    }
    boxes.extend(asking.join_all().await.into_iter().map(Ok));
    let boxes: Result<Vec<_>, _> = boxes.into_iter().collect();
    boxes.unwrap_or_else(|error| panic!("a host: {error}"))
}

/// What the replica says to a heartbeat. One that meets a connection which the replica just closed because nothing went
/// over it for long is sent again, as an agent does.
async fn answered(testbox: &Testbox) -> Value {
    let mut error = String::new();
    for _ in 0..TRIES {
        match testbox.try_heartbeat().await {
            Ok(reply) if reply.status == 200 => return reply.json(),
            Ok(reply) => error = reply.text,
            Err(failure) => error = failure,
        }
    }
    panic!("{}: {error}", testbox.host)
}

/// One host's heartbeats until `end`, the first after `first`. How long each took.
async fn beat(testbox: Testbox, first: Duration, every: Duration, end: Instant) -> Vec<Duration> {
    let mut beats = tokio::time::interval_at((clock::now() + first).into(), every);
    let mut took = Vec::new();
    loop {
        let begin = beats.tick().await.into_std();
        if begin >= end {
            return took;
        }
        let begin = begin.max(clock::now());
        let answer = answered(&testbox).await;
        let stopped = answer["stop"].as_array().is_some_and(|all| !all.is_empty());
        assert!(!stopped, "{} lost it: {answer}", testbox.host);
        took.push(clock::now() - begin);
    }
}

/// Documents that the store wrote so far, and requests that it took for them.
async fn written(elasticsearch: &Http, prefix: &str) -> (f64, f64) {
    let path = format!("/{prefix}*/_stats/indexing,bulk");
    let stats = elasticsearch.get(&path).await.json();
    let all = &stats["_all"]["primaries"];
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    (
        number(&all["indexing"]["index_total"]),
        number(&all["bulk"]["total_operations"]),
    )
}

fn ms(took: &[Duration], permille: usize) -> u128 {
    let at = (took.len() * permille / 1_000).min(took.len().saturating_sub(1));
    took.get(at).map_or(0, Duration::as_millis)
}

/// A number that a count of things fits.
fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "the table is what this program is for")]
async fn main() {
    let asked = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let count: usize = asked.unwrap_or(FEW);
    let lab = Lab::new();
    let replica = lab.scheduler(&[]).await;
    let http = replica.http();
    let elasticsearch = Http::new(&settings::elasticsearch()[0]);
    let boxes = running(&http, count).await;
    println!("{count} agents run a job each");
    let told = boxes[0].try_heartbeat().await;
    let told = told.unwrap_or_else(|error| panic!("{error}")).json();
    let told_ms = |name: &str| {
        let ms = told[name].as_u64();
        Duration::from_millis(ms.unwrap_or_else(|| panic!("no {name} in {told}")))
    };
    let (lease, every) = (told_ms("lease_ms"), told_ms("heartbeat_ms"));
    let spent = async || {
        let stored = cpu::of_elasticsearch(&elasticsearch).await;
        (Scheduler::cpu(&replica), stored)
    };
    let before = (
        written(&elasticsearch, lab.prefix()).await,
        spent().await,
        clock::now(),
    );
    let end = before.2 + lease * u32::try_from(LEASES).unwrap_or(1);
    let mut beating = JoinSet::new();
    for (n, testbox) in boxes.into_iter().enumerate() {
        let first = every.mul_f64(number(n) / number(count));
        beating.spawn(beat(testbox, first, every, end));
    }
    let mut took: Vec<Duration> = beating.join_all().await.into_iter().flatten().collect();
    took.sort_unstable();
    let seconds = (clock::now() - before.2).as_secs_f64();
    let after = (written(&elasticsearch, lab.prefix()).await, spent().await);
    let metrics = Metrics::of(&http).await;
    let lost = metrics.get("fairlead_jobs_returned_total{why=\"lost\"}");
    let percent = |before: Duration, after: Duration| {
        after.saturating_sub(before).as_secs_f64() / seconds * 100.0
    };
    let (lease_s, every_s) = (lease.as_secs(), every.as_secs());
    println!("| lease {lease_s} s, a heartbeat each {every_s} s, for {seconds:.0} s | |");
    println!("|---|---|");
    println!(
        "| heartbeats a second | {:.0} |",
        number(took.len()) / seconds
    );
    println!(
        "| a heartbeat's answer, ms: p50, p99, longest | {}, {}, {} |",
        ms(&took, 500),
        ms(&took, 990),
        ms(&took, 1_000)
    );
    let ((docs, bulks), (docs_after, bulks_after)) = (before.0, after.0);
    println!(
        "| documents written a second | {:.0} |",
        (docs_after - docs) / seconds
    );
    println!(
        "| bulk requests a second | {:.0} |",
        (bulks_after - bulks) / seconds
    );
    println!(
        "| the replica, percent of a core | {:.0} |",
        percent(before.1.0, after.1.0)
    );
    println!(
        "| Elasticsearch, percent of a core | {:.0} |",
        percent(before.1.1, after.1.1)
    );
    println!("| leases lost | {lost} |");
    assert!(
        lost == 0.0,
        "a lease was lost though every heartbeat was answered"
    );
}
