//! Tests of the move of small documents from an index of each kind into one.

use std::time::Duration;

use fairlead_store::{
    DocFind, DocKind, DocWrite, ElasticConfig, ElasticStore, Expect, JobStore, StoreError,
};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::{server::Server, with_config};

/// Hosts of the lab: more than a page of a copy.
const HOSTS: u32 = 1_200;

fn host(n: u32) -> String {
    format!("host/{n:05} \u{e9}")
}

/// Stores documents as a version of before did: an index of each kind.
async fn store_before(server: &Server, prefix: &str) {
    let kinds = [
        "queues", "hosts", "closures", "timers", "replicas", "sessions", "leases", "settings",
    ];
    let template = json!({
        "index_patterns": kinds.map(|kind| format!("{prefix}-{kind}")), "priority": 500, "version": 8,
        "_meta": {"format": 1},
        "template": {"mappings": {"dynamic": "strict", "properties": {
            "id": {"type": "keyword"}, "format": {"type": "short"},
            "updated_ms": {"type": "date", "format": "epoch_millis"}, "at_ms": {"type": "long"},
            "body": {"type": "object", "enabled": false},
        }}},
    });
    let path = format!("_index_template/{prefix}-documents");
    server.ask("PUT", &path, Some(template)).await;
    for kind in kinds {
        server.ask("PUT", &format!("{prefix}-{kind}"), None).await;
    }
    let document =
        |id: &str, body: Value| json!({"id": id, "format": 1, "updated_ms": 7, "body": body});
    let mut timer = document("ann/nightly", json!({"at_ms": 9, "cron": "x"}));
    timer["at_ms"] = json!(9);
    let mut all = vec![
        (
            "queues",
            document("ann", json!({"weight": 3, "deep": {"a": null}})),
        ),
        ("queues", document("bob", json!({"weight": 4}))),
        ("closures", document("ann", json!({"reason": "a new disk"}))),
        ("timers", timer),
        ("replicas", document("number-01", json!({"owner": "dead"}))),
        ("sessions", document("h1", json!({"session": 1}))),
        ("leases", document("h1", json!({"jobs": []}))),
        ("settings", document("sealing-key", json!({"key": "k"}))),
    ];
    all.extend((0..HOSTS).map(|n| ("hosts", document(&host(n), json!({"n": n})))));
    let lines = all.iter().map(|(kind, document)| {
        let at = json!({"create": {"_index": format!("{prefix}-{kind}"), "_id": document["id"]}});
        format!("{at}\n{document}\n")
    });
    let stored = server
        .ask_lines("_bulk?refresh=true", lines.collect())
        .await;
    assert_eq!(stored["errors"], false, "{stored}");
}

/// What is in the lab afterwards: all of it, in the same order.
async fn is_all_there(store: &ElasticStore) {
    let ids = async |kind| {
        let docs = store.list_docs(kind).await.unwrap().into_iter();
        docs.map(|doc| doc.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(DocKind::Queue).await, ["ann", "bob"]);
    assert_eq!(ids(DocKind::Closure).await, ["ann"]);
    assert_eq!(
        ids(DocKind::Host).await,
        (0..HOSTS).map(host).collect::<Vec<_>>()
    );
    for kind in [DocKind::Session, DocKind::Lease] {
        assert_eq!(ids(kind).await, ["h1"]);
    }
    let queue = store.get_doc(DocKind::Queue, "ann").await.unwrap().unwrap();
    assert_eq!(queue.body, json!({"weight": 3, "deep": {"a": null}}));
    let key = store
        .get_doc(DocKind::Setting, "sealing-key")
        .await
        .unwrap();
    assert_eq!(key.unwrap().body, json!({"key": "k"}));
    let due = store.due_docs(DocKind::Timer, 10, 9).await.unwrap();
    assert_eq!(
        (due.len(), due[0].id.as_str(), due[0].at_ms),
        (1, "ann/nightly", 9)
    );
    let find = DocFind {
        prefix: "host/".to_owned(),
        limit: 1,
        ..DocFind::default()
    };
    let page = store.page_docs(DocKind::Host, &find).await.unwrap();
    assert_eq!(page.total, u64::from(HOSTS));
}

/// The indices of small documents, without the prefix and without what a copy is told apart by.
async fn indices(server: &Server, prefix: &str) -> Vec<String> {
    let listed = server.ask("GET", &format!("{prefix}-*"), None).await;
    let names = listed.as_object().unwrap().keys();
    let kinds = names.map(|name| name[prefix.len() + 1..].to_owned());
    let kinds = kinds.filter(|kind| !kind.starts_with("jobs-") && !kind.starts_with("events-"));
    let kinds = kinds.map(|kind| match kind.strip_prefix("documents-copy-") {
        Some(_) => "copy".to_owned(),
        None => kind,
    });
    kinds.collect()
}

/// Those of a lab whose documents were moved.
const MOVED: [&str; 4] = ["copy", "leases", "sessions", "settings"];

async fn refusal(config: ElasticConfig) -> String {
    match ElasticStore::open(config).await {
        Err(error @ StoreError::Unusable { .. }) => error.to_string(),
        other => panic!("expected a refusal, got {other:?}"),
    }
}

async fn delete(store: &ElasticStore, id: &str) {
    let gone = DocWrite {
        id: id.to_owned(),
        expect: Expect::Any,
        body: None,
    };
    let gone = store.put_docs(DocKind::Queue, vec![gone]).await.remove(0);
    gone.unwrap();
}

#[tokio::test]
async fn documents_of_before_are_moved_once() {
    with_config(async |server, config| {
        let prefix = config.index_prefix.clone();
        store_before(server, &prefix).await;
        let store = ElasticStore::open(config.clone()).await.unwrap();
        is_all_there(&store).await;
        assert_eq!(indices(server, &prefix).await, MOVED);
        let path = format!("_index_template/{prefix}-documents");
        let template = server.ask("GET", &path, None).await;
        let template = &template["index_templates"][0]["index_template"];
        assert_eq!(
            template["_meta"]["format"], 2,
            "a version of before refuses this"
        );

        // A replica of before that was away stores nothing, and what was deleted stays so.
        delete(&store, "bob").await;
        let document = json!({"id": "bob", "format": 1, "updated_ms": 8, "body": {}});
        let path = format!("{prefix}-queues/_doc/bob");
        let late = server.ask("PUT", &path, Some(document)).await;
        assert_eq!(late["error"]["type"], "cluster_block_exception", "{late}");
        let again = ElasticStore::open(config).await.unwrap();
        again.refresh().await.unwrap();
        assert_eq!(again.get_doc(DocKind::Queue, "bob").await.unwrap(), None);
        assert_eq!(again.list_docs(DocKind::Queue).await.unwrap().len(), 1);
    })
    .await;
}

/// Each start is cut off a little later than the one before it, wherever it is then.
#[tokio::test]
async fn a_move_that_is_killed_goes_on_at_the_next_start() {
    with_config(async |server, config| {
        let prefix = config.index_prefix.clone();
        store_before(server, &prefix).await;
        let mut kills = 0;
        let store = loop {
            let open = ElasticStore::open(config.clone());
            let limit = Duration::from_millis(10 << kills.min(12));
            match tokio::time::timeout(limit, open).await {
                Ok(store) => break store.unwrap(),
                Err(_) => kills += 1,
            }
        };
        assert!(kills > 0);
        is_all_there(&store).await;
        delete(&store, "bob").await;
        let again = ElasticStore::open(config).await.unwrap();
        assert_eq!(again.get_doc(DocKind::Queue, "bob").await.unwrap(), None);
        assert_eq!(indices(server, &prefix).await, MOVED, "no copy is left");
    })
    .await;
}

#[tokio::test]
async fn replicas_that_move_at_once_move_once() {
    with_config(async |server, config| {
        let prefix = config.index_prefix.clone();
        store_before(server, &prefix).await;
        let opened = join_all((0..3).map(|_| ElasticStore::open(config.clone()))).await;
        for store in opened {
            is_all_there(&store.unwrap()).await;
        }
        ElasticStore::open(config).await.unwrap();
        assert_eq!(indices(server, &prefix).await, MOVED, "no copy is left");
    })
    .await;
}

#[tokio::test]
async fn a_replica_of_before_that_lives_is_named_and_goes_on() {
    with_config(async |server, config| {
        let prefix = config.index_prefix.clone();
        store_before(server, &prefix).await;
        let path = format!("{prefix}-replicas/_doc/run-1");
        let beat = async || {
            let body = json!({"name": "s1-3000", "url": "http://s1:3000"});
            let document = json!({"id": "run-1", "format": 1, "updated_ms": 1, "body": body});
            server.ask("PUT", &path, Some(document)).await
        };
        beat().await;
        let words = tokio::select! {
            words = refusal(config.clone()) => words,
            () = async { loop { beat().await; } } => unreachable!(),
        };
        for said in [
            "'s1-3000' at http://s1:3000",
            "hint: stop all replicas",
            "snapshot",
        ] {
            assert!(words.contains(said), "no '{said}' in {words}");
        }
        assert_eq!(beat().await["result"], "updated", "it goes on");
        let read = ElasticStore::open_to_read(config.clone()).await;
        assert!(read.unwrap_err().to_string().contains("not moved yet"));
        // It is killed: its document stays, and changes no more.
        is_all_there(&ElasticStore::open(config).await.unwrap()).await;
    })
    .await;
}
