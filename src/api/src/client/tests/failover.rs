//! Tests which requests are retried, and where, and which are not.

use std::time::Duration;

use serde_json::json;

use super::stub::{Answer, SeenRequest, Stub, dead_url};
use crate::{Client, ClientConfig, ClientError, ConsumeAnswer, ErrorCode};

const OK: &str =
    r#"{"name":"fairlead","version":"1","capabilities":[],"replica":"a","store":"embedded"}"#;
const ACCEPTED: &str = r#"[{"job_id":"7","message":""}]"#;
const NO_JOBS: &str = r#"{"jobs":[],"lease_ms":1,"heartbeat_ms":1}"#;
const UNAVAILABLE: &str = r#"{"code":"unavailable","message":"the store is away","hint":"wait"}"#;
const UNKNOWN: &str = r#"{"code":"outcome_unknown","message":"who knows","hint":"look"}"#;

fn client(urls: &[&str], retry_for: Duration) -> Client {
    let mut config = ClientConfig::new(urls.iter().copied());
    config.retry_for = retry_for;
    config.request_timeout = Duration::from_secs(20);
    Client::new(config).unwrap()
}

fn once(urls: &[&str]) -> Client {
    client(urls, Duration::ZERO)
}

/// Long enough for any number of rounds that a test needs, and never waited out by one that passes.
const PATIENT: Duration = Duration::from_mins(2);

#[tokio::test]
async fn a_dead_replica_is_passed_over_and_the_good_one_remembered() {
    let dead = dead_url();
    let stub = Stub::start(|_, _| Answer::Say(200, OK)).await;
    let client = once(&[&dead, &stub.url]);
    assert_eq!(client.last_good_url(), dead);
    assert_eq!(client.version().await.unwrap().name, "fairlead");
    assert_eq!(client.last_good_url(), stub.url);
}

#[tokio::test]
async fn a_replica_that_is_unavailable_is_passed_over() {
    let ill = Stub::start(|_, _| Answer::Say(503, UNAVAILABLE)).await;
    let well = Stub::start(|_, _| Answer::Say(200, ACCEPTED)).await;
    let client = once(&[&ill.url, &well.url]);
    assert_eq!(client.submit(&json!({})).await.unwrap()[0].job_id, "7");
    client.submit(&json!({})).await.unwrap();
    assert_eq!(
        ill.count(),
        1,
        "the second submit goes to the one that answered"
    );
}

#[tokio::test]
async fn a_submit_whose_answer_is_lost_is_never_sent_again() {
    let first = Stub::start(|_, _| Answer::HangUp).await;
    let second = Stub::start(|_, _| Answer::Say(200, ACCEPTED)).await;
    let client = client(&[&first.url, &second.url], PATIENT);
    let error = client.submit(&json!({})).await.unwrap_err();
    assert!(
        matches!(error, ClientError::OutcomeUnknown { .. }),
        "{error}"
    );
    assert_eq!((first.count(), second.count()), (1, 0));
}

#[tokio::test]
async fn a_submit_that_the_store_did_not_confirm_is_never_sent_again() {
    for status_and_body in [(503, UNKNOWN), (502, "bad gateway"), (504, ""), (500, "")] {
        let first =
            Stub::start(move |_, _| Answer::Say(status_and_body.0, status_and_body.1)).await;
        let second = Stub::start(|_, _| Answer::Say(200, ACCEPTED)).await;
        let client = client(&[&first.url, &second.url], PATIENT);
        let error = client.submit(&json!({})).await.unwrap_err();
        assert_eq!(error.status(), Some(status_and_body.0), "{error}");
        assert_eq!(second.count(), 0, "{error}");
    }
}

#[tokio::test]
async fn a_submit_that_times_out_is_never_sent_again() {
    let silent = Stub::start(|_, _| Answer::Silence).await;
    let mut config = ClientConfig::new([silent.url.clone()]);
    config.request_timeout = Duration::from_millis(50);
    let client = Client::new(config).unwrap();
    let error = client.submit(&json!({})).await.unwrap_err();
    assert!(
        error.to_string().contains("no answer within 50 ms"),
        "{error}"
    );
    assert_eq!(silent.count(), 1);
}

#[tokio::test]
async fn a_submit_that_no_replica_took_is_sent_again() {
    let stub = Stub::start(|n, _| match n {
        0 => Answer::Say(503, UNAVAILABLE),
        1 => Answer::Say(
            503,
            r#"[{"job_id":"0","message":"x","code":"unavailable"}]"#,
        ),
        2 => Answer::Say(429, r#"{"code":"too_many","message":"full","hint":"wait"}"#),
        _ => Answer::Say(200, ACCEPTED),
    })
    .await;
    let client = client(&[&stub.url], PATIENT);
    client.submit(&json!({})).await.unwrap();
    assert_eq!(stub.count(), 4);
}

#[tokio::test]
async fn what_may_be_done_twice_is_sent_until_it_is_confirmed() {
    let stub = Stub::start(|n, _| match n {
        0 => Answer::HangUp,
        1 => Answer::Say(503, UNKNOWN),
        2 => Answer::Say(502, "bad gateway"),
        _ => Answer::Say(200, "ok"),
    })
    .await;
    let client = client(&[&stub.url], PATIENT);
    client
        .update("7", &crate::JobUpdate::default())
        .await
        .unwrap();
    assert_eq!(stub.count(), 4);
}

/// Asks for work for up to a minute at two replicas; a sign of life is due every 300 ms.
async fn consume(first: &Stub, second: &Stub) -> Result<ConsumeAnswer, ClientError> {
    let mut config = ClientConfig::new([&first.url, &second.url]);
    config.sign_of_life = Duration::from_millis(300);
    let client = Client::new(config).unwrap();
    let request = json!({
        "session": "s", "request": 1, "kinds": ["dc"], "arch": "x86_64",
        "memory_mb": 1, "free_memory_mb": 1, "wait_s": 60,
    });
    let request = serde_json::from_value(request).unwrap();
    client.consume("h", &request).await
}

fn is_look(seen: &SeenRequest) -> bool {
    seen.line.contains("/version")
}

#[tokio::test]
async fn who_waits_leaves_a_replica_that_shows_no_life() {
    let hung = Stub::start(|_, _| Answer::Silence).await;
    let well = Stub::start(|_, _| Answer::Say(200, NO_JOBS)).await;
    assert_eq!(consume(&hung, &well).await.unwrap().jobs, []);
    let asked: Vec<bool> = hung.seen().iter().map(is_look).collect();
    assert_eq!(asked, [false, true]);
}

#[tokio::test]
async fn who_waits_stays_while_the_replica_lives() {
    let first = Stub::start(|n, seen| match n {
        _ if !is_look(seen) => Answer::Silence,
        1..4 => Answer::Say(200, OK),
        _ => Answer::HangUp,
    })
    .await;
    let second = Stub::start(|_, _| Answer::Say(200, NO_JOBS)).await;
    consume(&first, &second).await.unwrap();
    let looks = first.seen().iter().filter(|seen| is_look(seen)).count();
    assert_eq!((first.count(), looks, second.count()), (5, 4, 1));
}

#[tokio::test]
async fn a_refusal_is_final() {
    let first = Stub::start(|_, _| {
        Answer::Say(
            409,
            r#"{"code":"conflict","message":"attempt 2 is on","hint":"stop"}"#,
        )
    })
    .await;
    let second = Stub::start(|_, _| Answer::Say(200, "ok")).await;
    let client = client(&[&first.url, &second.url], PATIENT);
    let error = client
        .update("7", &crate::JobUpdate::default())
        .await
        .unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::Conflict));
    assert_eq!(error.to_string(), "attempt 2 is on (hint: stop)");
    assert_eq!((first.count(), second.count()), (1, 0));
}

#[tokio::test]
async fn nobody_there_names_all_that_were_tried() {
    let (one, two) = (dead_url(), dead_url());
    let error = once(&[&one, &two]).version().await.unwrap_err();
    let ClientError::Unreachable { tried, cause, hint } = error else {
        panic!("{error}");
    };
    assert_eq!(tried, [one, two]);
    assert!(cause.contains("refused"), "{cause}");
    assert!(!hint.is_empty());
}

#[tokio::test]
async fn a_refusal_says_more_than_a_dead_port() {
    let ill = Stub::start(|_, _| Answer::Say(503, UNAVAILABLE)).await;
    let error = once(&[&ill.url, &dead_url()]).version().await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::Unavailable));
    assert!(error.may_pass());
}
