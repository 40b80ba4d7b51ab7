//! The Elasticsearch store against a server that goes wrong on purpose: each way has its typed outcome.
//!
//! The stub is a listener that answers each request as the test says. Timeouts are short where a test
//! waits for one; nothing sleeps.

#![expect(clippy::unwrap_used, reason = "tests panic")]
#![expect(dead_code, reason = "only the makers of jobs are used here")]

mod conformance;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use conformance::{claim, id, job, state};
use fairlead_store::{
    ElasticConfig, ElasticStore, ItemError, JobStore, Patch, StoreError, Version,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
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
}

/// What is asked: method, path, body.
type Asked = (String, String, String);
type Rule = Box<dyn Fn(&Asked) -> Option<Reply> + Send + Sync>;

/// A server on loopback. Requests that no rule wants get what an empty, healthy cluster says.
struct Stub {
    url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    rule: Arc<Mutex<Rule>>,
    tasks: JoinSet<()>,
}

impl Stub {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
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
        self.asked.lock().unwrap().clear();
    }

    fn bulks(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        let bulks = asked
            .iter()
            .filter(|(_, path, _)| path.starts_with("/_bulk"));
        bulks.map(|(_, _, body)| body.clone()).collect()
    }

    fn requests(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

async fn serve(mut stream: TcpStream, asked: Arc<Mutex<Vec<Asked>>>, rule: Arc<Mutex<Rule>>) {
    let mut buffer = Vec::new();
    while let Some(request) = read_request(&mut stream, &mut buffer).await {
        let reply = rule.lock().unwrap()(&request).unwrap_or_else(|| healthy(&request));
        asked.lock().unwrap().push(request);
        let (status, body) = match reply {
            Reply::Json(status, body) => (status, body),
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
        if stream.write_all((head + &body).as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Asked> {
    loop {
        if let Some(head) = buffer.windows(4).position(|w| w == b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&buffer[..head]).into_owned();
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
    format!(r#"{{"x":{{"status":201,"_seq_no":{n},"_primary_term":1}}}}"#)
}

fn item(status: u16, kind: &str) -> String {
    format!(r#"{{"x":{{"status":{status},"error":{{"type":"{kind}","reason":"because"}}}}}}"#)
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

#[tokio::test]
async fn unusable_servers_are_refused_in_words() {
    let stub = Stub::start().await;
    let nodes = |text: &'static str, status: u16| {
        move |asked: &Asked| {
            asked
                .1
                .starts_with("/_nodes")
                .then(|| Reply::Json(status, text.to_owned()))
        }
    };
    stub.answer(nodes(
        r#"{"nodes":{"a":{"version":"9.0.0"},"b":{"version":"7.17.9"}}}"#,
        200,
    ));
    let words = refusal(config(vec![stub.url.clone()])).await;
    assert!(
        words.contains("7.17.9") && words.contains("too old"),
        "{words}"
    );
    stub.answer(nodes("<html>hello", 200));
    assert!(
        refusal(config(vec![stub.url.clone()]))
            .await
            .contains("does not answer as")
    );
    stub.answer(nodes(r#"{"error":"no","status":401}"#, 401));
    assert!(
        refusal(config(vec![stub.url.clone()]))
            .await
            .contains("credentials")
    );
    stub.answer(|asked| asked.1.starts_with("/_nodes").then_some(Reply::Silence));
    let words = refusal(config(vec![stub.url.clone()])).await;
    assert!(
        words.contains("cannot be reached") && words.contains("no answer in time"),
        "{words}"
    );
    let words = refusal(config(vec![nobody().await])).await;
    assert!(
        words.contains("cannot be reached") && words.contains("refused"),
        "{words}"
    );
    for bad in ["nonsense", "ftp://a", "http://"] {
        refusal(config(vec![bad.to_owned()])).await;
    }
}

#[tokio::test]
async fn a_mapping_that_is_refused_is_told_with_the_reason() {
    let stub = Stub::start().await;
    stub.answer(|(method, path, _)| {
        (method == "PUT" && path.starts_with("/_index_template"))
            .then(|| Reply::Json(400, error("mapper_parsing_exception")))
    });
    let words = refusal(config(vec![stub.url.clone()])).await;
    assert!(
        words.contains("mapper_parsing_exception") && words.contains("hint:"),
        "{words}"
    );
}

#[tokio::test]
async fn a_claim_without_an_answer_is_unknown_and_not_sent_again() {
    let stub = Stub::start().await;
    let store = ElasticStore::open(config(vec![stub.url.clone()]))
        .await
        .unwrap();
    for reply in [
        Reply::Silence,
        Reply::HalfAnAnswer,
        Reply::Json(504, "gone".into()),
    ] {
        stub.answer(on_bulk(reply));
        let result = patched(&store).await;
        assert!(
            matches!(result, Err(ItemError::Unknown { .. })),
            "{result:?}"
        );
        assert_eq!(stub.bulks().len(), 1);
        assert!(!store.health().available);
    }
    stub.answer(|_| None);
    patched(&store).await.unwrap();
    assert!(store.health().available);
}

#[tokio::test]
async fn a_claim_that_reached_nobody_is_not_taken() {
    let stub = Stub::start().await;
    let store = opened(&stub).await;
    let mut stub = stub;
    stub.tasks.shutdown().await;
    // The connection that was kept open may break as it is used; after that nobody listens.
    let mut last = patched(&store).await;
    if matches!(last, Err(ItemError::Unknown { .. })) {
        last = patched(&store).await;
    }
    assert!(matches!(last, Err(ItemError::NotTaken { .. })), "{last:?}");
    let error = store.counts().await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
}

#[tokio::test]
async fn overload_is_waited_for_and_then_not_taken() {
    let stub = Stub::start().await;
    let store = opened(&stub).await;
    for status in [429, 503] {
        stub.answer(on_bulk(Reply::Json(
            status,
            error("es_rejected_execution_exception"),
        )));
        let result = patched(&store).await;
        assert!(
            matches!(result, Err(ItemError::NotTaken { .. })),
            "{result:?}"
        );
        assert_eq!(stub.bulks().len(), 5);
    }
    // It passes: so does the claim.
    let times = Mutex::new(0);
    stub.answer(move |asked| {
        let is_bulk = asked.1.starts_with("/_bulk");
        let mut times = times.lock().unwrap();
        *times += u32::from(is_bulk);
        (is_bulk && *times < 3).then(|| Reply::Json(429, error("busy")))
    });
    patched(&store).await.unwrap();
    assert_eq!(stub.bulks().len(), 3);
}

#[tokio::test]
async fn items_have_outcomes_of_their_own() {
    let stub = Stub::start().await;
    let store = opened(&stub).await;
    let kinds = [
        taken(7),
        item(409, "version_conflict_engine_exception"),
        item(404, "document_missing_exception"),
        item(400, "strict_dynamic_mapping_exception"),
        item(503, "unavailable_shards_exception"),
        item(403, "cluster_block_exception"),
        r#"{"x":{"status":200}}"#.to_owned(),
        taken(8),
    ];
    let count = kinds.len() as u64;
    stub.answer(move |(_, path, body)| {
        let reply = || bulk_reply(body, |_, n| kinds[n].clone());
        path.starts_with("/_bulk")
            .then(|| Reply::Json(200, reply()))
    });
    let results = store.patch((1..=count).map(patch).collect()).await;
    assert_eq!(
        results[0],
        Ok(Version {
            primary_term: 1,
            seq_no: 7
        })
    );
    assert_eq!(results[1], Err(ItemError::Conflict { current: None }));
    assert_eq!(results[2], Err(ItemError::Missing));
    assert!(matches!(&results[3], Err(ItemError::Refused { reason }) if reason.contains("strict")));
    assert!(matches!(results[4], Err(ItemError::Unknown { .. })));
    assert!(matches!(results[5], Err(ItemError::NotTaken { .. })));
    assert!(matches!(results[6], Err(ItemError::Unknown { .. })));
    assert_eq!(
        results[7],
        Ok(Version {
            primary_term: 1,
            seq_no: 8
        })
    );
}

#[tokio::test]
async fn only_items_that_met_overload_are_sent_again() {
    let stub = Stub::start().await;
    let store = opened(&stub).await;
    let is_first = |line: &str| line.contains(&id(1).to_string());
    let times = Mutex::new(0);
    stub.answer(move |(_, path, body)| {
        let mut times = times.lock().unwrap();
        *times += 1;
        let busy = *times <= 2;
        let reply = bulk_reply(body, |line, n| {
            if busy && is_first(line) {
                item(429, "busy")
            } else {
                taken(n)
            }
        });
        path.starts_with("/_bulk")
            .then_some(Reply::Json(200, reply))
    });
    let results = store.patch(vec![patch(1), patch(2)]).await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    let bulks = stub.bulks();
    assert_eq!(bulks.len(), 3);
    assert!(
        bulks[1..]
            .iter()
            .all(|body| !body.contains(&id(2).to_string()))
    );
}

#[tokio::test]
async fn a_bulk_that_is_refused_whole_is_halved_down_to_the_culprit() {
    let stub = Stub::start().await;
    let store = opened(&stub).await;
    for status in [400, 413] {
        stub.answer(move |(_, path, body)| {
            let holds_it = path.starts_with("/_bulk") && body.contains(&id(5).to_string());
            holds_it.then(|| Reply::Json(status, error("illegal_argument_exception")))
        });
        let results = store.patch((1..=8).map(patch).collect()).await;
        for (n, result) in (1..).zip(&results) {
            match result {
                Ok(_) => assert_ne!(n, 5),
                Err(error) => {
                    assert_eq!(n, 5);
                    assert!(matches!(error, ItemError::Refused { .. }), "{error:?}");
                }
            }
        }
    }
}

#[tokio::test]
async fn an_answer_of_the_wrong_length_or_form_decides_nothing() {
    let stub = Stub::start().await;
    let store = opened(&stub).await;
    for body in ["{}", "[]", "<html>", r#"{"items":[]}"#, r#"{"items":7}"#] {
        stub.answer(on_bulk(Reply::Json(200, body.to_owned())));
        let result = patched(&store).await;
        assert!(
            matches!(result, Err(ItemError::Unknown { .. })),
            "{body} {result:?}"
        );
    }
}

#[tokio::test]
async fn a_submit_is_ok_only_with_both_halves() {
    let stub = Stub::start().await;
    let store = opened(&stub).await;
    let cases = [
        (item(429, "busy"), item(429, "busy"), "NotTaken"),
        (taken(1), item(429, "busy"), "Unknown"),
        (item(503, "x"), taken(1), "Unknown"),
        (item(400, "x"), taken(1), "Refused"),
        (taken(1), item(400, "x"), "Refused"),
        (taken(1), taken(2), "Ok"),
    ];
    for (state_half, body_half, wanted) in cases {
        stub.answer(move |(_, path, body)| {
            let of = |line: &str, _| {
                if line.contains("-bodies-") {
                    body_half.clone()
                } else {
                    state_half.clone()
                }
            };
            path.starts_with("/_bulk")
                .then(|| Reply::Json(200, bulk_reply(body, of)))
        });
        let result = store.submit(vec![job(state(1))]).await.remove(0);
        assert!(
            format!("{result:?}").contains(wanted),
            "{wanted} {result:?}"
        );
    }
}

#[tokio::test]
async fn a_hung_node_is_left_alone_and_another_one_answers() {
    let (hung, well) = (Stub::start().await, Stub::start().await);
    let config = config(vec![hung.url.clone(), well.url.clone()]);
    let store = ElasticStore::open(config).await.unwrap();
    hung.answer(|_| Some(Reply::Silence));
    well.answer(|_| None);
    for _ in 0..10 {
        store.counts().await.unwrap();
    }
    // It rests in between: not every second call meets it.
    assert!(hung.requests() < 5, "{}", hung.requests());
    assert!(well.requests() >= 10);
    // A submit may be sent twice: it goes through as well.
    assert!(store.submit(vec![job(state(1))]).await[0].is_ok());
}

#[tokio::test]
async fn dead_nodes_cost_nothing_but_a_try() {
    let well = Stub::start().await;
    let urls = vec![nobody().await, well.url.clone(), nobody().await];
    let store = ElasticStore::open(config(urls)).await.unwrap();
    for _ in 0..10 {
        patched(&store).await.unwrap();
        store.counts().await.unwrap();
    }
}

#[tokio::test]
async fn a_search_that_is_not_whole_is_an_error() {
    let stub = Stub::start().await;
    let store = opened(&stub).await;
    for body in [
        r#"{"_shards":{"failed":1,"failures":[{"reason":{"type":"x","reason":"gone"}}]},"hits":{}}"#,
        r#"{"timed_out":true,"hits":{}}"#,
    ] {
        let many = format!(r#"{{"responses":[{body}]}}"#);
        stub.answer(move |(_, path, _)| {
            let text = if path.starts_with("/_msearch") {
                &many
            } else {
                body
            };
            Some(Reply::Json(200, text.to_owned()))
        });
        let error = store.counts().await.unwrap_err();
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
        let all = fairlead_store::Pull {
            by: fairlead_store::PullBy::All,
            limit: 5,
            after: None,
        };
        store.pull(&[all]).await.unwrap_err();
    }
    stub.answer(|_| Some(Reply::Json(400, error("parsing_exception"))));
    let error = store.counts().await.unwrap_err();
    assert!(matches!(error, StoreError::Refused { .. }), "{error:?}");
    stub.answer(|_| Some(Reply::Json(500, "oops".into())));
    let error = store.counts().await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
}
