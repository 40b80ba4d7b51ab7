//! Tests of opening a server that cannot be used, or that others have set up.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use fairlead_store::{ElasticConfig, ElasticStore};
use serde_json::{Value, json};

use crate::{Asked, Reply, Stub, config, error, nobody, refusal};

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
    let words = refusal(config(vec![stub.url.clone()])).await;
    assert!(
        words.contains("without a login") && words.contains("--elasticsearch-user"),
        "{words}"
    );
    stub.answer(|asked| asked.1.starts_with("/_nodes").then_some(Reply::Silence));
    let words = refusal(ElasticConfig {
        request_timeout: Duration::from_millis(200),
        ..config(vec![stub.url.clone()])
    })
    .await;
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
async fn shards_that_come_late_are_waited_for_again() {
    let lacks = r#"{"indices":{"fairlead-jobs-2611":{"number_of_shards":1}}}"#;
    for (status, answer) in [(408, r#"{"timed_out":true}"#), (200, lacks)] {
        let stub = Stub::start().await;
        let asked = AtomicUsize::new(0);
        stub.answer(move |(_, path, _)| {
            let is_late =
                path.starts_with("/_cluster/health/") && asked.fetch_add(1, Ordering::Relaxed) < 2;
            is_late.then(|| Reply::Json(status, answer.to_owned()))
        });
        ElasticStore::open(config(vec![stub.url.clone()]))
            .await
            .unwrap();
        let asked = stub.asked.0.lock().unwrap();
        let waits = asked
            .iter()
            .filter(|(_, path, _)| path.starts_with("/_cluster/health/"));
        assert_eq!(waits.count(), 3, "two in vain, and one that finds them");
    }
}

/// Whatever a start asks for, and first gets no answer to, it asks for again. A busy cluster takes its time.
#[tokio::test]
async fn a_start_asks_again_for_what_was_not_answered() {
    for (method, begin) in [
        ("GET", "/_nodes"),
        ("GET", "/_index_template"),
        ("GET", "/fairlead-jobs-"),
        ("PUT", "/_index_template"),
        ("PUT", "/fairlead-events-2611/_mapping"),
        ("PUT", "/fairlead-documents"),
        ("GET", "/_cluster/health/"),
    ] {
        let stub = Stub::start().await;
        let was_silent = AtomicBool::new(false);
        let there = r#"{"fairlead-events-2611":{}}"#;
        stub.answer(move |(asked, path, _)| {
            let is_it = asked == method && path.starts_with(begin);
            let is_list = asked == "GET" && path.starts_with("/fairlead-jobs-");
            let silence = is_it && !was_silent.swap(true, Ordering::Relaxed);
            let list = || is_list.then(|| Reply::Json(200, there.to_owned()));
            silence.then_some(Reply::Silence).or_else(list)
        });
        let opened = ElasticStore::open(config(vec![stub.url.clone()])).await;
        assert!(opened.is_ok(), "{method} {begin}: {opened:?}");
        let asked = stub.asked.0.lock().unwrap();
        let times = asked
            .iter()
            .filter(|(asked, path, _)| asked == method && path.starts_with(begin));
        assert!(times.count() > 1, "{method} {begin} is asked for again");
    }
}

/// What was put, by name: a cluster that remembers the templates and the indices of a lab.
#[derive(Default)]
struct Remembered {
    templates: BTreeMap<String, Value>,
    indices: BTreeSet<String>,
}

impl Remembered {
    fn answer(&mut self, (method, path, body): &Asked) -> Option<Reply> {
        let path = path.split('?').next().unwrap();
        let name = path.rsplit('/').next().unwrap().to_owned();
        let answer = if path.starts_with("/_index_template") && method == "PUT" {
            self.templates
                .insert(name, serde_json::from_str(body).unwrap());
            json!({"acknowledged": true})
        } else if path.starts_with("/_index_template") {
            let all = self.templates.iter();
            let all = all.map(|(name, body)| json!({"name": name, "index_template": body}));
            json!({"index_templates": all.collect::<Vec<_>>()})
        } else if path.starts_with("/fairlead-") && method == "PUT" {
            self.indices.insert(name);
            json!({"acknowledged": true, "shards_acknowledged": true})
        } else if path.starts_with("/fairlead-") {
            let all = self.indices.iter().map(|name| {
                let of = |(_, template): &(&String, &Value)| {
                    let patterns = template["index_patterns"].as_array().unwrap();
                    patterns.iter().any(|pattern| {
                        let pattern = pattern.as_str().unwrap();
                        name == pattern
                            || pattern
                                .strip_suffix('*')
                                .is_some_and(|begin| name.starts_with(begin))
                    })
                };
                let (_, template) = self.templates.iter().find(of).unwrap();
                (
                    name.clone(),
                    json!({"mappings": template["template"]["mappings"]}),
                )
            });
            Value::Object(all.collect())
        } else {
            return None;
        };
        Some(Reply::Json(200, answer.to_string()))
    }
}

/// A start asks for little: all of it is listed here, without the month.
#[tokio::test]
async fn a_start_asks_for_no_more_than_this() {
    let stub = Stub::start().await;
    let remembered = Mutex::new(Remembered::default());
    stub.answer(move |asked| remembered.lock().unwrap().answer(asked));
    let mut starts = [true, false].map(|_| Vec::new());
    for start in &mut starts {
        stub.asked.0.lock().unwrap().clear();
        ElasticStore::open(config(vec![stub.url.clone()]))
            .await
            .unwrap();
        let asked = stub.asked.0.lock().unwrap();
        let mut asked: Vec<String> = asked
            .iter()
            .map(|(method, path, _)| {
                let path = path.split('?').next().unwrap();
                let path = path.trim_end_matches(|c: char| c.is_ascii_digit());
                format!("{method} {path}")
            })
            .collect();
        asked.sort();
        // Shortly before a month begins its indices are made as well.
        asked.dedup();
        *start = asked;
    }
    let reads = |asked: &[String]| {
        let reads = asked.iter().filter(|asked| asked.starts_with("GET"));
        reads
            .map(|asked| asked.split(',').next().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let [first, second] = starts;
    let twice = [
        "GET /_index_template/fairlead-*",
        "GET /_nodes/http",
        "GET /fairlead-jobs-*",
    ];
    assert_eq!(reads(&first), twice);
    let put: Vec<&str> = first
        .iter()
        .filter_map(|asked| asked.strip_prefix("PUT /"))
        .collect();
    let all = [
        "_index_template/fairlead-documents",
        "_index_template/fairlead-events",
        "_index_template/fairlead-jobs",
        "fairlead-documents",
        "fairlead-events-",
        "fairlead-jobs-",
        "fairlead-leases",
        "fairlead-sessions",
        "fairlead-settings",
    ];
    assert_eq!(put, all);
    assert_eq!(first.len(), twice.len() + all.len(), "{first:?}");
    assert_eq!(
        reads(&second)[1..],
        twice,
        "and whether the shards are there"
    );
    assert!(second[0].starts_with("GET /_cluster/health/"), "{second:?}");
    assert_eq!(second.len(), 4, "{second:?}");
}

fn as_ann(stub: &Stub) -> ElasticConfig {
    ElasticConfig {
        username: Some("ann".to_owned()),
        password: Some("hidden".to_owned()),
        ..config(vec![stub.url.clone()])
    }
}

/// For questions about rights.
fn on_rights(status: u16, answer: &str) -> impl Fn(&Asked) -> Option<Reply> + use<> {
    let reply = Reply::Json(status, answer.to_owned());
    move |asked| {
        asked
            .1
            .starts_with("/_security/user/_has_privileges")
            .then(|| reply.clone())
    }
}

#[tokio::test]
async fn logins_are_refused_in_words_that_hold_no_secret() {
    let stub = Stub::start().await;
    let lacks =
        r#"{"cluster":{"monitor":false},"index":{"fairlead-jobs-*":{"read":true,"write":false}}}"#;
    for (status, answer, told) in [
        (401, r#"{"error":"no"}"#, "refuses user 'ann'"),
        (200, lacks, "monitor (cluster); write (fairlead-jobs-*)"),
    ] {
        stub.answer(on_rights(status, answer));
        let words = refusal(as_ann(&stub)).await;
        assert!(words.contains(told) && words.contains("hint:"), "{words}");
        assert!(!words.contains("hidden"), "{words}");
    }
    let key = ElasticConfig {
        api_key: Some("hidden".to_owned()),
        ..config(vec![stub.url.clone()])
    };
    stub.answer(on_rights(401, "{}"));
    let words = refusal(key).await;
    assert!(
        words.contains("refuses the API key") && !words.contains("hidden"),
        "{words}"
    );
}

/// Where nobody's rights are limited, nobody knows of them.
#[tokio::test]
async fn a_server_without_logins_takes_any() {
    let stub = Stub::start().await;
    stub.answer(on_rights(400, r#"{"error":"no handler found"}"#));
    let store = ElasticStore::open(as_ann(&stub)).await.unwrap();
    drop(store);
    // And without a login nothing is asked.
    stub.answer(on_rights(401, "{}"));
    ElasticStore::open(config(vec![stub.url.clone()]))
        .await
        .unwrap();
}

#[tokio::test]
async fn what_others_have_set_up_is_left_alone() {
    let stub = Stub::start().await;
    let refused = |(method, path, _): &Asked| {
        let is_set_up = path.starts_with("/_index_template") || path.contains("/_mapping");
        (method == "PUT" && is_set_up).then(|| Reply::Json(403, error("security_exception")))
    };
    // Nothing is there: somebody must set up who may.
    stub.answer(refused);
    let words = refusal(config(vec![stub.url.clone()])).await;
    assert!(
        words.contains("template fairlead-jobs") && words.contains("manage_index_templates"),
        "{words}"
    );
    // The templates that are there are older ones: somebody must set up.
    let there = |version: u64| {
        move |asked: &Asked| {
            let names = ["jobs", "events", "documents"].map(|name| {
                json!({
                    "name": format!("fairlead-{name}"),
                    "index_template": {"version": version, "_meta": {"format": 1}},
                })
            });
            let is_template = asked.0 == "GET" && asked.1.starts_with("/_index_template");
            let there = || Reply::Json(200, json!({"index_templates": names}).to_string());
            is_template.then(there).or_else(|| refused(asked))
        }
    };
    stub.answer(there(7));
    let words = refusal(config(vec![stub.url.clone()])).await;
    assert!(words.contains("template fairlead-"), "{words}");
    // Or those of a newer release of the same format: nothing is to be set up.
    stub.answer(there(1_000));
    ElasticStore::open(config(vec![stub.url.clone()]))
        .await
        .unwrap();
}

/// Indices of a version of before.
fn of_before(asked: &Asked) -> Option<Reply> {
    let is_list = asked.0 == "GET" && asked.1.contains("/fairlead-jobs-");
    let old = r#"{"fairlead-queues":{},"fairlead-replicas":{},"fairlead-jobs-2611":{}}"#;
    is_list.then(|| Reply::Json(200, old.to_owned()))
}

#[tokio::test]
async fn a_move_without_the_right_changes_nothing_and_says_what_is_needed() {
    let stub = Stub::start().await;
    stub.answer(|asked| {
        let is_block = asked.1.ends_with("/_block/write");
        let is_template = asked.0 == "PUT" && asked.1.starts_with("/_index_template");
        let refused = is_block.then(|| Reply::Json(403, error("security_exception")));
        let done = || is_template.then(|| Reply::Json(200, r#"{"acknowledged":true}"#.to_owned()));
        refused.or_else(done).or_else(|| of_before(asked))
    });
    let words = refusal(config(vec![stub.url.clone()])).await;
    assert!(words.contains("cannot be moved"), "{words}");
    assert!(words.contains("manage on the prefix"), "{words}");
    let asked = stub.asked.0.lock().unwrap();
    let puts = asked.iter().filter(|(method, ..)| method == "PUT");
    let puts: Vec<&str> = puts.map(|(_, path, _)| path.as_str()).collect();
    let blocked = "/fairlead-queues,fairlead-replicas/_block/write";
    assert_eq!(puts, ["/_index_template/fairlead-before", blocked]);
    assert!(asked.iter().all(|(method, path, _)| {
        method == "GET"
            || method == "PUT"
            || path.contains("/_refresh")
            || path.contains("/_search")
    }));
}

#[tokio::test]
async fn a_lab_that_is_not_moved_yet_is_not_read() {
    let stub = Stub::start().await;
    stub.answer(of_before);
    let read = ElasticStore::open_to_read(config(vec![stub.url.clone()])).await;
    let words = read.unwrap_err().to_string();
    assert!(
        words.contains("fairlead-queues") && words.contains("snapshot"),
        "{words}"
    );
    stub.answer(|asked| {
        let is_list = asked.0 == "GET" && asked.1.contains("/fairlead-jobs-");
        is_list.then(|| Reply::Json(200, r#"{"fairlead-bodies-2610":{}}"#.to_owned()))
    });
    let words = refusal(config(vec![stub.url.clone()])).await;
    assert!(words.contains("fairlead-bodies-2610"), "{words}");
}
