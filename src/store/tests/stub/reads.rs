//! Reads: what is not whole is an error, and what was learned is not asked again.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, Ordering},
};

use fairlead_store::{ChangeMark, Changes, JobStore, Pull, PullBy, StoreError};

use crate::{Reply, Stub, error, opened};

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
        let all = Pull {
            by: PullBy::All,
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

#[tokio::test]
async fn an_idle_poll_of_changes_is_one_request() {
    let stub = Stub::start().await;
    let store = opened(&stub).await;
    // One shard of an index; a second index of two shards comes later.
    let with_two = Arc::new(AtomicBool::new(false));
    let has_two = Arc::clone(&with_two);
    stub.answer(move |(_, path, body)| {
        let two = has_two.load(Ordering::Relaxed);
        let text = if path.contains("/_settings") {
            let of = |name: &str, shards: u32| {
                format!(
                    r#""{name}":{{"settings":{{"index":{{"number_of_shards":"{shards}","uuid":"u-{name}"}}}}}}"#
                )
            };
            let more = if two { format!(",{}", of("b", 2)) } else { String::new() };
            format!("{{{}{more}}}", of("a", 1))
        } else {
            // The last search asks whether there is any other index.
            let searches = body.lines().count() / 2;
            let knows_all = !two || body.contains(",-b");
            let others = format!(r#"{{"_shards":{{"total":{}}}}}"#, u32::from(!knows_all));
            let none = r#"{"_shards":{"total":1}},"#.repeat(searches - 1);
            format!(r#"{{"responses":[{none}{others}]}}"#)
        };
        Some(Reply::Json(200, text))
    });
    let asked = [true, false].map(|waiting| Changes {
        since: ChangeMark::default(),
        waiting,
        limit: 10,
    });
    store.changes(&asked).await.unwrap();
    assert_eq!(stub.requests(), 2);
    for _ in 0..3 {
        store.changes(&asked).await.unwrap();
    }
    assert_eq!(stub.requests(), 5);
    with_two.store(true, Ordering::Relaxed);
    store.changes(&asked).await.unwrap();
    assert_eq!(stub.requests(), 5 + 3);
    store.changes(&asked).await.unwrap();
    assert_eq!(stub.requests(), 5 + 3 + 1);
}

#[tokio::test]
async fn searches_that_meet_overload_are_tried_again_within_bounds() {
    let stub = Stub::start().await;
    let store = opened(&stub).await;
    let all = [Pull {
        by: PullBy::All,
        limit: 5,
        after: None,
    }];
    let busy = r#"{"responses":[{"status":429,"error":{"type":"circuit_breaking_exception","reason":"too large"}}]}"#;
    stub.answer(|_| Some(Reply::Json(200, busy.to_owned())));
    let error = store.pull(&all).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    assert_eq!(stub.requests(), 5);
    assert!(store.health().reads.problem.contains("circuit_breaking"));
    let times = AtomicU32::new(0);
    stub.answer(move |_| {
        let is_busy = times.fetch_add(1, Ordering::Relaxed) < 2;
        let text = if is_busy {
            busy
        } else {
            r#"{"responses":[{}]}"#
        };
        Some(Reply::Json(200, text.to_owned()))
    });
    assert!(store.pull(&all).await.unwrap()[0].jobs.is_empty());
    assert_eq!(stub.requests(), 3);
    assert!(store.health().is_well());
}
