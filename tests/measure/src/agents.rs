//! The cost of agents that each run a job, for one replica and its store.
//!
//! Each host asks once and gets its own job, which runs during the whole measurement. Then each host sends heartbeats
//! as often as it was told, spread evenly, for several leases. No lease may be lost.

use std::time::{Duration, Instant};

use fairlead_tests::{Http, Metrics, Scheduler, Testbox, clock, cpu, jobs, settings};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    lab::{Replicas, submit_all},
    table::{head, number, permille_ms, row, say},
};

/// Number of jobs of one account.
const ACCOUNTS: usize = 100;
/// Maximum number of hosts that ask at one time.
const ABREAST: usize = 500;
const MEMORY_MB: u32 = 4 << 10;
/// Maximum number of tries of one heartbeat.
const TRIES: usize = 3;

/// Cost of agents that each run a job: heartbeats, processor time, and writes to Elasticsearch
#[derive(Debug, clap::Args)]
pub(crate) struct Agents {
    /// Number of agents
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    agents: u32,
    /// How long heartbeats are sent, leases
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    leases: u32,
}

fn host(n: usize) -> String {
    format!("agent{n}")
}

/// Returns the job that only this host can run.
fn job_of(n: usize) -> Value {
    let account = format!("user{}", n % ACCOUNTS);
    let more = json!({"target_machines": [host(n)], "need_memory": "1g", "runtime": "10h"});
    jobs::with(jobs::dc(&account), &more)
}

/// Returns all hosts, each with its job running.
async fn running(http: &Http, count: usize) -> Vec<Testbox> {
    submit_all(std::slice::from_ref(http), count, job_of).await;
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
            boxes.extend(asking.join_next().await.transpose().expect("a host"));
        }
    }
    boxes.extend(asking.join_all().await);
    boxes
}

/// Returns the replica's answer to a heartbeat. If the replica just closed the idle connection, the heartbeat is sent
/// again, as an agent does.
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

/// Sends one host's heartbeats until `end`, the first after `first`. Returns the duration of each.
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

/// Processor time and written documents, up to a moment.
struct Spent {
    at: Instant,
    replica: Duration,
    elasticsearch: Duration,
    documents: f64,
    bulks: f64,
}

impl Spent {
    async fn so_far(lab: &Replicas) -> Self {
        let elasticsearch = Http::new(&settings::elasticsearch()[0]);
        let path = format!("/{}*/_stats/indexing,bulk", lab.lab.prefix());
        let stats = elasticsearch.get(&path).await.json();
        let all = &stats["_all"]["primaries"];
        let count = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
        Self {
            documents: count(&all["indexing"]["index_total"]),
            bulks: count(&all["bulk"]["total_operations"]),
            replica: lab.schedulers.iter().map(Scheduler::cpu).sum(),
            elasticsearch: cpu::of_elasticsearch(&elasticsearch).await,
            at: clock::now(),
        }
    }
}

impl Agents {
    pub(crate) async fn measure(&self) {
        let count = usize::try_from(self.agents).expect("a number of agents");
        let lab = Replicas::start(1, &[]).await;
        let boxes = running(&lab.https[0], count).await;
        say(&format!("{count} agents run a job each"));
        let told = answered(&boxes[0]).await;
        let told_ms = |name: &str| Duration::from_millis(told[name].as_u64().expect("ms"));
        let (lease, every) = (told_ms("lease_ms"), told_ms("heartbeat_ms"));
        let before = Spent::so_far(&lab).await;
        let end = before.at + lease * self.leases;
        let mut beating = JoinSet::new();
        for (n, testbox) in boxes.into_iter().enumerate() {
            let first = every.mul_f64(number(n) / number(count));
            beating.spawn(beat(testbox, first, every, end));
        }
        let took = beating.join_all().await.concat();
        let after = Spent::so_far(&lab).await;
        print(&took, &before, &after, (lease, every));
        let metrics = Metrics::of(&lab.https[0]).await;
        let lost = metrics.get("fairlead_jobs_returned_total{why=\"lost\"}");
        row(&[&"leases lost", &lost]);
        assert!(
            lost == 0.0,
            "a lease was lost though every heartbeat was answered"
        );
    }
}

fn print(took: &[Duration], before: &Spent, after: &Spent, told: (Duration, Duration)) {
    let seconds = (after.at - before.at).as_secs_f64();
    let percent = |before: Duration, after: Duration| {
        let used = after.saturating_sub(before).as_secs_f64();
        format!("{:.0}", used / seconds * 100.0)
    };
    let each = |count: f64| format!("{:.0}", count / seconds);
    let (lease_s, every_s) = (told.0.as_secs(), told.1.as_secs());
    let what = format!("lease {lease_s} s, a heartbeat each {every_s} s, for {seconds:.0} s");
    let at = |nth| permille_ms(took, nth);
    let answers = format!("{}, {}, {}", at(500), at(990), at(1_000));
    head(&[&what, ""]);
    row(&[&"heartbeats a second", &each(number(took.len()))]);
    row(&[&"a heartbeat's answer, ms: p50, p99, longest", &answers]);
    let documents = each(after.documents - before.documents);
    row(&[&"documents written a second", &documents]);
    let bulks = each(after.bulks - before.bulks);
    row(&[&"bulk requests a second", &bulks]);
    let replica = percent(before.replica, after.replica);
    row(&[&"the replica, percent of a core", &replica]);
    let elasticsearch = percent(before.elasticsearch, after.elasticsearch);
    row(&[&"Elasticsearch, percent of a core", &elasticsearch]);
}
