//! Measures the cost of three replicas and Elasticsearch while nothing is dispatched.
//!
//! `cargo run -p fairlead-tests --release --bin idle [jobs]`; build the workspace's binaries in release before.
//! `ES_URL` names an Elasticsearch of its own. Default: 1,000,000 waiting jobs of 300 accounts, half of them bound to
//! one of 500 machines.
//!
//! Processor time is read before and after windows of a minute. There are three cases:
//!
//! - nothing else happens;
//! - a job is submitted, dispatched and ended each second;
//! - 1,000 hosts wait for jobs that none of them can run.
//!
//! Each case first runs for some minutes, because Elasticsearch compiles new queries at first, which is no idle cost.
//! It prints a table, and takes long, so it is no test.

use std::{cell::Cell, time::Duration};

use fairlead_tests::{Http, Lab, Metrics, Scheduler, Testbox, clock, cpu, jobs, settings, until};
use serde_json::{Value, json};
use tokio::task::JoinSet;

const REPLICAS: usize = 3;
const ACCOUNTS: usize = 300;
const MACHINES: usize = 500;
const HOSTS: usize = 1_000;
const SUBMIT_JOBS: usize = 10_000;
const WINDOW: Duration = Duration::from_mins(1);
/// Windows of the trickle before the one that is measured.
const WARM_UP: u32 = 2;
/// How long a host's request waits, seconds.
const WAIT_S: u32 = 50;

/// The `n`th of the waiting jobs. The machines never ask, and no host has so much memory.
fn waiting(n: usize) -> Value {
    let account = format!("account{}", n % ACCOUNTS);
    if n.is_multiple_of(2) {
        let machine = format!("machine{}", n / 2 % MACHINES);
        jobs::with(jobs::hw(&account), &json!({"target_machines": [machine]}))
    } else {
        jobs::with(jobs::dc(&account), &json!({"need_memory": "100g"}))
    }
}

async fn load(https: &[Http], count: usize) {
    let mut loading = JoinSet::new();
    for (batch, http) in (0..count).step_by(SUBMIT_JOBS).zip(https.iter().cycle()) {
        let end = count.min(batch + SUBMIT_JOBS);
        let (http, jobs) = (http.clone(), (batch..end).map(waiting).collect());
        loading.spawn(async move { http.submit(&jobs).await.len() });
        if loading.len() == https.len() {
            loading.join_next().await;
        }
    }
    loading.join_all().await;
}

/// Lets time pass.
async fn pass(time: Duration) {
    let end = clock::now() + time;
    until("the time is over", time.as_secs() + 5, async || {
        (clock::now() >= end).then_some(())
    })
    .await;
}

/// All processor time so far: each replica's, and Elasticsearch's.
async fn spent(replicas: &[Scheduler], elasticsearch: &Http) -> Vec<Duration> {
    let mut all: Vec<Duration> = replicas.iter().map(Scheduler::cpu).collect();
    all.push(cpu::of_elasticsearch(elasticsearch).await);
    all
}

/// Percent of one core, of each, while `work` is done.
async fn percent(
    replicas: &[Scheduler],
    elasticsearch: &Http,
    work: impl Future<Output = ()>,
) -> Vec<f64> {
    let (before, begin) = (spent(replicas, elasticsearch).await, clock::now());
    work.await;
    let time = (clock::now() - begin).as_secs_f64();
    let after = spent(replicas, elasticsearch).await;
    let used = after.iter().zip(before);
    used.map(|(after, before)| after.saturating_sub(before).as_secs_f64() / time * 100.0)
        .collect()
}

/// Merges and warm-up must not be counted: waits until two looks of ten seconds are alike.
async fn settle(replicas: &[Scheduler], elasticsearch: &Http) {
    let last = Cell::new(f64::MAX);
    until("the store is quiet", 1_200, async || {
        let window = pass(Duration::from_secs(10));
        let now: f64 = percent(replicas, elasticsearch, window).await.iter().sum();
        let before = last.replace(now);
        ((now - before).abs() < 3.0).then_some(())
    })
    .await;
}

/// A job each second that is submitted, dispatched and ended, for a window.
async fn trickle(https: &[Http]) {
    let mut seconds = tokio::time::interval(Duration::from_secs(1));
    for n in 0..usize::try_from(WINDOW.as_secs()).unwrap_or(60) {
        seconds.tick().await;
        let (here, there) = (&https[n % https.len()], &https[(n + 1) % https.len()]);
        let job = jobs::with(
            jobs::hw("trickle"),
            &json!({"target_machines": ["trickle"]}),
        );
        here.submit(&job).await;
        let mut machine = Testbox::hw(there, "trickle");
        for grant in machine.ask(10).await {
            machine.finish(&grant).await;
        }
    }
}

/// Hosts that wait, each with a memory of its own, so that no two ask for the same.
fn idle_hosts(https: &[Http]) -> JoinSet<()> {
    let mut waiting = JoinSet::new();
    for n in 0..HOSTS {
        let memory_mb = 1024 + u32::try_from(n).unwrap_or(0);
        let mut host = Testbox::dc(&https[n % https.len()], &format!("idle{n}"), memory_mb);
        waiting.spawn(async move {
            loop {
                let got = host.ask(WAIT_S).await;
                assert!(got.is_empty(), "{} got {got:?}", host.host);
            }
        });
    }
    waiting
}

async fn all_wait(https: &[Http]) {
    until("all hosts wait", 300, async || {
        let mut waiters = 0.0;
        for http in https {
            waiters += Metrics::of(http).await.get("fairlead_waiters");
        }
        (waiters >= 0.99 * f64::from(u32::try_from(HOSTS).unwrap_or(0))).then_some(())
    })
    .await;
}

#[expect(clippy::print_stdout, reason = "the table is what this program is for")]
fn print(what: &str, percent: &[f64]) {
    let all: f64 = percent.iter().sum();
    let each: Vec<String> = percent.iter().map(|used| format!("{used:.1}")).collect();
    println!("| {what} | {} | {all:.1} |", each.join(" | "));
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "the table is what this program is for")]
async fn main() {
    let count = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let count = count.unwrap_or(1_000_000);
    let lab = Lab::new();
    let replicas = lab.schedulers(REPLICAS, &[]).await;
    let https: Vec<Http> = replicas.iter().map(Scheduler::http).collect();
    let elasticsearch = Http::new(&settings::elasticsearch()[0]);
    let begin = clock::now();
    load(&https, count).await;
    println!(
        "{count} jobs were submitted in {} s",
        (clock::now() - begin).as_secs()
    );
    for _ in 0..WARM_UP {
        trickle(&https).await;
    }
    settle(&replicas, &elasticsearch).await;
    println!("| percent of one core | replica 1 | replica 2 | replica 3 | Elasticsearch | all |");
    println!("|---|---|---|---|---|---|");
    let quiet = percent(&replicas, &elasticsearch, pass(WINDOW)).await;
    print("nothing changes", &quiet);
    let changing = percent(&replicas, &elasticsearch, trickle(&https)).await;
    print("a job a second", &changing);
    let hosts = idle_hosts(&https);
    all_wait(&https).await;
    settle(&replicas, &elasticsearch).await;
    let waiting = percent(&replicas, &elasticsearch, pass(WINDOW)).await;
    print("1,000 hosts wait, nothing changes", &waiting);
    let both = percent(&replicas, &elasticsearch, trickle(&https)).await;
    print("1,000 hosts wait, a job a second", &both);
    drop(hosts);
}
