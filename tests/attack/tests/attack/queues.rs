//! Queue names as a weapon: invented ones, another account's, and those of a higher class (I4, I5).

use std::collections::BTreeSet;

use fairlead_tests::{Guarded, Http, Store, Testbox, jobs};
use serde_json::{Value, json};

/// Number of dispatched jobs.
const DISPATCHES: usize = 60;
/// Number of names that the attacker invents.
const NAMES: usize = 9;

fn queued(account: &str, queue: &str) -> Value {
    jobs::with(jobs::dc(account), &json!({"queue": queue}))
}

/// Submits jobs, which must all be accepted. Returns their ids and hints.
async fn submit(http: &Http, jobs: &Value) -> Vec<(String, String)> {
    let items = http.submit_items(jobs).await.into_iter();
    let accepted = items.map(|item| {
        assert!(item.job_id != "0" && item.message.is_empty(), "{item:?}");
        (item.job_id, item.hint)
    });
    accepted.collect()
}

/// Sets a queue as an admin. Returns its view.
async fn set_queue(admin: &Http, name: &str, change: &Value) -> Value {
    let path = format!("/scheduler/v1/queues/{name}");
    let reply = admin.post(&path, change).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    reply.json()
}

/// Returns the ids of the next jobs for a host with room for all of them. None of them ends.
async fn dispatched(http: &Http, many: usize) -> Vec<String> {
    let mut testbox = Testbox::dc(http, "host-1", 128 << 10);
    while testbox.held().len() < many {
        let grants = testbox.take_all().await;
        assert!(!grants.is_empty(), "{} of {many}", testbox.held().len());
    }
    let first = testbox.held().iter().take(many);
    first.map(|grant| grant.job_id.clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn invented_names_buy_no_share() {
    let lab = Guarded::start(Store::Embedded, &[]).await;
    let (mallory, alice) = (lab.user("mallory").await, lab.user("alice").await);
    let invented = (0..DISPATCHES).map(|n| queued("mallory", &format!("mine-{}", n % NAMES)));
    let invented = Value::Array(invented.collect());
    let of_mallory: BTreeSet<String> = {
        let accepted = submit(&mallory, &invented).await.into_iter();
        accepted.map(|(id, _)| id).collect()
    };
    submit(
        &alice,
        &jobs::times(DISPATCHES, &queued("alice", "nightly")),
    )
    .await;
    let boxes = lab.testbox("boxes", &["host-1"]).await;
    let first = dispatched(&boxes, DISPATCHES).await;
    let won = first.iter().filter(|id| of_mallory.contains(*id)).count();
    let rest = DISPATCHES - won;
    assert!(
        won * 10 < rest * 11,
        "{NAMES} invented names won {won} of {DISPATCHES} dispatches, one won {rest}"
    );
}

/// Submits one job, which must be refused with this code. Returns its message and hint.
async fn refused(http: &Http, job: &Value, code: &str) -> (String, String) {
    let item = http.submit_items(job).await.remove(0);
    assert_eq!((&*item.job_id, &*item.code), ("0", code), "{item:?}");
    (item.message, item.hint)
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_submits_into_another_s_queue_or_class() {
    let lab = Guarded::start(Store::Embedded, &[]).await;
    let (mallory, alice) = (lab.user("mallory").await, lab.user("alice").await);
    let shared = json!({"users": ["alice"], "priority": 8});
    let view = set_queue(&lab.admin, "release", &shared).await;
    assert_eq!(view["users"], json!(["alice"]), "{view}");
    let view = set_queue(&lab.admin, "alice", &json!({"priority": 8})).await;
    assert_eq!(view["users"], "own", "{view}");

    let (message, hint) = refused(&mallory, &queued("mallory", "release"), "forbidden").await;
    assert!(message.contains("may not use queue 'release'"), "{message}");
    assert!(hint.contains("--users"), "{hint}");
    for names in ["mallory/7", "alice/7", "../alice"] {
        refused(&mallory, &queued("mallory", names), "bad_field").await;
    }
    // Another account's queue of class 8 is only a label in the own class. So the older job of class 3 goes first, and
    // alice's goes before both.
    let own = submit(&mallory, &queued("mallory", "mallory"))
        .await
        .remove(0);
    assert!(!own.1.contains("queue"), "the own queue: {}", own.1);
    let label = submit(&mallory, &queued("mallory", "alice"))
        .await
        .remove(0);
    assert!(
        label.1.contains("'alice' is no shared queue"),
        "{}",
        label.1
    );
    assert_eq!(mallory.field(&label.0, "queue").await, "mallory");
    assert_eq!(mallory.field(&label.0, "queue_label").await, "alice");
    let released = submit(&alice, &queued("alice", "release")).await.remove(0);
    assert!(!released.1.contains("queue"), "{}", released.1);
    let boxes = lab.testbox("boxes", &["host-1"]).await;
    let mut machine = Testbox::dc(&boxes, "host-1", 1 << 10);
    let ran = machine.run_all(1).await;
    assert_eq!(ran.first(), Some(&released.0), "{ran:?}");
    assert_eq!(ran.len(), 3, "labels run, too");

    // A strict submit reports it before anything waits.
    let strict = "/scheduler/v1/jobs/submit?strict=true";
    let told = mallory.post(strict, &queued("mallory", "mine")).await;
    assert_eq!(told.status, 400, "{}", told.text);
    assert!(
        told.text.contains("'mine' is no shared queue"),
        "{}",
        told.text
    );
    // A user cannot open a queue for itself.
    let path = "/scheduler/v1/queues/release";
    let opens = json!({"users": ["mallory"]});
    mallory.post(path, &opens).await.refused(403);
    lab.admin
        .post(path, &json!({"users": "everybody"}))
        .await
        .refused(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_are_found_by_what_was_written() {
    let lab = Guarded::start(Store::Embedded, &[]).await;
    let bob = lab.user("bob").await;
    let ids: Vec<String> = {
        let names = ["nightly", "nightly", "weekly", "bob"].map(|name| queued("bob", name));
        let accepted = submit(&bob, &json!(names)).await.into_iter();
        accepted.map(|(id, _)| id).collect()
    };
    let total = async |queue: &str| {
        let path = format!("/scheduler/v1/jobs?queue={queue}");
        bob.get(&path).await.json()["total"].clone()
    };
    assert_eq!(total("bob").await, 4, "all of them are in that queue");
    assert_eq!(total("nightly").await, 2);
    assert_eq!(total("nothing").await, 0);
    let queues = bob.get("/scheduler/v1/queues").await.json();
    let queues = queues.as_array().or_else(|| queues["queues"].as_array());
    let queues = queues.cloned().unwrap_or_default();
    let busy: Vec<(&Value, &Value)> = queues
        .iter()
        .map(|queue| (&queue["name"], &queue["waiting"]))
        .filter(|(_, waiting)| **waiting != 0)
        .collect();
    assert_eq!(busy, [(&json!("bob"), &json!(4))]);
    let explained = bob
        .get(&format!("/scheduler/v1/jobs/{}/explain", ids[2]))
        .await
        .text;
    assert!(
        explained.contains("under label 'weekly' in queue 'bob'"),
        "{explained}"
    );
    let cancel = json!({"filter": {"queue": "nightly"}});
    let cancelled = bob.post("/scheduler/v1/jobs/cancel", &cancel).await;
    assert_eq!(cancelled.status, 200, "{}", cancelled.text);
    for (id, stage) in ids.iter().zip(["cancel", "cancel", "submit", "submit"]) {
        assert_eq!(bob.field(id, "job_stage").await, stage);
    }
}
