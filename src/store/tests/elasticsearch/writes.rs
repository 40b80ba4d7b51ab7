//! Tests of writes that meet failures which only a server has.

use fairlead_store::{
    DocKind, DocWrite, ElasticConfig, ElasticStore, Expect, ItemError, JobStore, Patch, Version,
};
use serde_json::json;

use crate::{
    conformance::{claim, id, job, read_one, state, state_with, submit_all},
    server::Server,
    with_config,
};

/// Stores three jobs twice, the second time without the body of the first and the state of the second.
async fn repaired(server: &Server, config: ElasticConfig, paths: [String; 2]) {
    let prefix = config.index_prefix.clone();
    let store = ElasticStore::open(config).await.unwrap();
    submit_all(&store, (1..=3).map(state).collect()).await;
    for path in paths {
        let gone = server
            .ask("DELETE", &format!("{prefix}-{path}"), None)
            .await;
        assert_eq!(gone["result"], "deleted", "{path}");
    }
    submit_all(&store, (1..=3).map(state).collect()).await;
    let ids = [id(1), id(2), id(3)];
    assert!(store.get(&ids).await.unwrap().iter().all(Option::is_some));
    let bodies = store.get_bodies(&ids).await.unwrap();
    assert!(bodies.iter().all(Option::is_some));
}

#[tokio::test]
async fn a_missing_half_is_repaired_by_the_same_submit() {
    let state = format!("jobs-2611/_doc/{}", id(2));
    with_config(async |server, config| {
        let one = id(1);
        let body = format!("jobs-2611/_doc/{one}-body?routing={one}");
        repaired(server, config, [body, state]).await;
    })
    .await;
}

#[tokio::test]
async fn a_month_that_takes_no_writes_is_an_error_of_its_jobs_alone() {
    with_config(async |server, config| {
        let prefix = config.index_prefix.clone();
        let store = ElasticStore::open(config).await.unwrap();
        submit_all(&store, vec![state(2)]).await;
        let block = |on: bool| Some(json!({"index.blocks.write": on}));
        let settings = format!("{prefix}-jobs-2611/_settings");
        server.ask("PUT", &settings, block(true)).await;
        let other_month = state_with(1, |s| {
            s.job_id = fairlead_job::JobId::new(2_610_010_000_000_000_001);
        });
        let jobs = vec![job(state(1)), job(other_month)];
        let results = store.submit(jobs).await;
        assert!(
            matches!(results[0], Err(ItemError::NotTaken { .. })),
            "{results:?}"
        );
        assert!(results[1].is_ok(), "{results:?}");
        server.ask("PUT", &settings, block(false)).await;
        let told = store.submit(vec![job(state(1))]).await.remove(0).unwrap();
        assert_eq!(read_one(&store, id(1)).await.version, told.version);
        assert!(told.body.is_some_and(|body| body < told.version));
    })
    .await;
}

#[tokio::test]
async fn a_refused_half_takes_the_other_one_back() {
    with_config(async |_, config| {
        let store = ElasticStore::open(config).await.unwrap();
        // Longer than any term that can be indexed.
        let bad = state_with(1, |s| s.account = "x".repeat(40_000));
        let results = store.submit(vec![job(bad), job(state(2))]).await;
        assert!(
            matches!(results[0], Err(ItemError::Refused { .. })),
            "{results:?}"
        );
        assert!(results[1].is_ok());
        assert_eq!(store.get(&[id(1)]).await.unwrap(), [None]);
        assert_eq!(store.get_bodies(&[id(1)]).await.unwrap(), [None]);
    })
    .await;
}

#[tokio::test]
async fn an_index_that_is_gone_is_made_again_with_its_mapping() {
    with_config(async |server, config| {
        let prefix = config.index_prefix.clone();
        let store = ElasticStore::open(config).await.unwrap();
        server
            .ask(
                "DELETE",
                &format!("{prefix}-jobs-2611,{prefix}-documents"),
                None,
            )
            .await;
        submit_all(&store, vec![state(1)]).await;
        let doc = DocWrite {
            id: "q".into(),
            expect: Expect::Absent,
            body: Some(json!({})),
        };
        store
            .put_docs(DocKind::Queue, vec![doc])
            .await
            .remove(0)
            .unwrap();
        let mapping = server
            .ask("GET", &format!("{prefix}-jobs-2611/_mapping"), None)
            .await;
        let mapping = &mapping[format!("{prefix}-jobs-2611")]["mappings"];
        assert_eq!(mapping["dynamic"], "strict");
        assert_eq!(mapping["properties"]["job_id"]["type"], "keyword");
    })
    .await;
}

#[tokio::test]
async fn a_version_of_nonsense_is_a_conflict_and_hurts_nobody() {
    with_config(async |_, config| {
        let store = ElasticStore::open(config).await.unwrap();
        let version = submit_all(&store, vec![state(1), state(2)]).await;
        let patch = |n: u64, expect| Patch {
            id: id(n),
            expect,
            set: claim(&state(n), "t"),
        };
        let results = store
            .patch(vec![patch(1, Version::default()), patch(2, version[1])])
            .await;
        // Version 0 of the first document may be its very version.
        assert!(results[1].is_ok(), "{results:?}");
        let huge = Version {
            primary_term: u64::MAX,
            seq_no: u64::MAX,
        };
        let results = store.patch(vec![patch(1, huge)]).await;
        assert!(results[0].is_err(), "{results:?}");
    })
    .await;
}
