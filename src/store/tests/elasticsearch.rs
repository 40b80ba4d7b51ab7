//! The Elasticsearch store against a real server: the conformance suite, and what only a server can do.
//!
//! `ES_URL` (comma separated) names the server; without it every test fails. Each test has an index
//! prefix of its own and clears away what it made.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests panic")]

mod conformance;

use std::{
    hash::{BuildHasher, RandomState},
    panic::{AssertUnwindSafe, resume_unwind},
    sync::atomic::{AtomicU64, Ordering},
};

use conformance::{change, claim, id, job, numbers, read_one, state, state_with, submit_all};
use fairlead_store::{
    DocKind, DocWrite, ElasticConfig, ElasticStore, Expect, Find, ItemError, JobStore, Patch, Pull,
    PullBy, StoreError, Version,
};
use futures_util::FutureExt;
use serde_json::{Value, json};

/// The one place that asks where Elasticsearch is.
#[expect(clippy::disallowed_methods, reason = "the one place that asks")]
fn urls() -> Vec<String> {
    let urls = std::env::var("ES_URL").expect(
        "these tests need a real Elasticsearch: ES_URL=$(scripts/elasticsearch start) cargo test",
    );
    urls.split(',').map(str::to_owned).collect()
}

fn config() -> ElasticConfig {
    static TESTS: AtomicU64 = AtomicU64::new(0);
    let test = TESTS.fetch_add(1, Ordering::Relaxed);
    ElasticConfig {
        urls: urls(),
        index_prefix: format!("t{:016x}-{test}", RandomState::new().hash_one(test)),
        // A cluster that is busy with other tests may take its time.
        request_timeout: std::time::Duration::from_mins(1),
        ..ElasticConfig::default()
    }
}

async fn with_store(case: impl AsyncFnOnce(&dyn JobStore)) {
    with_config(async |config: ElasticConfig| {
        case(&ElasticStore::open(config).await.unwrap()).await;
    })
    .await;
}

/// Clears away what a case made, however it ended.
async fn with_config(case: impl AsyncFnOnce(ElasticConfig)) {
    let config = config();
    let prefix = config.index_prefix.clone();
    let result = AssertUnwindSafe(case(config)).catch_unwind().await;
    let listed = ask(
        "GET",
        &format!("_cat/indices/{prefix}-*?h=index&format=json"),
        None,
    )
    .await;
    let indices: Vec<String> = listed
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|row| Some(row["index"].as_str()?.to_owned()))
        .collect();
    if !indices.is_empty() {
        ask("DELETE", &indices.join(","), None).await;
    }
    for template in ["jobs", "bodies", "events", "documents"] {
        ask(
            "DELETE",
            &format!("_index_template/{prefix}-{template}"),
            None,
        )
        .await;
    }
    if let Err(panic) = result {
        resume_unwind(panic);
    }
}

/// A request beside the store.
async fn ask(method: &str, path: &str, body: Option<Value>) -> Value {
    let url = format!("{}/{path}", urls()[0]);
    let request = reqwest::Client::builder().no_proxy().build().unwrap();
    let request = request.request(method.parse().unwrap(), url);
    let request = match body {
        Some(body) => request
            .header("content-type", "application/json")
            .body(body.to_string()),
        None => request,
    };
    let text = request.send().await.unwrap().text().await.unwrap();
    serde_json::from_str(&text).unwrap()
}

conformance!(with_store);

#[tokio::test]
async fn a_second_replica_opens_the_same_indices() {
    with_config(async |config| {
        let one = ElasticStore::open(config.clone()).await.unwrap();
        submit_all(&one, vec![state(1)]).await;
        let other = ElasticStore::open(config).await.unwrap();
        assert_eq!(read_one(&other, id(1)).await.state, state(1));
        assert!(other.health().name.starts_with("elasticsearch "));
        assert!(other.health().available);
    })
    .await;
}

/// The second finds the first one's indices there before their shards are: reading them failed, and with
/// it the start of a replica.
#[tokio::test]
async fn replicas_that_open_a_new_cluster_at_once_can_all_read() {
    with_config(async |config| {
        let open = || async {
            let store = ElasticStore::open(config.clone()).await?;
            store.get_doc(DocKind::Setting, "none").await?;
            store.get(&[id(1)]).await
        };
        let opened = futures_util::future::join_all((0..4).map(|_| open())).await;
        for read in opened {
            assert_eq!(read.unwrap(), [None]);
        }
    })
    .await;
}

#[tokio::test]
async fn a_missing_half_is_repaired_by_the_same_submit() {
    with_config(async |config| {
        let prefix = config.index_prefix.clone();
        let store = ElasticStore::open(config).await.unwrap();
        submit_all(&store, (1..=3).map(state).collect()).await;
        for (n, index) in [(1, "bodies"), (2, "jobs")] {
            ask(
                "DELETE",
                &format!("{prefix}-{index}-2611/_doc/{}", id(n)),
                None,
            )
            .await;
        }
        submit_all(&store, (1..=3).map(state).collect()).await;
        let ids = [id(1), id(2), id(3)];
        assert!(store.get(&ids).await.unwrap().iter().all(Option::is_some));
        assert!(
            store
                .get_bodies(&ids)
                .await
                .unwrap()
                .iter()
                .all(Option::is_some)
        );
    })
    .await;
}

#[tokio::test]
async fn half_a_job_is_an_error_of_that_job_alone() {
    with_config(async |config| {
        let prefix = config.index_prefix.clone();
        let store = ElasticStore::open(config).await.unwrap();
        let block = |on: bool| Some(json!({"index.blocks.write": on}));
        let settings = format!("{prefix}-bodies-2611/_settings");
        ask("PUT", &settings, block(true)).await;
        let other_month = state_with(1, |s| {
            s.job_id = fairlead_job::JobId::new(2_610_010_000_000_000_001);
        });
        let jobs = vec![job(state(1)), job(other_month)];
        let results = store.submit(jobs).await;
        assert!(
            matches!(results[0], Err(ItemError::Unknown { .. })),
            "{results:?}"
        );
        assert!(results[1].is_ok(), "{results:?}");
        ask("PUT", &settings, block(false)).await;
        let version = submit_all(&store, vec![state(1)]).await[0];
        assert_eq!(read_one(&store, id(1)).await.version, version);
    })
    .await;
}

#[tokio::test]
async fn a_refused_half_takes_the_other_one_back() {
    with_config(async |config| {
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
    with_config(async |config| {
        let prefix = config.index_prefix.clone();
        let store = ElasticStore::open(config).await.unwrap();
        ask(
            "DELETE",
            &format!("{prefix}-jobs-2611,{prefix}-queues"),
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
        let mapping = ask("GET", &format!("{prefix}-jobs-2611/_mapping"), None).await;
        let mapping = &mapping[format!("{prefix}-jobs-2611")]["mappings"];
        assert_eq!(mapping["dynamic"], "strict");
        assert_eq!(mapping["properties"]["job_id"]["type"], "keyword");
    })
    .await;
}

#[tokio::test]
async fn moves_between_queues_are_seen_by_finds() {
    with_config(async |config| {
        let store = ElasticStore::open(config).await.unwrap();
        submit_all(&store, (1..=3).map(state).collect()).await;
        change(&store, id(2), |s| s.queue = "other".into())
            .await
            .unwrap();
        change(&store, id(3), |s| s.account = "bob".into())
            .await
            .unwrap();
        store.refresh().await.unwrap();
        let offer = Find {
            keys: vec!["dc.x86_64".into()],
            arch: "x86_64".into(),
            free_memory_mb: 4_000,
            tags: vec![],
            devices: vec![],
            limit: 1,
        };
        let page = store.find(&[offer]).await.unwrap().remove(0);
        assert_eq!(numbers(&page.jobs), [1, 2, 3]);
        let read = read_one(&store, id(2)).await.version;
        assert_eq!(page.jobs[1].version, read);
    })
    .await;
}

#[tokio::test]
async fn counts_beyond_one_answer_are_exact() {
    with_config(async |config| {
        let store = ElasticStore::open(config).await.unwrap();
        let states = (1..=10_050).map(|n| {
            state_with(n, |s| {
                s.host_keys = vec![format!("hw@{n:05}")];
                s.ready = n > 20;
            })
        });
        submit_all(&store, states.collect()).await;
        store.refresh().await.unwrap();
        let counts = store.counts().await.unwrap();
        assert_eq!((counts.total, counts.host_keys.len()), (10_030, 10_030));
        assert_eq!(counts.host_keys[0], ("hw@00021".to_owned(), 1));
        assert!(counts.host_keys.iter().all(|(_, n)| *n == 1));
        assert_eq!(counts.accounts, [("ann".to_owned(), 10_030)]);
        let all = Pull {
            by: PullBy::All,
            limit: 10_000,
            after: None,
        };
        let page = store.pull(&[all]).await.unwrap().remove(0);
        assert_eq!((page.jobs.len(), page.more), (10_000, true));
    })
    .await;
}

#[tokio::test]
async fn unknown_fields_stay_and_unknown_formats_are_passed_over() {
    with_config(async |config| {
        let prefix = config.index_prefix.clone();
        let store = ElasticStore::open(config).await.unwrap();
        submit_all(&store, (1..=3).map(state).collect()).await;
        let index = format!("{prefix}-jobs-2611");
        let mapping = json!({"properties": {"tomorrow": {"type": "long"}}});
        ask("PUT", &format!("{index}/_mapping"), Some(mapping)).await;
        for (n, doc) in [(1, json!({"tomorrow": 7})), (2, json!({"format": 3}))] {
            let path = format!("{index}/_update/{}", id(n));
            ask("POST", &path, Some(json!({"doc": doc}))).await;
        }
        change(&store, id(1), |s| s.priority = 5).await.unwrap();
        let read = ask("GET", &format!("{index}/_source/{}", id(1)), None).await;
        assert_eq!(
            (&read["tomorrow"], &read["priority"]),
            (&json!(7), &json!(5))
        );
        let error = store.get(&[id(2)]).await.unwrap_err();
        assert!(error.to_string().contains("format 3"), "{error}");
        store.refresh().await.unwrap();
        let all = Pull {
            by: PullBy::All,
            limit: 9,
            after: None,
        };
        let page = store.pull(&[all]).await.unwrap().remove(0);
        assert_eq!(numbers(&page.jobs), [1, 3]);
    })
    .await;
}

#[tokio::test]
async fn a_version_of_nonsense_is_a_conflict_and_hurts_nobody() {
    with_config(async |config| {
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

async fn refusal(config: ElasticConfig) -> String {
    match ElasticStore::open(config).await {
        Err(error @ StoreError::Unusable { .. }) => error.to_string(),
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[tokio::test]
async fn newer_templates_are_refused_and_left_alone() {
    with_config(async |config| {
        let prefix = config.index_prefix.clone();
        let template = json!({
            "index_patterns": [format!("{prefix}-jobs-*")], "priority": 500, "version": 9,
            "_meta": {"format": 2}, "template": {},
        });
        let path = format!("_index_template/{prefix}-jobs");
        ask("PUT", &path, Some(template)).await;
        let words = refusal(config.clone()).await;
        assert!(
            words.contains("format 2") && words.contains("hint:"),
            "{words}"
        );
        let stored = ask("GET", &path, None).await;
        assert_eq!(stored["index_templates"][0]["index_template"]["version"], 9);
        // A newer release of the same format: its template stays.
        let template = json!({
            "index_patterns": [format!("{prefix}-jobs-*")], "priority": 500, "version": 9,
            "_meta": {"format": 1}, "template": {},
        });
        ask("PUT", &path, Some(template)).await;
        ElasticStore::open(config).await.unwrap();
        let stored = ask("GET", &path, None).await;
        assert_eq!(stored["index_templates"][0]["index_template"]["version"], 9);
    })
    .await;
}

#[tokio::test]
async fn indices_that_refuse_the_mapping_are_named() {
    with_config(async |config| {
        let index = format!("{}-jobs-2601", config.index_prefix);
        let mapping = json!({"mappings": {"properties": {"stage": {"type": "long"}}}});
        ask("PUT", &index, Some(mapping)).await;
        let words = refusal(config).await;
        assert!(words.contains("refuse the mapping"), "{words}");
        assert!(words.contains("stage"), "{words}");
    })
    .await;
}

#[tokio::test]
async fn settings_reach_the_indices() {
    with_config(async |config| {
        let prefix = config.index_prefix.clone();
        let config = ElasticConfig {
            shards: 2,
            replicas: Some(0),
            refresh_interval: "2s".into(),
            ..config
        };
        let store = ElasticStore::open(config).await.unwrap();
        let name = format!("{prefix}-jobs-2611");
        submit_all(&store, vec![state(1)]).await;
        let read = ask("GET", &format!("{name}/_settings?flat_settings=true"), None).await;
        let settings = &read[&name]["settings"];
        assert_eq!(settings["index.number_of_shards"], "2");
        assert_eq!(settings["index.number_of_replicas"], "0");
        assert_eq!(settings["index.refresh_interval"], "2s");
    })
    .await;
}
