//! Opening a server that cannot be used.

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
