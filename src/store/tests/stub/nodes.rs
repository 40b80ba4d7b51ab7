//! Tests with dead, hung or busy nodes: other nodes are asked, and no call waits long.

use std::{sync::Mutex, time::Duration};

use fairlead_store::{ElasticConfig, ElasticStore, ItemError, JobStore, StoreError};

use crate::{
    Asked, Reply, Stub, bulk_reply, config,
    conformance::{job, state},
    error, item, nobody, on_bulk, opened, patched, taken,
};

#[tokio::test]
async fn a_claim_that_reached_nobody_is_not_taken() {
    let stub = Stub::start().await;
    let store = opened(&stub).await;
    let mut stub = stub;
    stub.tasks.shutdown().await;
    // The connection that was kept open may break as it is used; after that nobody listens.
    let mut last = patched(&store).await;
    if matches!(last, Err(ItemError::Unknown { .. })) {
        last = patched(&store).await;
    }
    assert!(matches!(last, Err(ItemError::NotTaken { .. })), "{last:?}");
    let error = store.counts().await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
}

#[tokio::test]
async fn overload_is_waited_for_and_then_not_taken() {
    let stub = Stub::start().await;
    let store = opened(&stub).await;
    for status in [429, 503] {
        stub.answer(on_bulk(Reply::Json(
            status,
            error("es_rejected_execution_exception"),
        )));
        let result = patched(&store).await;
        assert!(
            matches!(result, Err(ItemError::NotTaken { .. })),
            "{result:?}"
        );
        assert_eq!(stub.bulks().len(), 5);
    }
    // It passes: so does the claim.
    let times = Mutex::new(0);
    stub.answer(move |asked| {
        let is_bulk = asked.1.starts_with("/_bulk");
        let mut times = times.lock().unwrap();
        *times += u32::from(is_bulk);
        (is_bulk && *times < 3).then(|| Reply::Json(429, error("busy")))
    });
    patched(&store).await.unwrap();
    assert_eq!(stub.bulks().len(), 3);
}

#[tokio::test]
async fn a_hung_node_is_left_alone_and_another_one_answers() {
    let (hung, well) = (Stub::start().await, Stub::start().await);
    let config = config(vec![hung.url.clone(), well.url.clone()]);
    let store = ElasticStore::open(config).await.unwrap();
    hung.answer(|_| Some(Reply::Silence));
    well.answer(|_| None);
    for _ in 0..10 {
        store.counts().await.unwrap();
    }
    // It rests in between: not every second call meets it.
    assert!(hung.requests() < 5, "{}", hung.requests());
    assert!(well.requests() >= 10);
    // A submit may be sent twice: it goes through as well.
    assert!(store.submit(vec![job(state(1))]).await[0].is_ok());
}

#[tokio::test]
async fn what_one_node_may_have_taken_another_cannot_deny() {
    let (torn, well) = (Stub::start().await, Stub::start().await);
    let config = config(vec![torn.url.clone(), well.url.clone()]);
    let store = ElasticStore::open(config).await.unwrap();
    let busy = |(_, path, body): &Asked| {
        let reply = || bulk_reply(body, |_, _| item(429, "busy"));
        path.starts_with("/_bulk")
            .then(|| Reply::Json(200, reply()))
    };
    let mut doubted = 0;
    for n in 1..=4 {
        torn.answer(on_bulk(Reply::HalfAnAnswer));
        well.answer(busy);
        let result = store.submit(vec![job(state(n))]).await.remove(0);
        let was_asked_first = !torn.bulks().is_empty();
        doubted += u32::from(was_asked_first);
        match result {
            Err(ItemError::Unknown { .. }) => assert!(was_asked_first),
            Err(ItemError::NotTaken { .. }) => assert!(!was_asked_first),
            other => panic!("{other:?}"),
        }
    }
    assert!(doubted > 0);
}

#[tokio::test]
async fn dead_nodes_cost_nothing_but_a_try() {
    let well = Stub::start().await;
    let urls = vec![nobody().await, well.url.clone(), nobody().await];
    let store = ElasticStore::open(config(urls)).await.unwrap();
    for _ in 0..10 {
        patched(&store).await.unwrap();
        store.counts().await.unwrap();
    }
}

/// Two nodes, and a store that would wait a minute for each.
async fn patient(nodes: [&Stub; 2]) -> ElasticStore {
    let config = ElasticConfig {
        request_timeout: Duration::from_mins(1),
        ..config(nodes.map(|node| node.url.clone()).to_vec())
    };
    ElasticStore::open(config).await.unwrap()
}

/// Long, but shorter than any limit of the store.
async fn soon<T>(work: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(Duration::from_secs(40), work).await;
    done.unwrap()
}

#[tokio::test]
async fn a_write_gives_a_hung_node_up_and_the_next_ones_avoid_it() {
    let (hung, well) = (Stub::start().await, Stub::start().await);
    let store = patient([&hung, &well]).await;
    hung.answer(|_| Some(Reply::Silence));
    let mut unknown = 0;
    for _ in 0..10 {
        match soon(patched(&store)).await {
            Ok(_) => {}
            Err(ItemError::Unknown { .. }) => unknown += 1,
            Err(other) => panic!("{other:?}"),
        }
    }
    assert_eq!(unknown, 1);
    assert_eq!(hung.bulks().len(), 1);
}

#[tokio::test]
async fn a_write_that_takes_long_is_waited_for_while_the_node_lives() {
    let (one, other) = (Stub::start().await, Stub::start().await);
    let store = patient([&one, &other]).await;
    for stub in [&one, &other] {
        stub.answer(|(_, path, body)| {
            // Three signs of life take longer than a node is given that gives none.
            let taken = bulk_reply(body, |_, n| taken(n));
            path.starts_with("/_bulk").then_some(Reply::After(3, taken))
        });
    }
    soon(patched(&store)).await.unwrap();
    assert_eq!(one.requests() + other.requests(), 1);
}

#[tokio::test]
async fn a_search_that_hangs_behind_a_node_that_lives_is_asked_elsewhere() {
    let (stuck, well) = (Stub::start().await, Stub::start().await);
    let store = patient([&stuck, &well]).await;
    stuck.answer(|asked| asked.1.contains("_search").then_some(Reply::Silence));
    for _ in 0..4 {
        soon(store.counts()).await.unwrap();
    }
    // Not every second call meets it.
    assert!(stuck.requests() < 3, "{}", stuck.requests());
    assert!(store.health().is_well());
}

#[tokio::test]
async fn a_node_that_is_back_is_used_again() {
    let (away, well) = (Stub::start().await, Stub::start().await);
    let store = patient([&away, &well]).await;
    away.answer(|_| Some(Reply::HalfAnAnswer));
    soon(store.counts()).await.unwrap();
    soon(store.counts()).await.unwrap();
    assert!(away.requests() > 0);
    away.answer(|_| None);
    soon(async {
        while away.requests() == 0 {
            store.counts().await.unwrap();
        }
    })
    .await;
    patched(&store).await.unwrap();
    patched(&store).await.unwrap();
    assert_eq!(away.bulks().len(), 1);
}

#[tokio::test]
async fn health_tells_silence_from_an_answer_that_says_no() {
    let stub = Stub::start().await;
    let store = opened(&stub).await;
    stub.answer(on_bulk(Reply::Json(
        503,
        error("master_not_discovered_exception"),
    )));
    patched(&store).await.unwrap_err();
    let health = store.health();
    assert!(health.reads.is_well() && !health.writes.is_well());
    stub.answer(|_| Some(Reply::HalfAnAnswer));
    store.counts().await.unwrap_err();
    let health = store.health();
    assert!(!health.reads.is_well() && !health.writes.is_well());
    // Whatever is answered ends the silence.
    stub.answer(|_| Some(Reply::Json(404, error("index_not_found_exception"))));
    store.counts().await.unwrap_err();
    assert!(store.health().is_well());
}
