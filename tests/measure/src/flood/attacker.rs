//! The attacker of `flood`: a stranger or the account mallory, who sends what is dear to a scheduler.
//!
//! Each task waits for an answer before it goes on, and all counts are bounded.

use std::time::Duration;

use clap::ValueEnum;
use fairlead_attack::Unread;
use fairlead_tests::{Http, content::Input, jobs};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, net::TcpStream, task::JoinSet};

/// Maximum number of jobs in one flood of names. Each has its own queue and machine.
pub(super) const NAMES_MAX: usize = 100_000;
/// Number of names in one submit.
const NAMES_A_SUBMIT: usize = 200;
/// Time between two submits of names.
const NAMES_EVERY: Duration = Duration::from_millis(20);
/// Number of machines that one job names. The next constant is the maximum number of such jobs.
const MACHINES_A_JOB: usize = 256;
const MACHINES_JOBS_MAX: usize = 5_200;
/// Number of concurrent requests of one kind.
const ABREAST: usize = 8;
/// Number of concurrent reports with wrong tokens.
const REPORTS: usize = 16;
/// Number of connections that send nothing, or half a request.
const CONNECTIONS: usize = 400;
/// Number of half-sent logins of strangers. The next constant is the number of half-sent submits of mallory, followed
/// by their lengths in bytes.
const LOGINS: usize = 256;
const SUBMITS: usize = 16;
const LOGIN_BYTES: usize = 1 << 20;
const SUBMIT_BYTES: usize = 16 << 20;
/// Number of HTTP/2 connections that read nothing. The next constant is the number of those that wait for the live
/// stream.
const UNREAD: usize = 10;
const WAITING: usize = 101;
/// Number of streams on such a connection.
const STREAMS: usize = 200;
/// Lifetime of such connections.
const UNREAD_EVERY: Duration = Duration::from_secs(5);
const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const SUBMIT: &str = "/scheduler/v1/jobs/submit";

/// Kind of attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Attack {
    /// Jobs that each have their own name
    Names,
    /// Bodies that are small to send and dear to read
    Bodies,
    /// Connections that send nothing, or half a request
    Connections,
    /// Half-sent logins of strangers
    Logins,
    /// Half-sent submits of one account
    Submits,
    /// Answers to strangers that nobody reads
    Strangers,
    /// Files of one account that nobody reads
    Reads,
    /// Waiting places of one account
    Places,
    /// Reports with a wrong token
    Reports,
    /// Jobs that each name many invented machines
    Machines,
    /// Previews of large requests
    Previews,
    /// Everything at once
    All,
}

impl Attack {
    pub(super) fn name(self) -> String {
        let name = self.to_possible_value();
        name.map_or_else(String::new, |name| name.get_name().to_owned())
    }
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

/// Submits batches of jobs that no host runs, one batch for each tick.
async fn submits(mallory: Http, batches: impl Iterator<Item = Vec<Value>> + Send) {
    let mut ticks = tokio::time::interval(NAMES_EVERY);
    for batch in batches {
        ticks.tick().await;
        let more = |own: Value| jobs::with(jobs::dc("mallory"), &own);
        let body = Value::Array(batch.into_iter().map(more).collect());
        let body = body.to_string().into_bytes();
        let _ = mallory.try_send(Method::POST, SUBMIT, JSON, body).await;
    }
}

/// Returns batches of jobs that each have their own names, beginning with this number.
fn names(first: usize) -> impl Iterator<Item = Vec<Value>> + Send {
    let named = |n: usize| json!({"queue": format!("q{n}"), "target_machines": [format!("m{n}")]});
    let batches = (first..first + NAMES_MAX).step_by(NAMES_A_SUBMIT);
    batches.map(move |from| (from..from + NAMES_A_SUBMIT).map(named).collect())
}

/// Returns batches of jobs that each name many invented machines.
fn machines() -> impl Iterator<Item = Vec<Value>> + Send {
    let of = |n: usize| (0..MACHINES_A_JOB).map(move |m| format!("machine-{n}-{m}"));
    let jobs = (0..MACHINES_JOBS_MAX).step_by(ABREAST);
    jobs.map(move |from| {
        let each = from..from + ABREAST;
        each.map(|n| json!({"target_machines": of(n).collect::<Vec<_>>()}))
            .collect()
    })
}

/// Sends the same request repeatedly.
async fn repeats(client: Http, path: String, content_type: &'static str, body: Vec<u8>) {
    loop {
        let sent = client.try_send(Method::POST, &path, content_type, body.clone());
        if sent.await.is_err() {
            tokio::task::yield_now().await;
        }
    }
}

/// Returns a body that is small to send and expensive to read.
fn dear_body() -> Vec<u8> {
    let list = (0..13_000).map(|n| n.to_string()).collect::<Vec<_>>();
    format!("suite: x\nscript: 'true'\nn: [{}]\n", list.join(",")).into_bytes()
}

/// Returns a preview that names many jobs that do not exist.
fn preview() -> Vec<u8> {
    let name = "x".repeat(90);
    let names: Vec<String> = (0..9_900).map(|n| format!("{name}{n:06}")).collect();
    json!({"action": "cancel", "jobs": names})
        .to_string()
        .into_bytes()
}

/// Holds connections that send nothing or half a request, and reopens them when they are closed.
async fn connection(address: String, says: Vec<u8>) {
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
                let _ = stream.write_all(&says).await;
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

/// Returns a request without its last byte.
fn half(path: &str, more: &str, length: usize, sent: usize) -> Vec<u8> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{more}Content-Length: {length}\r\n\r\n{{"
    );
    let mut bytes = head.into_bytes();
    bytes.resize(bytes.len() + sent.saturating_sub(2), b' ');
    bytes
}

fn half_login() -> Vec<u8> {
    let origin = "Origin: http://127.0.0.1\r\n";
    half("/scheduler/v1/login", origin, LOGIN_BYTES, LOGIN_BYTES)
}

/// Requests a path on many streams of each connection, and reads nothing.
async fn unread(address: String, path: String, token: Option<String>, connections: usize) {
    let mut ticks = tokio::time::interval(UNREAD_EVERY);
    loop {
        ticks.tick().await;
        let (address, path, token) = (address.clone(), path.clone(), token.clone());
        let opened = tokio::task::spawn_blocking(move || {
            let open = |_| {
                let mut one = Unread::open(&address);
                (0..STREAMS).for_each(|_| one.get(&path, token.as_deref()));
                one
            };
            (0..connections).map(open).collect::<Vec<_>>()
        });
        let opened = opened.await;
        ticks.tick().await;
        drop(opened);
    }
}

/// Returns the file that `reads` requests.
fn file() -> Input {
    Input::of(&"0".repeat(2 << 20))
}

/// Requests the file, which mallory has put.
async fn reads(mallory: Http, address: String) {
    let input = file();
    let path = format!(
        "/scheduler/v1/content/chunks/{}?id={}",
        input.chunk, input.id
    );
    let token = mallory.token().map(str::to_owned);
    unread(address, path, token, UNREAD).await;
}

impl Attacker {
    pub(crate) async fn attack(&self) {
        let nobody = Http::new(&self.url);
        let mallory = nobody.with_token(&self.token);
        let mut tasks = JoinSet::new();
        let kinds = match self.attack {
            Attack::All => Attack::value_variants(),
            ref one => std::slice::from_ref(one),
        };
        if kinds.contains(&Attack::Reads) {
            file().put(&mallory, "").await;
        }
        for kind in kinds {
            self.begin(*kind, &nobody, &mallory, &mut tasks);
        }
        tasks.join_all().await;
    }

    fn begin(&self, kind: Attack, nobody: &Http, mallory: &Http, tasks: &mut JoinSet<()>) {
        let address = self.url.replace("http://", "");
        let bearer = format!("Authorization: Bearer {}\r\n", self.token);
        let mut hold = |many: usize, says: Vec<u8>| {
            for _ in 0..many {
                tasks.spawn(connection(address.clone(), says.clone()));
            }
        };
        match kind {
            Attack::Connections => {
                hold(CONNECTIONS / 2, Vec::new());
                hold(CONNECTIONS / 2, half(SUBMIT, "", 1_000_000, 2));
            }
            Attack::Logins => hold(LOGINS, half_login()),
            Attack::Submits => {
                hold(SUBMITS, half(SUBMIT, &bearer, SUBMIT_BYTES, SUBMIT_BYTES));
            }
            Attack::Names => {
                tasks.spawn(submits(mallory.clone(), names(self.first)));
            }
            Attack::Machines => {
                tasks.spawn(submits(mallory.clone(), machines()));
            }
            Attack::Bodies => {
                for n in 0..ABREAST {
                    let client = if n % 2 == 0 { mallory } else { nobody };
                    tasks.spawn(repeats(client.clone(), SUBMIT.into(), YAML, dear_body()));
                }
            }
            Attack::Previews => {
                for _ in 0..ABREAST {
                    let path = "/scheduler/v1/previews".to_owned();
                    tasks.spawn(repeats(mallory.clone(), path, JSON, preview()));
                }
            }
            Attack::Reports => {
                let path = "/scheduler/v1/jobs/1/update?job_token=WRONG&has_cases=1";
                let path = format!("{path}&job_data_readiness=uploaded");
                for _ in 0..REPORTS {
                    tasks.spawn(repeats(nobody.clone(), path.clone(), "", Vec::new()));
                }
            }
            Attack::Strangers => {
                tasks.spawn(unread(address, "/openapi.json".into(), None, UNREAD));
            }
            Attack::Reads => {
                tasks.spawn(reads(mallory.clone(), address));
            }
            Attack::Places => {
                let token = Some(self.token.clone());
                tasks.spawn(unread(address, "/scheduler/v1/live".into(), token, WAITING));
            }
            Attack::All => {}
        }
    }
}
