//! Measures what a victim notices of an attack: the time from its submit to its job's grant, idle and while an attacker
//! floods names, bodies and connections. `cargo run -p fairlead-attack --release --bin flood` (build the workspace's
//! binaries in release before; with `elasticsearch` as an argument it uses the Elasticsearch of `ES_URL`).
//!
//! Prints a table with the ratio of the p99 to the idle one of the same round. The attacker shares the machine with its
//! victim, so it is paced: each of its tasks waits for an answer before it goes on. All counts are bounded.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use fairlead_attack::guarded::Guarded;
use fairlead_tests::{Http, Metrics, Store, Testbox, clock, jobs, until};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, net::TcpStream, task::JoinSet};

/// The victim's jobs in each phase.
const JOBS: usize = 200;
/// Idle and attacked, by turns.
const ROUNDS: usize = 3;
/// Jobs of the flood of names in all, each with a queue and a machine of its own.
const NAMES_MAX: usize = 100_000;
/// Names in one submit.
const NAMES_A_SUBMIT: usize = 200;
/// Requests with large bodies at one time.
const BODIES: usize = 8;
/// Connections that say nothing, or half a request.
const CONNECTIONS: usize = 400;

/// A lab that checks tokens.
struct Target {
    url: String,
    nobody: Http,
    alice: Http,
    mallory: Http,
    boxes: Http,
    _scheduler: Guarded,
}

impl Target {
    async fn start(store: Store) -> Self {
        let guarded = Guarded::start(store, &[]).await;
        Self {
            url: guarded.scheduler.url(),
            nobody: guarded.nobody(),
            alice: guarded.user("alice").await,
            mallory: guarded.user("mallory").await,
            boxes: guarded.testbox("boxes", &["host-*"]).await,
            _scheduler: guarded,
        }
    }
}

/// One way to attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attack {
    Names,
    Bodies,
    Connections,
    All,
}

/// One job from submit to grant.
async fn one(alice: &Http, host: &mut Testbox, job: &Value) -> Duration {
    host.next_request(60);
    let submit = async {
        until("the host waits", 60, async || {
            (Metrics::of(alice).await.get("fairlead_waiters") >= 1.0).then_some(())
        })
        .await;
        let begin = clock::now();
        alice.submit(job).await;
        begin
    };
    let grant = async { (host.ask_again().await, clock::now()) };
    let ((answer, granted), begin) = tokio::join!(grant, submit);
    for grant in &answer.jobs {
        host.finish(grant).await;
    }
    granted.saturating_duration_since(begin)
}

/// p50 and p99, ms.
async fn measure(lab: &Target) -> (f64, f64) {
    let (alice, boxes) = (&lab.alice, &lab.boxes);
    let mut host = Testbox::dc(boxes, "host-1", 2 << 10);
    let job = jobs::dc("alice");
    let mut times = Vec::new();
    for _ in 0..JOBS {
        times.push(one(alice, &mut host, &job).await);
    }
    times.sort_unstable();
    let at = |permille: usize| {
        let at = (times.len() * permille / 1000).min(times.len() - 1);
        times
            .get(at)
            .map_or(0.0, |time| time.as_secs_f64() * 1000.0)
    };
    (at(500), at(990))
}

/// Submits jobs that no host runs, each under names of its own, until it is told to stop.
async fn names(mallory: Http, next: Arc<AtomicUsize>, stop: Arc<AtomicBool>) {
    while !stop.load(Ordering::Relaxed) {
        let from = next.fetch_add(NAMES_A_SUBMIT, Ordering::Relaxed);
        if from >= NAMES_MAX {
            return;
        }
        let batch = (from..from + NAMES_A_SUBMIT).map(|n| {
            let own = json!({"queue": format!("q{n}"), "target_machines": [format!("m{n}")]});
            jobs::with(jobs::dc("mallory"), &own)
        });
        let batch = Value::Array(batch.collect());
        let _ = mallory
            .try_send(
                Method::POST,
                "/scheduler/v1/jobs/submit",
                "application/json",
                batch.to_string().into_bytes(),
            )
            .await;
    }
}

/// Sends bodies that are small to send and dear to read, with a token and without.
async fn bodies(client: Http, stop: Arc<AtomicBool>) {
    let list = (0..13_000).map(|n| n.to_string()).collect::<Vec<_>>();
    let yaml = format!("suite: x\nscript: 'true'\nn: [{}]\n", list.join(","));
    while !stop.load(Ordering::Relaxed) {
        let path = "/scheduler/v1/jobs/submit";
        let sent = client.try_send(Method::POST, path, "application/yaml", yaml.clone().into());
        let _ = sent.await;
    }
}

/// Holds connections that send nothing, or a head without its body, and opens them again when they are closed.
async fn connection(address: String, says: &'static str, stop: Arc<AtomicBool>) {
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    let mut stream = None;
    while !stop.load(Ordering::Relaxed) {
        ticks.tick().await;
        let is_open = match &mut stream {
            Some(stream) => is_open(stream),
            None => false,
        };
        if !is_open {
            stream = TcpStream::connect(&address).await.ok();
            if let Some(stream) = &mut stream {
                let _ = stream.write_all(says.as_bytes()).await;
            }
        }
    }
}

fn is_open(stream: &TcpStream) -> bool {
    let mut byte = [0];
    match stream.try_read(&mut byte) {
        Ok(read) => read > 0,
        Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
    }
}

const HALF: &str = "POST /scheduler/v1/jobs/submit HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 1000000\r\n\r\n{";

fn begin(attack: Attack, lab: &Target, next: &Arc<AtomicUsize>) -> (JoinSet<()>, Arc<AtomicBool>) {
    let stop = Arc::new(AtomicBool::new(false));
    let mut tasks = JoinSet::new();
    let is = |one: Attack| attack == one || attack == Attack::All;
    if is(Attack::Names) {
        tasks.spawn(names(
            lab.mallory.clone(),
            Arc::clone(next),
            Arc::clone(&stop),
        ));
    }
    if is(Attack::Bodies) {
        for n in 0..BODIES {
            let client = if n % 2 == 0 {
                lab.mallory.clone()
            } else {
                lab.nobody.clone()
            };
            tasks.spawn(bodies(client, Arc::clone(&stop)));
        }
    }
    if is(Attack::Connections) {
        let address = lab.url.replace("http://", "");
        for n in 0..CONNECTIONS {
            let says = if n % 2 == 0 { "" } else { HALF };
            tasks.spawn(connection(address.clone(), says, Arc::clone(&stop)));
        }
    }
    (tasks, stop)
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "the table is what this program is for")]
async fn main() {
    let on_elasticsearch = std::env::args().any(|word| word == "elasticsearch");
    let store = if on_elasticsearch {
        Store::Elasticsearch
    } else {
        Store::Embedded
    };
    println!(
        "| attack | round | idle p50 ms | idle p99 | attacked p50 | attacked p99 | p99 of idle |"
    );
    println!("|---|---|---|---|---|---|---|");
    for attack in [
        Attack::Names,
        Attack::Bodies,
        Attack::Connections,
        Attack::All,
    ] {
        let lab = Target::start(store).await;
        let next = Arc::new(AtomicUsize::new(0));
        measure(&lab).await;
        for round in 1..=ROUNDS {
            let (idle_p50, idle) = measure(&lab).await;
            let (mut tasks, stop) = begin(attack, &lab, &next);
            let (p50, p99) = measure(&lab).await;
            stop.store(true, Ordering::Relaxed);
            while tasks.join_next().await.is_some() {}
            let ratio = p99 / idle;
            println!(
                "| {attack:?} | {round} | {idle_p50:.1} | {idle:.1} | {p50:.1} | {p99:.1} | {ratio:.2} |"
            );
        }
        println!(
            "| {attack:?}: names submitted | {} | | | | | |",
            next.load(Ordering::Relaxed)
        );
    }
}
