//! Tests of small documents and events.

use fairlead_store::{
    AT_MS, DocFind, DocKind, DocWrite, DueDoc, EventFind, EventRecord, Expect, ItemError, JobStore,
    Version, codec::DOC_ID_BYTES_MAX,
};
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
    let long = "x".repeat(DOC_ID_BYTES_MAX + 1);
    let writes = vec![
        write("good", Expect::Any, Some(json!({}))),
        write("", Expect::Any, Some(json!({}))),
        write(&long, Expect::Any, Some(json!({}))),
        write("list", Expect::Any, Some(json!([1]))),
        write("gone", Expect::Absent, None),
        write(
            &long[..DOC_ID_BYTES_MAX],
            Expect::Any,
            Some(json!({"\u{0}": "."})),
        ),
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

pub(crate) async fn documents_are_read_together_and_in_pages(store: &dyn JobStore) {
    let all = ["ann/a", "ann/b", "ann/\u{1f600}", "anna/a", "bob/a"];
    let writes = all.map(|id| write(id, Expect::Absent, Some(json!({"id": id}))));
    let written = store.put_docs(DocKind::Timer, writes.to_vec()).await;
    assert!(written.iter().all(Result::is_ok), "{written:?}");
    store.refresh().await.unwrap();

    let asked = ["bob/a", "", "none", "ann/a"].map(str::to_owned);
    let read = store.get_docs(DocKind::Timer, &asked).await.unwrap();
    let ids: Vec<_> = read.iter().map(|doc| Some(&doc.as_ref()?.id)).collect();
    assert_eq!(ids, [Some(&asked[0]), None, None, Some(&asked[3])]);
    let versions: Vec<_> = read.iter().map(|doc| Some(doc.as_ref()?.version)).collect();
    let asked_again = store.doc_versions(DocKind::Timer, &asked).await.unwrap();
    assert_eq!(asked_again, versions);
    assert!(
        store
            .get_docs(DocKind::Timer, &[])
            .await
            .unwrap()
            .is_empty()
    );

    let page = async |prefix: &str, after: &str, limit| {
        let (prefix, after) = (prefix.to_owned(), after.to_owned());
        let find = DocFind {
            prefix,
            after,
            limit,
        };
        let page = store.page_docs(DocKind::Timer, &find).await.unwrap();
        let ids: Vec<String> = page.docs.into_iter().map(|doc| doc.id).collect();
        (ids, page.total)
    };
    let of = |ids: &[&str], total| (ids.iter().map(|id| (*id).to_owned()).collect(), total);
    assert_eq!(page("ann/", "", 9).await, of(&all[..3], 3));
    assert_eq!(page("ann/", "", 2).await, of(&all[..2], 3));
    assert_eq!(page("ann/", "ann/b", 2).await, of(&all[2..3], 3));
    assert_eq!(page("", "ann/b", 2).await, of(&all[2..4], 5));
    assert_eq!(page("carl/", "", 2).await, of(&[], 0));
}

pub(crate) async fn documents_come_by_their_time(store: &dyn JobStore) {
    let at = |id: &str, body: Value| write(id, Expect::Any, Some(body));
    let writes = vec![
        at("late", json!({AT_MS: 30})),
        at("b", json!({AT_MS: 10})),
        at("a", json!({AT_MS: 10})),
        at("never", json!({})),
        at("paused", json!({AT_MS: 0})),
    ];
    store.put_docs(DocKind::Timer, writes).await;
    let other = vec![at("other", json!({AT_MS: 10}))];
    store.put_docs(DocKind::Queue, other).await;
    let due = async |before_ms, limit| -> Vec<DueDoc> {
        store.refresh().await.unwrap();
        let due = store.due_docs(DocKind::Timer, before_ms, limit).await;
        due.unwrap()
    };
    let ids = |docs: &[DueDoc]| docs.iter().map(|doc| doc.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&due(30, 9).await), ["a", "b"]);
    assert_eq!(ids(&due(31, 2).await), ["a", "b"]);
    let found = due(31, 9).await;
    assert_eq!(ids(&found), ["a", "b", "late"]);
    let times: Vec<u64> = found.iter().map(|doc| doc.at_ms).collect();
    assert_eq!(times, [10, 10, 30]);
    // It moves on, and its version is one to compare with.
    let moved = DocWrite {
        expect: Expect::Version(found[0].version),
        ..at("a", json!({AT_MS: 40}))
    };
    let deleted = write("b", Expect::Version(found[1].version), None);
    let results = store.put_docs(DocKind::Timer, vec![moved, deleted]).await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    assert_eq!(ids(&due(100, 9).await), ["late", "a"]);
}

pub(crate) async fn events_are_read_newest_first(store: &dyn JobStore) {
    let event = |n: u64| EventRecord {
        at_ms: 1_795_228_571_000 + n * 86_400_000 * 20,
        who: "ann".into(),
        what: "job.cancel".into(),
        subject: n.to_string(),
        detail: json!({"before": {"a": [1, null]}}),
    };
    let events: Vec<EventRecord> = (0..5).map(event).collect();
    let same_ms = EventRecord {
        who: "bob".into(),
        what: "queue.set".into(),
        subject: "vip".into(),
        ..event(3)
    };
    store.append_events(events.clone()).await.unwrap();
    store.append_events(vec![same_ms.clone()]).await.unwrap();
    store.refresh().await.unwrap();
    assert!(store.health().is_well());
    let all = EventFind {
        until_ms: u64::MAX >> 1,
        limit: 100,
        ..EventFind::default()
    };
    let read = async |find: EventFind| store.read_events(&find).await.unwrap();
    let newest_first: Vec<EventRecord> = [4, 3, 2, 1, 0].map(event).to_vec();
    let mut expected = newest_first.clone();
    expected.insert(2, same_ms.clone());
    assert_eq!(read(all.clone()).await, expected);
    let page = EventFind {
        until_ms: event(3).at_ms + 1,
        skip: 1,
        limit: 2,
        ..all.clone()
    };
    assert_eq!(read(page).await, expected[2..4]);
    let since = EventFind {
        since_ms: event(3).at_ms,
        ..all.clone()
    };
    assert_eq!(read(since).await, expected[..3]);
    let names = |name: &str| vec![name.to_owned()];
    for (find, events) in [
        (
            EventFind {
                who: names("bob"),
                ..all.clone()
            },
            vec![same_ms.clone()],
        ),
        (
            EventFind {
                what: names("queue.*"),
                ..all.clone()
            },
            vec![same_ms.clone()],
        ),
        (
            EventFind {
                what: names("job.cancel"),
                ..all.clone()
            },
            newest_first,
        ),
        (
            EventFind {
                subjects: vec!["2".into(), "vip".into()],
                ..all.clone()
            },
            vec![same_ms, event(2)],
        ),
        (
            EventFind {
                who: names("ann"),
                what: names("queue.*"),
                ..all
            },
            vec![],
        ),
    ] {
        assert_eq!(read(find.clone()).await, events, "{find:?}");
    }
}
