//! Nodes that are dead, hung or busy: others are asked, and nobody waits long.

use std::sync::Mutex;

use fairlead_store::{ElasticStore, ItemError, JobStore, StoreError};

use crate::{
    Reply, Stub, config,
    conformance::{job, state},
    error, nobody, on_bulk, opened, patched,
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
async fn dead_nodes_cost_nothing_but_a_try() {
    let well = Stub::start().await;
    let urls = vec![nobody().await, well.url.clone(), nobody().await];
    let store = ElasticStore::open(config(urls)).await.unwrap();
    for _ in 0..10 {
        patched(&store).await.unwrap();
        store.counts().await.unwrap();
    }
}
