//! Measures what a victim notices of an attack: the time from its submit to its job's grant, idle and while an attacker
//! floods names, bodies and connections. `cargo run -p fairlead-attack --release --bin flood` (build the workspace's
//! binaries in release before; with `elasticsearch` as an argument it uses the Elasticsearch of `ES_URL`).
//!
//! Prints a table with the ratio of the p99 to the idle one of the same round. The attacker is a process of its own that
//! yields to all others, as one on another machine takes no processor time of the lab. Each of its tasks waits for an
//! answer before it goes on, and all counts are bounded.

#![expect(clippy::expect_used, reason = "a measurement fails by panicking")]

use std::{
    process::{Child, Command},
    time::Duration,
};

use fairlead_tests::{Guarded, Http, Metrics, Store, Testbox, clock, jobs, reaper, until};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, net::TcpStream, task::JoinSet};

/// The victim's jobs in each phase.
const JOBS: usize = 200;
/// Idle and attacked, by turns.
const ROUNDS: usize = 3;
/// Jobs of one flood of names at most, each with a queue and a machine of its own.
const NAMES_MAX: usize = 100_000;
/// Names in one submit.
const NAMES_A_SUBMIT: usize = 200;
/// Time between two submits of names.
const NAMES_EVERY: Duration = Duration::from_millis(20);
/// How much the attacker yields to others; 19 is the most.
const NICE: &str = "19";
/// Requests with large bodies at one time.
const BODIES: usize = 8;
/// Connections that say nothing, or half a request.
const CONNECTIONS: usize = 400;
const SUBMIT: &str = "/scheduler/v1/jobs/submit";

/// A lab that checks tokens.
struct Target {
    url: String,
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

impl Attack {
    const EACH: [Self; 4] = [Self::Names, Self::Bodies, Self::Connections, Self::All];

    fn name(self) -> &'static str {
        match self {
            Self::Names => "names",
            Self::Bodies => "bodies",
            Self::Connections => "connections",
            Self::All => "all",
        }
    }
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

/// Submits jobs that no host runs, each under names of its own from this number on.
async fn names(mallory: Http, first: usize) {
    let mut ticks = tokio::time::interval(NAMES_EVERY);
    for from in (first..first + NAMES_MAX).step_by(NAMES_A_SUBMIT) {
        ticks.tick().await;
        let batch = (from..from + NAMES_A_SUBMIT).map(|n| {
            let own = json!({"queue": format!("q{n}"), "target_machines": [format!("m{n}")]});
            jobs::with(jobs::dc("mallory"), &own)
        });
        let batch = Value::Array(batch.collect());
        let body = batch.to_string().into_bytes();
        let _ = mallory
            .try_send(Method::POST, SUBMIT, "application/json", body)
            .await;
    }
}

/// Sends bodies that are small to send and dear to read, with a token and without.
async fn bodies(client: Http) {
    let list = (0..13_000).map(|n| n.to_string()).collect::<Vec<_>>();
    let yaml = format!("suite: x\nscript: 'true'\nn: [{}]\n", list.join(","));
    loop {
        let sent = client.try_send(
            Method::POST,
            SUBMIT,
            "application/yaml",
            yaml.clone().into(),
        );
        let _ = sent.await;
    }
}

/// Holds connections that send nothing, or a head without its body, and opens them again when they are closed.
async fn connection(address: String, says: &'static str) {
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    let mut stream = None;
    loop {
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

/// The attacker's process: goes on until it is killed.
async fn attack(attack: Attack, url: &str, token: &str, first: usize) {
    let nobody = Http::new(url);
    let mallory = nobody.with_token(token);
    let mut tasks = JoinSet::new();
    let is = |one: Attack| attack == one || attack == Attack::All;
    if is(Attack::Names) {
        tasks.spawn(names(mallory.clone(), first));
    }
    if is(Attack::Bodies) {
        for n in 0..BODIES {
            let client = if n % 2 == 0 { &mallory } else { &nobody };
            tasks.spawn(bodies(client.clone()));
        }
    }
    if is(Attack::Connections) {
        let address = url.replace("http://", "");
        for n in 0..CONNECTIONS {
            let says = if n % 2 == 0 { "" } else { HALF };
            tasks.spawn(connection(address.clone(), says));
        }
    }
    tasks.join_all().await;
}

/// Starts an attacker.
fn begin(attack: Attack, lab: &Target, first: usize) -> Child {
    let own = std::env::current_exe().expect("this program");
    let mut command = Command::new("nice");
    command.args(["-n", NICE]).arg(own);
    command.args(["attack", attack.name(), &lab.url]);
    command.args([lab.mallory.token().unwrap_or_default(), &first.to_string()]);
    command.envs([reaper::variable()]);
    command.spawn().expect("nice, of the coreutils")
}

/// Measures beside each attack, by turns with none.
#[expect(clippy::print_stdout, reason = "the table is what this program is for")]
async fn measure_all(store: Store) {
    println!(
        "| attack | round | idle p50 ms | idle p99 | attacked p50 | attacked p99 | p99 of idle |"
    );
    println!("|---|---|---|---|---|---|---|");
    for attack in Attack::EACH {
        let lab = Target::start(store).await;
        measure(&lab).await;
        for round in 0..ROUNDS {
            let (idle_p50, idle) = measure(&lab).await;
            let mut attacker = begin(attack, &lab, round * NAMES_MAX);
            let (p50, p99) = measure(&lab).await;
            attacker.kill().expect("the attacker ran until now");
            attacker.wait().expect("its end");
            let ratio = p99 / idle;
            println!(
                "| {} | {} | {idle_p50:.1} | {idle:.1} | {p50:.1} | {p99:.1} | {ratio:.2} |",
                attack.name(),
                round + 1
            );
        }
        let submitted = Metrics::of(&lab.alice)
            .await
            .get("fairlead_jobs_submitted_total");
        println!(
            "| {}: jobs submitted in all | {submitted} | | | | | |",
            attack.name()
        );
    }
}

#[tokio::main]
async fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["attack", name, url, token, first] => {
            let of_name = |attack: &Attack| attack.name() == name;
            let kind = Attack::EACH.into_iter().find(of_name).expect("an attack");
            attack(kind, url, token, first.parse().expect("a number")).await;
        }
        ["elasticsearch"] => measure_all(Store::Elasticsearch).await,
        _ => measure_all(Store::Embedded).await,
    }
}
