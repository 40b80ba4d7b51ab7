//! Stored documents of each kind, of an older version and of a newer one: read, rewritten, or refused unchanged.

use std::{fmt::Debug, future::ready};

use fairlead_api::{ErrorCode, QueueUsers};
use fairlead_store::{DocWrite, Expect};
use serde_json::{Value, json};

use crate::{flows::Flows, testing::flows};
use fairlead_base::{
    errors::Refusal,
    storage::{
        group_commit::only,
        small_doc::{DocError, SmallDoc},
    },
};
use fairlead_known::{
    account_doc::AccountDoc, cordons::Cordon, host_turns::TurnDoc, hosts::Host, leases::LeaseDoc,
    queues::Set, reservations::Reservation, sequences::SequenceTurn,
};

/// Documents as version 4d7e6f7 wrote them, without a format. Never edit: stored documents are not edited either.
const SESSION: &str = r#"{"session":"7cc7-e3e0f8-1","request":2,"turn":"ff2827f8ff6c4d95a01f85004d2144ba",
    "replica":"vm-14943.0397ce46","answered":false,"handed":1,"jobs":["2611242328437900001","2611242328437900002"],
    "past":[],"alive_ms":1795562982252}"#;
const LEASE: &str = r#"{"jobs":["2611242328437900001","2611242328437900002"],"lost":[],"replica":"vm-14943",
    "beat_ms":1795562922254}"#;

const CLOSURE: &str = r#"{"how":"cordon","reason":"a new disk","by":"root","at_ms":1795562922230}"#;
const RESERVATION: &str = r#"{"accounts":["alice"],"until_ms":1795566522230,"reason":"","by":"root",
    "at_ms":1795562922230}"#;

const QUEUE: &str =
    r#"{"priority":2,"weight":5,"paused":false,"limits":{},"background_permille":0}"#;
const ACCOUNT: &str = r#"{"role":"user","vip":true,"limits":{"running":{"soft":20}},
    "token_hash":"d9331ae080bb74967529c1799d5e7aa7f1e1e1a340956dc465ba13b5fb23c92c"}"#;

const HOST: &str = r#"{"kinds":["vm","dc"],"arch":"x86_64","group":"host-1","memory_mb":8192,"tags":[],"devices":[],
    "mac_addr":[],"seen_ms":1795562931183}"#;
const SEQUENCE: &str = r#"{"holder":"2611242328437900001","host":"host-1","at_ms":1795562922254}"#;

/// The id of the documents here.
const ID: &str = "host-1";

async fn store_body<T: SmallDoc>(flows: &Flows, body: &Value) {
    let write = DocWrite {
        id: ID.to_owned(),
        expect: Expect::Any,
        body: Some(body.clone()),
    };
    only(flows.ctx.store.put_docs(T::KIND, vec![write]).await).unwrap();
}

async fn body_of<T: SmallDoc>(flows: &Flows) -> Value {
    let doc = flows.ctx.store.get_doc(T::KIND, ID).await.unwrap();
    doc.unwrap().body
}

fn with(recorded: &Value, field: &str, value: Value) -> Value {
    let mut body = recorded.clone();
    body[field] = value;
    body
}

/// Each field of `part` is as it is there.
fn has_all(whole: &Value, part: &Value) {
    for (field, value) in part.as_object().unwrap() {
        assert_eq!(&whole[field], value, "{field} in {whole}");
    }
}

/// Rewrites the document as it is; whether that is done.
async fn rewrite<T: SmallDoc + Clone>(flows: &Flows) -> bool {
    let same = |present: Option<T>| ready(present.ok_or(None::<DocError>));
    flows.ctx.docs.change(ID, same).await.is_ok()
}

async fn is_unreadable<T: SmallDoc + Clone + Debug>(flows: &Flows, body: &Value) -> DocError {
    store_body::<T>(flows, body).await;
    let error = flows.ctx.docs.read::<T>(ID).await.unwrap_err();
    assert!(flows.ctx.docs.list::<T>().await.is_ok());
    assert!(!rewrite::<T>(flows).await);
    assert_eq!(&body_of::<T>(flows).await, body);
    let told = format!(
        "fairlead_unreadable_documents_total{{kind=\"{}\"}}",
        T::KIND.as_str()
    );
    let text = flows.ctx.metrics.text(None, true);
    assert!(text.contains(&told), "{told}");
    error
}

/// `wrong`: a field with a value that no version writes.
async fn check<T: SmallDoc + Clone + Debug>(recorded: &str, wrong: &str) {
    let (_data, flows) = flows().await;
    let recorded: Value = serde_json::from_str(recorded).unwrap();
    store_body::<T>(&flows, &recorded).await;
    assert!(rewrite::<T>(&flows).await);
    let body = body_of::<T>(&flows).await;
    has_all(&body, &recorded);
    assert_eq!(body["format"], T::FORMAT);

    let newer = with(&recorded, "of_tomorrow", json!({"new": [1, "two"]}));
    store_body::<T>(&flows, &newer).await;
    assert!(rewrite::<T>(&flows).await && rewrite::<T>(&flows).await);
    has_all(&body_of::<T>(&flows).await, &newer);

    let error = is_unreadable::<T>(&flows, &with(&newer, "format", json!(T::FORMAT + 1))).await;
    let body = Refusal::from(error).body();
    assert_eq!(body.code, ErrorCode::UnreadableDocument);
    for word in [ID, T::KIND.as_str(), &format!("format {}", T::FORMAT + 1)] {
        assert!(body.message.contains(word), "{word}: {body:?}");
    }
    assert_eq!(body.hint, "upgrade this replica");

    let error = is_unreadable::<T>(&flows, &with(&recorded, wrong, json!({"x": 1}))).await;
    assert!(matches!(error, DocError::Malformed { .. }), "{error}");
}

#[tokio::test]
async fn documents_of_older_and_newer_versions_are_rewritten_whole_or_refused() {
    check::<TurnDoc>(SESSION, "request").await;
    check::<LeaseDoc>(LEASE, "jobs").await;
    check::<Cordon>(CLOSURE, "by").await;
    check::<Reservation>(RESERVATION, "until_ms").await;
    check::<Set>(QUEUE, "weight").await;
    check::<AccountDoc>(ACCOUNT, "vip").await;
    check::<Host>(HOST, "kinds").await;
    check::<SequenceTurn>(SEQUENCE, "holder").await;
}

/// It was given jobs, as if nobody had closed it.
#[tokio::test]
async fn a_host_whose_closure_cannot_be_read_stays_closed_until_somebody_opens_it() {
    let (_data, flows) = flows().await;
    store_body::<Cordon>(&flows, &json!({"how": "nobody knows"})).await;
    flows.hosts.reload_closures().await.unwrap();
    assert!(flows.hosts.lab.cordons.is_shut(ID));
    flows.hosts.open_host(ID).await.unwrap();
    assert!(!flows.hosts.lab.cordons.is_shut(ID));
}

/// It was open to all, with the default weight.
#[tokio::test]
async fn a_queue_whose_document_cannot_be_read_is_paused_and_open_to_nobody_else() {
    let (_data, flows) = flows().await;
    store_body::<Set>(&flows, &json!({"users": ["alice"], "weight": "much"})).await;
    flows.people.reload_queues().await.unwrap();
    let set = flows.people.queues.set_of(ID);
    assert_eq!((set.paused, set.users), (true, Some(QueueUsers::Own)));
    let change = serde_json::from_value(json!({"weight": 2})).unwrap();
    let refused = flows.people.change_queue(ID, &change).await.unwrap_err();
    assert!(
        refused
            .body()
            .hint
            .contains("fairlead queues delete host-1")
    );
    flows.people.delete_queue(ID).await.unwrap();
    flows.people.change_queue(ID, &change).await.unwrap();
}
