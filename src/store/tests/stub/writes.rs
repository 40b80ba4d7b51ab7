//! Tests of writes: each item has its typed outcome, whatever the answer is.

use std::sync::{Arc, Mutex};

use fairlead_job::Stage;
use fairlead_store::{
    DocKind, DocWrite, ElasticStore, Expect, ItemError, JobStore, Patch, StatePatch, StoreError,
    Version,
};

use crate::{
    Asked, Reply, Stub, bulk_reply, config,
    conformance::{id, job, state},
    error, item, on_bulk, opened, patch, patched, taken,
};

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
        let health = store.health();
        assert!(health.reads.is_well() && !health.writes.is_well());
    }
    stub.answer(|_| None);
    patched(&store).await.unwrap();
    assert!(store.health().is_well());
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
        r#"{"create":{"status":200}}"#.to_owned(),
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
                if line.contains("-body\"") {
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
async fn the_body_of_a_job_that_was_just_submitted_is_answered_without_asking() {
    let stub = Stub::start().await;
    let store = opened(&stub).await;
    store.submit(vec![job(state(1))]).await.remove(0).unwrap();
    let none = |(_, path, _): &Asked| {
        let reply = || Reply::Json(200, r#"{"docs":[{"found":false}]}"#.to_owned());
        path.starts_with("/_mget").then(reply)
    };
    stub.answer(none);
    // Another replica was told of it.
    let (other, version) = (
        opened(&stub).await,
        Version {
            primary_term: 1,
            seq_no: 0,
        },
    );
    stub.answer(none);
    let document = store.body_at_hand(id(1)).unwrap();
    other.keep_created(id(1), version, "{}", Some(&document));
    let body = Arc::unwrap_or_clone(job(state(1)).body);
    let told = other.get_bodies(&[id(1)]).await.unwrap();
    assert_eq!((told, stub.requests()), (vec![Some(body.clone())], 0));
    let bodies = store.get_bodies(&[id(1)]).await.unwrap();
    assert_eq!((bodies, stub.requests()), (vec![Some(body)], 0));
    // Once; and what was not acknowledged is not there.
    assert_eq!(store.get_bodies(&[id(1)]).await.unwrap(), [None]);
    stub.answer(on_bulk(Reply::HalfAnAnswer));
    assert!(store.submit(vec![job(state(2))]).await.remove(0).is_err());
    stub.answer(none);
    let unknown = store.get_bodies(&[id(2)]).await.unwrap();
    assert_eq!((unknown, stub.requests()), (vec![None], 1));
}

#[tokio::test]
async fn a_full_disk_takes_nothing_and_is_not_asked_in_vain() {
    let stub = Stub::start().await;
    let store = opened(&stub).await;
    let full = r#"{"create":{"status":429,"error":{"type":"cluster_block_exception","reason":"index [i] blocked by: [TOO_MANY_REQUESTS/12/disk usage exceeded flood-stage watermark, index has read-only-allow-delete block];"}}}"#;
    stub.answer(move |(_, path, body)| {
        let reply = || bulk_reply(body, |_, _| full.to_owned());
        path.starts_with("/_bulk")
            .then(|| Reply::Json(200, reply()))
    });
    let result = patched(&store).await;
    assert!(
        matches!(&result, Err(ItemError::NotTaken { reason }) if reason.contains("block]; a disk of Elasticsearch is nearly full (flood stage)")),
        "{result:?}"
    );
    assert_eq!(stub.bulks().len(), 1);
    let submitted = store.submit(vec![job(state(1))]).await.remove(0);
    assert!(
        matches!(submitted, Err(ItemError::NotTaken { .. })),
        "{submitted:?}"
    );
    let health = store.health();
    assert!(health.reads.is_well() && health.writes.problem.contains("flood stage"));
    stub.answer(|_| None);
    patched(&store).await.unwrap();
    assert!(store.health().is_well());
}

/// The index of jobs took nothing, and sessions took their writes: health said that all was well.
#[tokio::test]
async fn an_index_that_takes_no_write_is_told_until_it_takes_one() {
    let stub = Stub::start().await;
    let store = opened(&stub).await;
    let red = |line: &str, n| {
        if line.contains("-jobs-") {
            item(503, "unavailable_shards_exception")
        } else {
            taken(n)
        }
    };
    let bulks = move |(_, path, body): &Asked| {
        let reply = || Reply::Json(200, bulk_reply(body, red));
        path.starts_with("/_bulk").then(reply)
    };
    stub.answer(bulks);
    patched(&store).await.unwrap_err();
    let session = || DocWrite {
        id: "h1".to_owned(),
        expect: Expect::Any,
        body: Some(serde_json::json!({})),
    };
    for look in 0..3 {
        let written = store.put_docs(DocKind::Session, vec![session()]).await;
        written.into_iter().next().unwrap().unwrap();
        store.counts().await.unwrap();
        let problem = store.health().writes.problem;
        assert!(problem.contains("-jobs-"), "look {look}: {problem:?}");
        store.look_after().await;
    }
    // Nobody writes a job meanwhile: a probe finds out that it is well again.
    stub.answer(|_| None);
    store.look_after().await;
    assert!(stub.bulks()[0].contains("fairlead-probe"));
    assert!(store.health().is_well());
    store.look_after().await;
    assert_eq!(stub.bulks().len(), 1, "nothing is probed without need");
}

#[tokio::test]
async fn credentials_that_are_good_no_more_refuse_no_job() {
    let stub = Stub::start().await;
    let store = opened(&stub).await;
    for status in [401, 403] {
        stub.answer(move |_| Some(Reply::Json(status, error("security_exception"))));
        let result = store.submit(vec![job(state(1))]).await.remove(0);
        assert!(
            matches!(&result, Err(ItemError::NotTaken { reason }) if reason.contains("security_exception")),
            "{result:?}"
        );
        let error = store.counts().await.unwrap_err();
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
        let health = store.health();
        assert!(!health.reads.is_well() && !health.writes.is_well());
    }
    stub.answer(|_| None);
    patched(&store).await.unwrap();
    store.counts().await.unwrap();
    assert!(store.health().is_well());
}

#[tokio::test]
async fn a_job_that_is_known_is_changed_without_reading_it() {
    let stub = Stub::start().await;
    let store = opened(&stub).await;
    // This server gives each write the same version.
    stub.answer(|(_, path, body)| {
        let reply = || Reply::Json(200, bulk_reply(body, |_, _| taken(0)));
        path.starts_with("/_bulk").then(reply)
    });
    store.submit(vec![job(state(1))]).await.remove(0).unwrap();
    let got = store.patch_and_get(vec![patch(1)]).await.remove(0);
    assert_eq!(got.unwrap().state, patch(1).set.apply(&state(1)).unwrap());
    patched(&store).await.unwrap();
    for stage in [Stage::Finish, Stage::Running] {
        let mut after = state(1);
        after.stage = stage;
        let set = StatePatch::between(&state(1), &after);
        let patch = Patch { set, ..patch(1) };
        store.patch(vec![patch]).await.remove(0).unwrap();
    }
    let bulks = stub.bulks();
    let of = |bulk: &str, action: &str| bulk.contains(&format!("{{\"{action}\":"));
    for bulk in &bulks[1..=3] {
        assert!(of(bulk, "index") && !of(bulk, "update"));
        assert!(bulk.contains("\"suite\":\"hackbench\""));
    }
    let (last, why) = (&bulks[4], "one that ended is not kept");
    assert!(of(last, "update") && !of(last, "index"), "{why}");
}
