//! Tests of queue names: their meaning for each account, and the hint about it.

use fairlead_api::{AccountChange, ErrorCode, QueueChange, QueueUsers};
use fairlead_job::{Spec, Stage};
use fairlead_store::{DocKind, DocWrite, Expect, JobState};
use serde_json::{Value, json};

use crate::{Access, Clock, Config, flows::Flows, testing};
use fairlead_known::{
    accounts::Credentials,
    queue_users::{USERS, USERS_MAX, check_users},
    queues::Set,
};

use super::*;

/// A replica that checks tokens, and its store's folder.
fn guarded() -> (tempfile::TempDir, std::sync::Arc<Flows>) {
    let data = tempfile::tempdir().expect("a folder for the store");
    let config = Config {
        access: Access::Tokens,
        admin: Some(("root".to_owned(), "secret".to_owned())),
        ..Config::embedded(data.path().to_owned())
    };
    let flows = testing::flows_over(testing::embedded(&data), config, Clock::system());
    (data, flows)
}

async fn set(flows: &Flows, queue: &str, change: Value) -> Result<(), Refusal> {
    let change: QueueChange = serde_json::from_value(change).expect("a change");
    flows.people.change_queue(queue, &change).await
}

/// A queue's document as it was written before queues had users.
async fn set_before(flows: &Flows, queue: &str) {
    let write = DocWrite {
        id: queue.to_owned(),
        expect: Expect::Absent,
        body: Some(json!({"priority": 8, "weight": 20, "limits": {}, "later": 1})),
    };
    let written = flows
        .ctx
        .store
        .put_docs(DocKind::Queue, vec![write])
        .await
        .remove(0);
    written.expect("it is written");
    flows
        .people
        .queues
        .reload(&flows.ctx.docs)
        .await
        .expect("a read");
}

async fn user(flows: &Flows, name: &str) -> Credentials {
    let account = flows
        .people
        .set_account(name, &AccountChange::default())
        .await;
    let token = account.map(|account| account.my_token).ok().flatten();
    assert!(token.is_some(), "{name}");
    Credentials {
        token,
        ..Credentials::default()
    }
}

fn made(flows: &Flows, who: &Credentials, fields: &Value) -> Result<NewJob, Refusal> {
    let mut spec = Spec::from_iter([("suite".to_owned(), json!("sleep"))]);
    spec.extend(fields.as_object().cloned().unwrap_or_default());
    testing::built(flows, spec, who)
}

fn state(flows: &Flows, who: &Credentials, queue: &str) -> JobState {
    let made = made(flows, who, &json!({"queue": queue}));
    made.unwrap_or_else(|refusal| panic!("{queue}: {refusal}"))
        .state
}

fn code(outcome: Result<NewJob, Refusal>) -> ErrorCode {
    outcome
        .map(|job| job.state.queue)
        .expect_err("a refusal")
        .body()
        .code
}

#[tokio::test]
async fn a_name_is_the_account_s_own_queue_a_shared_one_or_a_label() {
    let (_data, flows) = guarded();
    let (ann, bob) = (user(&flows, "ann").await, user(&flows, "bob").await);
    set(&flows, "team", json!({"users": ["ann"], "priority": 5}))
        .await
        .unwrap();
    set(&flows, "nightly", json!({"users": "all", "priority": 2}))
        .await
        .unwrap();
    set(&flows, "ann", json!({"weight": 30, "priority": 8}))
        .await
        .unwrap();
    let place = |state: JobState| (state.queue, state.queue_label, state.class);
    let whole = |queue: &str, class: u8| (queue.to_owned(), String::new(), class);
    let label = |who: &str, label: &str, class: u8| {
        (labels::slot_of(who, slot(label)), label.to_owned(), class)
    };
    for (who, said, wanted) in [
        (&ann, "", whole("ann", 8)),
        (&ann, "ann", whole("ann", 8)),
        (&ann, "team", whole("team", 5)),
        (&bob, "nightly", whole("nightly", 2)),
        (&bob, "idle", whole("idle", 1)),
        (&bob, "invented", label("bob", "invented", 3)),
        // Another account's queue, whatever its class.
        (&bob, "ann", label("bob", "ann", 3)),
        (&ann, "bob", label("ann", "bob", 8)),
    ] {
        assert_eq!(place(state(&flows, who, said)), wanted, "{said}");
    }
    let refused = |queue: &str| code(made(&flows, &bob, &json!({"queue": queue})));
    assert_eq!(refused("team"), ErrorCode::Forbidden);
    assert_eq!(refused("vip"), ErrorCode::Forbidden);
    for bad in ["bob/7", "ann/7", "/"] {
        assert!(made(&flows, &bob, &json!({"queue": bad})).is_err(), "{bad}");
    }
    // Whoever may act for an account still uses that account's queues; an admin may use each.
    let root = Credentials {
        token: Some("secret".to_owned()),
        ..Credentials::default()
    };
    let for_bob = json!({"my_account": "bob", "queue": "team"});
    assert_eq!(made(&flows, &root, &for_bob).unwrap().state.queue, "team");
}

#[tokio::test]
async fn a_queue_of_before_stays_open_with_a_warning_until_an_admin_decides() {
    let (_data, flows) = guarded();
    let (ann, bob) = (user(&flows, "ann").await, user(&flows, "bob").await);
    set_before(&flows, "batch").await;
    set_before(&flows, "ann").await;
    let said = |queue: &str, who: &Credentials, strict: bool| {
        let mut made = [made(&flows, who, &json!({"queue": queue}))];
        let mut warnings = [Some("first".to_owned())];
        flows
            .submission
            .warn_of_queues(&mut made, &mut warnings, strict);
        let [made] = made;
        (
            made.map(|job| job.state.queue).ok(),
            warnings[0].clone().unwrap_or_default(),
        )
    };
    for strict in [false, true] {
        let (queue, hint) = said("batch", &bob, strict);
        assert_eq!(queue.as_deref(), Some("batch"));
        assert!(
            hint.starts_with("first; queue 'batch' is open to all"),
            "{hint}"
        );
    }
    assert_eq!(
        said("ann", &ann, true),
        (Some("ann".to_owned()), "first".to_owned())
    );
    // Labels would take turns with bob's jobs there: they take none.
    let label = state(&flows, &ann, "invented");
    assert_eq!((&*label.queue, &*label.queue_label), ("ann", "invented"));
    assert!(
        flows
            .people
            .queues
            .warning_of("batch")
            .contains("fairlead queues set batch")
    );
    // A change of something else leaves it so; nothing of the document is lost.
    set(&flows, "batch", json!({"weight": 7})).await.unwrap();
    assert_eq!(said("batch", &bob, false).0.as_deref(), Some("batch"));
    let doc = flows
        .ctx
        .store
        .get_doc(DocKind::Queue, "batch")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (&doc.body["later"], &doc.body["weight"]),
        (&json!(1), &json!(7))
    );
    assert_eq!(doc.body.get(USERS), None);
    set(&flows, "batch", json!({"users": ["ann", "ann"]}))
        .await
        .unwrap();
    set(&flows, "batch", json!({"weight": 8})).await.unwrap();
    assert_eq!(flows.people.queues.warning_of("batch"), "");
    assert_eq!(
        code(made(&flows, &bob, &json!({"queue": "batch"}))),
        ErrorCode::Forbidden
    );
    set(&flows, "batch", json!({"users": "own"})).await.unwrap();
    assert_eq!(state(&flows, &bob, "batch").queue_label, "batch");
}

#[tokio::test]
async fn a_label_is_told_of_and_refused_if_strict() {
    let (_data, flows) = guarded();
    let bob = user(&flows, "bob").await;
    let mut jobs = [
        made(&flows, &bob, &json!({"queue": "x"})),
        made(&flows, &bob, &json!({})),
    ];
    let mut warnings = [None, None];
    flows
        .submission
        .warn_of_queues(&mut jobs, &mut warnings, false);
    let words = warnings[0].clone().unwrap_or_default();
    assert!(
        words.contains("'x' is no shared queue") && words.contains("queue 'bob'"),
        "{words}"
    );
    assert_eq!(warnings[1], None);
    flows
        .submission
        .warn_of_queues(&mut jobs, &mut [None, None], true);
    let [first, second] = jobs;
    let refusal = first.map(|_| ()).unwrap_err();
    assert_eq!(
        (refusal.status(), refusal.body().code),
        (400, ErrorCode::BadField)
    );
    assert!(second.is_ok());
}

#[tokio::test]
async fn built_in_queues_keep_their_own_rule() {
    let (_data, flows) = guarded();
    let bob = user(&flows, "bob").await;
    for queue in ["vip", "idle"] {
        set(&flows, queue, json!({"weight": 20})).await.unwrap();
        assert_eq!(flows.people.queues.warning_of(queue), "");
    }
    assert_eq!(
        code(made(&flows, &bob, &json!({"queue": "vip"}))),
        ErrorCode::Forbidden
    );
    assert_eq!(state(&flows, &bob, "idle").queue, "idle");
    set(&flows, "vip", json!({"users": ["bob"]})).await.unwrap();
    assert_eq!(state(&flows, &bob, "vip").class, 9);
    set(&flows, "vip", json!({"users": "own"})).await.unwrap();
    assert_eq!(
        code(made(&flows, &bob, &json!({"queue": "vip"}))),
        ErrorCode::Forbidden
    );
}

#[tokio::test]
async fn in_the_open_too_a_queue_is_for_those_that_it_names() {
    let (_data, flows) = testing::flows().await;
    set(&flows, "team", json!({"users": ["ann"]}))
        .await
        .unwrap();
    let as_account = |account: &str| Credentials {
        account: Some(account.to_owned()),
        ..Credentials::default()
    };
    assert_eq!(state(&flows, &as_account("ann"), "team").queue, "team");
    let bobs = made(&flows, &as_account("bob"), &json!({"queue": "team"}));
    assert_eq!(code(bobs), ErrorCode::Forbidden);
    assert_eq!(
        state(&flows, &as_account("team"), "").queue,
        "team",
        "its own name"
    );
}

#[test]
fn users_are_checked() {
    let named = |names: &[&str]| QueueUsers::Named(names.iter().map(|n| (*n).to_owned()).collect());
    assert_eq!(
        check_users(&named(&["b", "a", "b"])).unwrap(),
        named(&["a", "b"])
    );
    for bad in [&[][..], &["a/1"], &[""]] {
        assert!(check_users(&named(bad)).is_err(), "{bad:?}");
    }
    let many: Vec<String> = (0..=USERS_MAX).map(|n| format!("a{n}")).collect();
    assert!(check_users(&QueueUsers::Named(many)).is_err());
    for bad in [json!({"users": 7}), json!({"users": null})] {
        assert!(serde_json::from_value::<Set>(bad).is_err(), "opens nothing");
    }
}

#[test]
fn equal_names_have_equal_slots_on_every_replica() {
    assert_eq!(
        ["nightly", "a", "b"].map(slot),
        ["nightly", "a", "b"].map(slot)
    );
    let mut used: Vec<u8> = (0..400).map(|n| slot(&n.to_string())).collect();
    used.sort_unstable();
    used.dedup();
    assert_eq!(used.len(), usize::from(labels::SLOTS));
}

#[tokio::test]
async fn the_limits_of_a_queue_count_its_labels() {
    let (_data, flows) = testing::flows().await;
    let limits = json!({"waiting": {"hard": 3, "soft": 2}, "hours": {"hard": 3}});
    set(&flows, "user1", json!({ "limits": limits }))
        .await
        .unwrap();
    let now_ms = flows.ctx.clock.wall_ms();
    let labelled = |n: u64, label: &str| JobState {
        queue: labels::slot_of("user1", slot(label)),
        queue_label: label.to_owned(),
        ..testing::state(n)
    };
    for (n, label) in (1..).zip(["a", "b", "c"]) {
        testing::store_job(&flows, labelled(n, label)).await;
    }
    let over = |n: u64, label: &str| JobState {
        stage: Stage::Finish,
        used_at_ms: now_ms,
        used_ms: 3_600_000,
        ..labelled(n, label)
    };
    for (n, label) in (11..).zip(["a", "b"]) {
        testing::store_job(&flows, over(n, label)).await;
    }
    let body = Spec::new().into();
    let state = labelled(21, "d");
    let mut made = [Ok(NewJob { state, body })];
    flows.submission.enforce_quotas(&mut made).await.unwrap();
    let refused = made[0].as_ref().map(|_| ()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "queue 'user1' has 3 jobs waiting; its limit is 3"
    );
    flows
        .submission
        .note_waiting(&flows.ctx.store.counts().await.unwrap());
    flows.submission.sum_up_hours().await.unwrap();
    let allowance = |flows: &Flows| flows.people.policy().queue_limits["user1"];
    assert!(
        allowance(&flows).behind && !allowance(&flows).spent,
        "3 wait, 2 hours are used"
    );
    testing::store_job(&flows, over(13, "c")).await;
    flows.submission.sum_up_hours().await.unwrap();
    assert!(allowance(&flows).spent);
    // People find jobs by the queue, and by what they wrote.
    for (queue, many) in [("user1", 6), ("a", 2), ("c", 2), ("d", 0)] {
        let mut search = Search::default();
        search_in(&mut search, &[queue.to_owned()]);
        assert_eq!(
            flows.ctx.store.search(&search).await.unwrap().total,
            many,
            "{queue}"
        );
    }
}
