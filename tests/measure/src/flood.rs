//! The effect of an attack on a victim: the time from its submit to its job's grant, idle and while an attacker floods
//! names, bodies and connections.
//!
//! The attacker is a process of its own that yields to all others, as one on another machine takes no processor time of
//! the lab. Each of its tasks waits for an answer before it goes on, and all counts are bounded.

use std::{
    process::{Child, Command},
    time::Duration,
};

use clap::ValueEnum;
use fairlead_tests::{Guarded, Http, Metrics, Store, Testbox, clock, jobs, reaper};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, net::TcpStream, task::JoinSet};

use crate::{
    lab::waiters,
    table::{head, permille, row},
};

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

/// Delay of a victim's jobs while an attacker floods names, bodies and connections
#[derive(Debug, clap::Args)]
pub(crate) struct Flood {
    /// Use the Elasticsearch of `ES_URL` instead of the embedded store
    #[arg(long)]
    elasticsearch: bool,
    /// Jobs of the victim in each phase
    #[arg(long, value_name = "N", default_value_t = 200)]
    jobs: usize,
    /// Rounds, each idle and then attacked
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,
}

/// The process that `flood` starts as the attacker: it goes on until it is killed
#[derive(Debug, clap::Args)]
pub(crate) struct Attacker {
    /// The kind of flood
    #[arg(value_enum)]
    attack: Attack,
    /// URL of the victim's scheduler
    url: String,
    /// Token of the attacker's account
    token: String,
    /// Number of its first name
    first: usize,
}

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Attack {
    /// Jobs that each have their own name
    Names,
    /// Bodies that are small to send and dear to read
    Bodies,
    /// Connections that send nothing, or half a request
    Connections,
    /// Everything at once
    All,
}

impl Attack {
    fn name(self) -> String {
        let name = self.to_possible_value();
        name.map_or_else(String::new, |name| name.get_name().to_owned())
    }
}

/// One job from submit to grant.
async fn one(alice: &Http, host: &mut Testbox, job: &Value) -> Duration {
    host.next_request(60);
    let submit = async {
        waiters(std::slice::from_ref(alice), 1.0, 60).await;
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

/// Each job's time.
async fn measure(lab: &Target, count: usize) -> Vec<Duration> {
    let (alice, boxes) = (&lab.alice, &lab.boxes);
    let mut host = Testbox::dc(boxes, "host-1", 2 << 10);
    let job = jobs::dc("alice");
    let mut times = Vec::new();
    for _ in 0..count {
        times.push(one(alice, &mut host, &job).await);
    }
    times
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

impl Attacker {
    pub(crate) async fn attack(&self) {
        let nobody = Http::new(&self.url);
        let mallory = nobody.with_token(&self.token);
        let mut tasks = JoinSet::new();
        let is = |one: Attack| self.attack == one || self.attack == Attack::All;
        if is(Attack::Names) {
            tasks.spawn(names(mallory.clone(), self.first));
        }
        if is(Attack::Bodies) {
            for n in 0..BODIES {
                let client = if n % 2 == 0 { &mallory } else { &nobody };
                tasks.spawn(bodies(client.clone()));
            }
        }
        if is(Attack::Connections) {
            let address = self.url.replace("http://", "");
            for n in 0..CONNECTIONS {
                let says = if n % 2 == 0 { "" } else { HALF };
                tasks.spawn(connection(address.clone(), says));
            }
        }
        tasks.join_all().await;
    }
}

/// Starts an attacker.
fn begin(attack: Attack, lab: &Target, first: usize) -> Child {
    let own = std::env::current_exe().expect("this program");
    let mut command = Command::new("nice");
    command.args(["-n", NICE]).arg(own);
    command.args(["flood-attacker", &attack.name(), &lab.url]);
    command.args([lab.mallory.token().unwrap_or_default(), &first.to_string()]);
    command.envs([reaper::variable()]);
    command.spawn().expect("nice, of the coreutils")
}

impl Flood {
    /// Measures beside each attack, by turns with none.
    pub(crate) async fn measure(&self) {
        let store = if self.elasticsearch {
            Store::Elasticsearch
        } else {
            Store::Embedded
        };
        head(&[
            "attack",
            "round",
            "idle p50 ms",
            "idle p99",
            "attacked p50",
            "attacked p99",
            "p99 of idle",
        ]);
        for &attack in Attack::value_variants() {
            let lab = Target::start(store).await;
            measure(&lab, self.jobs).await;
            for round in 0..self.rounds {
                let idle = measure(&lab, self.jobs).await;
                let mut attacker = begin(attack, &lab, round * NAMES_MAX);
                let attacked = measure(&lab, self.jobs).await;
                attacker.kill().expect("the attacker ran until now");
                attacker.wait().expect("its end");
                print(&attack.name(), round + 1, &idle, &attacked);
            }
            let metrics = Metrics::of(&lab.alice).await;
            let submitted = metrics.get("fairlead_jobs_submitted_total");
            let what = format!("{}: jobs submitted in all", attack.name());
            row(&[&what, &submitted, &"", &"", &"", &"", &""]);
        }
    }
}

fn print(attack: &str, round: usize, idle: &[Duration], attacked: &[Duration]) {
    let ms = |times: &[Duration], nth| permille(times, nth).as_secs_f64() * 1_000.0;
    let (before, during) = (ms(idle, 990), ms(attacked, 990));
    row(&[
        &attack,
        &round,
        &format!("{:.1}", ms(idle, 500)),
        &format!("{before:.1}"),
        &format!("{:.1}", ms(attacked, 500)),
        &format!("{during:.1}"),
        &format!("{:.2}", during / before),
    ]);
}
