//! Small documents and events.

use fairlead_store::{DocKind, DocWrite, EventRecord, Expect, ItemError, JobStore, Version};
use serde_json::{Value, json};

fn write(id: &str, expect: Expect, body: Option<Value>) -> DocWrite {
    DocWrite {
        id: id.into(),
        expect,
        body,
    }
}

async fn put(
    store: &dyn JobStore,
    id: &str,
    expect: Expect,
    body: Option<Value>,
) -> Result<Version, ItemError> {
    let writes = vec![write(id, expect, body)];
    store.put_docs(DocKind::Queue, writes).await.remove(0)
}

fn is_conflict(result: &Result<Version, ItemError>) -> bool {
    matches!(result, Err(ItemError::Conflict { .. }))
}

pub(crate) async fn documents_compare_and_set(store: &dyn JobStore) {
    let body = json!({"weight": 3, "deep": {"a": null, "list": [1, "x"]}});
    assert_eq!(store.get_doc(DocKind::Queue, "q").await.unwrap(), None);
    let first = put(store, "q", Expect::Absent, Some(body.clone()))
        .await
        .unwrap();
    assert!(is_conflict(
        &put(store, "q", Expect::Absent, Some(json!({}))).await
    ));
    let read = store.get_doc(DocKind::Queue, "q").await.unwrap().unwrap();
    assert_eq!(
        (read.id.as_str(), read.version, read.body),
        ("q", first, body)
    );
    assert_eq!(store.get_doc(DocKind::Host, "q").await.unwrap(), None);

    let second = put(store, "q", Expect::Version(first), Some(json!({"w": 2})))
        .await
        .unwrap();
    assert!(second > first);
    assert!(is_conflict(
        &put(store, "q", Expect::Version(first), Some(json!({}))).await
    ));
    let third = put(store, "q", Expect::Any, Some(json!({"w": 3})))
        .await
        .unwrap();
    let read = store.get_doc(DocKind::Queue, "q").await.unwrap().unwrap();
    assert_eq!((read.version, read.body), (third, json!({"w": 3})));

    assert!(is_conflict(
        &put(store, "q", Expect::Version(second), None).await
    ));
    put(store, "q", Expect::Version(third), None).await.unwrap();
    assert_eq!(store.get_doc(DocKind::Queue, "q").await.unwrap(), None);
    assert_eq!(
        put(store, "q", Expect::Any, None).await,
        Err(ItemError::Missing)
    );
    assert!(is_conflict(
        &put(store, "q", Expect::Version(third), Some(json!({}))).await
    ));
    // A document made again never has a version that it had before.
    let again = put(store, "q", Expect::Absent, Some(json!({})))
        .await
        .unwrap();
    assert!(again > third);
}

pub(crate) async fn documents_are_listed_in_order(store: &dyn JobStore) {
    let name = |n: u32| format!("host/{n:05} \u{e9}");
    let writes = (0..2_500)
        .rev()
        .map(|n| write(&name(n), Expect::Absent, Some(json!({"n": n}))))
        .collect();
    let results = store.put_docs(DocKind::Host, writes).await;
    assert!(results.iter().all(Result::is_ok));
    assert!(
        put(store, "other", Expect::Any, Some(json!({})))
            .await
            .is_ok()
    );
    store.refresh().await.unwrap();
    let docs = store.list_docs(DocKind::Host).await.unwrap();
    assert_eq!(docs.len(), 2_500);
    for (n, doc) in (0..).zip(&docs) {
        assert_eq!(
            (doc.id.clone(), doc.body.clone()),
            (name(n), json!({"n": n}))
        );
    }
    let read = store
        .get_doc(DocKind::Host, &name(7))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(read, docs[7]);
    assert!(store.list_docs(DocKind::Lease).await.unwrap().is_empty());
}

pub(crate) async fn bad_documents_are_refused(store: &dyn JobStore) {
    let long = "x".repeat(513);
    let writes = vec![
        write("good", Expect::Any, Some(json!({}))),
        write("", Expect::Any, Some(json!({}))),
        write(&long, Expect::Any, Some(json!({}))),
        write("list", Expect::Any, Some(json!([1]))),
        write("gone", Expect::Absent, None),
        write(&long[..512], Expect::Any, Some(json!({"\u{0}": "."}))),
    ];
    let results = store.put_docs(DocKind::Setting, writes).await;
    assert!(results[0].is_ok() && results[5].is_ok(), "{results:?}");
    for result in &results[1..5] {
        assert!(
            matches!(result, Err(ItemError::Refused { .. })),
            "{result:?}"
        );
    }
    assert_eq!(store.get_doc(DocKind::Setting, "").await.unwrap(), None);
    assert_eq!(store.get_doc(DocKind::Setting, &long).await.unwrap(), None);
}

pub(crate) async fn events_are_taken(store: &dyn JobStore) {
    let event = |n: u64| EventRecord {
        at_ms: 1_795_228_571_000 + n * 86_400_000 * 20,
        who: "ann".into(),
        what: "job.cancel".into(),
        subject: n.to_string(),
        detail: json!({"before": {"a": [1, null]}}),
    };
    store
        .append_events((0..5).map(event).collect())
        .await
        .unwrap();
    assert!(store.health().is_well());
}
