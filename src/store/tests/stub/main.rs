//! Tests of the Elasticsearch store with a faulty server: each fault has its typed outcome.
//!
//! The stub is a listener that answers each request as the test says. Timeouts are short where a test waits for one;
//! nothing sleeps.

#![expect(clippy::unwrap_used, reason = "tests panic")]
#![expect(dead_code, reason = "only the makers of jobs are used here")]

#[path = "../conformance/mod.rs"]
mod conformance;
mod nodes;
mod opening;
mod reads;
mod writes;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use conformance::{claim, id, state};
use fairlead_store::{
    ElasticConfig, ElasticStore, ItemError, JobStore, Patch, StoreError, Version,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

/// How the stub treats one request.
#[derive(Debug, Clone)]
enum Reply {
    /// Status and body.
    Json(u16, String),
    /// Reads the request and says nothing, for ever.
    Silence,
    /// Closes in the middle of the answer.
    HalfAnAnswer,
    /// Answers when so many more requests have come.
    After(usize, String),
}

/// What is asked: method, path, body.
type Asked = (String, String, String);
type Rule = Box<dyn Fn(&Asked) -> Option<Reply> + Send + Sync>;
/// What was asked, and how often anything was.
type Log = (Mutex<Vec<Asked>>, watch::Sender<usize>);

/// A server on loopback. Requests that no rule wants get what an empty, healthy cluster says.
struct Stub {
    url: String,
    asked: Arc<Log>,
    rule: Arc<Mutex<Rule>>,
    tasks: JoinSet<()>,
}

impl Stub {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked: Arc<Log> = Arc::default();
        let rule: Arc<Mutex<Rule>> = Arc::new(Mutex::new(Box::new(|_| None)));
        let mut tasks = JoinSet::new();
        let (seen, rules) = (Arc::clone(&asked), Arc::clone(&rule));
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, Arc::clone(&seen), Arc::clone(&rules)));
            }
        });
        Self {
            url,
            asked,
            rule,
            tasks,
        }
    }

    fn answer(&self, rule: impl Fn(&Asked) -> Option<Reply> + Send + Sync + 'static) {
        *self.rule.lock().unwrap() = Box::new(rule);
        self.asked.0.lock().unwrap().clear();
    }

    fn bulks(&self) -> Vec<String> {
        let asked = self.asked.0.lock().unwrap();
        let bulks = asked
            .iter()
            .filter(|(_, path, _)| path.starts_with("/_bulk"));
        bulks.map(|(_, _, body)| body.clone()).collect()
    }

    /// Without those that only ask for a sign of life.
    fn requests(&self) -> usize {
        let asked = self.asked.0.lock().unwrap();
        asked.iter().filter(|(method, ..)| method != "HEAD").count()
    }
}

async fn serve(mut stream: TcpStream, asked: Arc<Log>, rule: Arc<Mutex<Rule>>) {
    let mut buffer = Vec::new();
    while let Some(request) = read_request(&mut stream, &mut buffer).await {
        let reply = rule.lock().unwrap()(&request).unwrap_or_else(|| healthy(&request));
        let has_body = request.0 != "HEAD";
        asked.0.lock().unwrap().push(request);
        asked.1.send_modify(|requests| *requests += 1);
        let (status, body) = match reply {
            Reply::Json(status, body) => (status, body),
            Reply::After(more, body) => {
                let mut requests = asked.1.subscribe();
                let enough = *requests.borrow() + more;
                requests.wait_for(|n| *n >= enough).await.unwrap();
                (200, body)
            }
            Reply::Silence => {
                std::future::pending::<()>().await;
                return;
            }
            Reply::HalfAnAnswer => {
                let half = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 900\r\n\r\n{";
                stream.write_all(half.as_bytes()).await.unwrap();
                return;
            }
        };
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let body = if has_body { body.as_str() } else { "" };
        if stream.write_all((head + body).as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Asked> {
    loop {
        if let Some(head) = buffer.windows(4).position(|w| w == b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&buffer[..head]).into_owned();
            let is_plain = |line: &str| line.eq_ignore_ascii_case("accept-encoding: identity");
            assert!(
                text.lines().any(is_plain),
                "asks for a packed answer: {text}"
            );
            let length = text
                .lines()
                .filter_map(|line| line.split_once(": "))
                .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
                .map_or(0, |(_, value)| value.parse().unwrap());
            if buffer.len() >= head + 4 + length {
                let rest = buffer.split_off(head + 4 + length);
                let body = String::from_utf8_lossy(&buffer[head + 4..]).into_owned();
                *buffer = rest;
                let mut words = text.split(' ').map(str::to_owned);
                return Some((words.next()?, words.next()?, body));
            }
        }
        let mut chunk = [0; 8_192];
        match stream.read(&mut chunk).await {
            Ok(0) | Err(_) => return None,
            Ok(n) => buffer.extend_from_slice(&chunk[..n]),
        }
    }
}

fn healthy((method, path, body): &Asked) -> Reply {
    let text = if path.starts_with("/_nodes") {
        r#"{"nodes":{"a":{"version":"9.2.0"}}}"#.to_owned()
    } else if path.starts_with("/_index_template") && method == "GET" {
        return Reply::Json(404, error("resource_not_found_exception"));
    } else if path.starts_with("/_bulk") {
        return Reply::Json(200, bulk_reply(body, |_, n| taken(n)));
    } else {
        "{}".to_owned()
    };
    Reply::Json(200, text)
}

fn error(kind: &str) -> String {
    format!(r#"{{"error":{{"type":"{kind}","reason":"because"}},"status":400}}"#)
}

fn taken(n: usize) -> String {
    format!(r#"{{"create":{{"status":201,"_seq_no":{n},"_primary_term":1}}}}"#)
}

fn item(status: u16, kind: &str) -> String {
    format!(r#"{{"create":{{"status":{status},"error":{{"type":"{kind}","reason":"because"}}}}}}"#)
}

/// An answer to each action of a bulk; documents are the lines that begin otherwise.
fn bulk_reply(body: &str, of: impl Fn(&str, usize) -> String) -> String {
    let is_action = |line: &&str| {
        ["{\"create\"", "{\"update\"", "{\"index\"", "{\"delete\""]
            .iter()
            .any(|action| line.starts_with(action))
    };
    let items: Vec<String> = body
        .lines()
        .filter(is_action)
        .enumerate()
        .map(|(n, line)| of(line, n))
        .collect();
    format!(r#"{{"errors":true,"items":[{}]}}"#, items.join(","))
}

fn config(urls: Vec<String>) -> ElasticConfig {
    ElasticConfig {
        urls,
        request_timeout: Duration::from_secs(1),
        ..ElasticConfig::default()
    }
}

async fn opened(stub: &Stub) -> ElasticStore {
    let config = ElasticConfig {
        request_timeout: Duration::from_secs(20),
        ..config(vec![stub.url.clone()])
    };
    ElasticStore::open(config).await.unwrap()
}

fn patch(n: u64) -> Patch {
    let expect = Version {
        primary_term: 1,
        seq_no: 0,
    };
    Patch {
        id: id(n),
        expect,
        set: claim(&state(n), "t"),
    }
}

async fn patched(store: &ElasticStore) -> Result<Version, ItemError> {
    store.patch(vec![patch(1)]).await.remove(0)
}

/// For requests of bulks.
fn on_bulk(reply: Reply) -> impl Fn(&Asked) -> Option<Reply> {
    move |asked| asked.1.starts_with("/_bulk").then(|| reply.clone())
}

async fn refusal(config: ElasticConfig) -> String {
    match ElasticStore::open(config).await {
        Err(error @ StoreError::Unusable { .. }) => error.to_string(),
        other => panic!("expected a refusal, got {other:?}"),
    }
}

/// An address on which nobody listens.
async fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}
