//! Tests of opening a server that cannot be used, or that others have set up.

use std::sync::atomic::{AtomicUsize, Ordering};

use fairlead_store::{ElasticConfig, ElasticStore};

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
async fn a_shard_that_comes_late_is_waited_for_again() {
    let stub = Stub::start().await;
    let asked = AtomicUsize::new(0);
    stub.answer(move |(_, path, _)| {
        let is_of_hosts = path.starts_with("/_cluster/health/fairlead-hosts?");
        let is_late = is_of_hosts && asked.fetch_add(1, Ordering::Relaxed) < 2;
        is_late.then(|| Reply::Json(408, r#"{"timed_out":true}"#.to_owned()))
    });
    ElasticStore::open(config(vec![stub.url.clone()]))
        .await
        .unwrap();
    let asked = stub.asked.0.lock().unwrap();
    let waits = asked
        .iter()
        .filter(|(_, path, _)| path.starts_with("/_cluster/health/fairlead-hosts?"));
    assert_eq!(waits.count(), 3, "two in vain, and one that finds it");
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
    let there = |version: u64| {
        move |asked: &Asked| {
            // The other templates are those of a newer release of the same format.
            let (format, version) = if asked.1.ends_with("-jobs") {
                (2, version)
            } else {
                (1, 1_000)
            };
            let there = format!(
                r#"{{"index_templates":[{{"index_template":{{"version":{version},"_meta":{{"format":{format}}}}}}}]}}"#
            );
            let is_template = asked.0 == "GET" && asked.1.starts_with("/_index_template");
            is_template
                .then_some(Reply::Json(200, there))
                .or_else(|| refused(asked))
        }
    };
    // That of states of version 7 has the form of before, which may stay.
    for version in [7, 8, 9, 10, 11] {
        stub.answer(there(version));
        ElasticStore::open(config(vec![stub.url.clone()]))
            .await
            .unwrap();
    }
    stub.answer(there(6));
    let words = refusal(config(vec![stub.url.clone()])).await;
    assert!(words.contains("template fairlead-jobs"), "{words}");
}
