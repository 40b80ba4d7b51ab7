//! Tests of opening: templates, mappings and settings as a server holds them.

use std::collections::BTreeSet;

use fairlead_store::{DocKind, ElasticConfig, ElasticStore, JobStore, StoreError};
use serde_json::{Value, json};

use crate::{
    conformance::{id, read_one, state, submit_all},
    with_config,
};

async fn refusal(config: ElasticConfig) -> String {
    match ElasticStore::open(config).await {
        Err(error @ StoreError::Unusable { .. }) => error.to_string(),
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[tokio::test]
async fn a_second_replica_opens_the_same_indices() {
    with_config(async |_, config| {
        let one = ElasticStore::open(config.clone()).await.unwrap();
        submit_all(&one, vec![state(1)]).await;
        let other = ElasticStore::open(config).await.unwrap();
        assert_eq!(read_one(&other, id(1)).await.state, state(1));
        assert!(other.health().name.starts_with("elasticsearch "));
        assert!(other.health().is_well());
    })
    .await;
}

/// The second finds the first one's indices there before their shards are: reading them failed, and with
/// it the start of a replica.
#[tokio::test]
async fn replicas_that_open_a_new_cluster_at_once_can_all_read() {
    with_config(async |_, config| {
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

/// Six indices, and as many requests: each costs the cluster's master a while, and each shard costs memory for ever.
#[tokio::test]
async fn an_empty_lab_has_six_indices() {
    with_config(async |server, config| {
        let prefix = config.index_prefix.clone();
        ElasticStore::open(config).await.unwrap();
        let made = server.ask("GET", &format!("{prefix}-*"), None).await;
        let made = made.as_object().unwrap().keys();
        let kinds = made
            .map(|name| name[prefix.len() + 1..].trim_end_matches(|c: char| c.is_ascii_digit()));
        // Shortly before a month begins its indices are there as well.
        let kinds: BTreeSet<&str> = kinds.collect();
        let all = [
            "documents",
            "events-",
            "jobs-",
            "leases",
            "sessions",
            "settings",
        ];
        assert_eq!(kinds, BTreeSet::from(all));
    })
    .await;
}

#[tokio::test]
async fn newer_templates_are_refused_and_left_alone() {
    with_config(async |server, config| {
        let prefix = config.index_prefix.clone();
        let template = json!({
            "index_patterns": [format!("{prefix}-jobs-*")], "priority": 500, "version": 99,
            "_meta": {"format": 3}, "template": {},
        });
        let path = format!("_index_template/{prefix}-jobs");
        server.ask("PUT", &path, Some(template)).await;
        let words = refusal(config.clone()).await;
        assert!(
            words.contains("format 3") && words.contains("hint:"),
            "{words}"
        );
        let stored = server.ask("GET", &path, None).await;
        assert_eq!(
            stored["index_templates"][0]["index_template"]["version"],
            99
        );
        // A newer release of the same format: its template stays.
        let template = json!({
            "index_patterns": [format!("{prefix}-jobs-*")], "priority": 500, "version": 99,
            "_meta": {"format": 2}, "template": {},
        });
        server.ask("PUT", &path, Some(template)).await;
        ElasticStore::open(config).await.unwrap();
        let stored = server.ask("GET", &path, None).await;
        assert_eq!(
            stored["index_templates"][0]["index_template"]["version"],
            99
        );
    })
    .await;
}

#[tokio::test]
async fn indices_that_refuse_the_mapping_are_named() {
    with_config(async |server, config| {
        let index = format!("{}-jobs-2601", config.index_prefix);
        let mapping = json!({"mappings": {"properties": {"stage": {"type": "long"}}}});
        server.ask("PUT", &index, Some(mapping)).await;
        let words = refusal(config).await;
        assert!(words.contains("refuse the mapping"), "{words}");
        assert!(words.contains("stage"), "{words}");
    })
    .await;
}

#[tokio::test]
async fn what_is_there_is_left_alone_and_what_lacks_is_added() {
    with_config(async |server, config| {
        let prefix = config.index_prefix.clone();
        ElasticStore::open(config.clone()).await.unwrap();
        let path = format!("_index_template/{prefix}-jobs");
        let stored = server.ask("GET", &path, None).await;
        let stored = &stored["index_templates"][0]["index_template"];
        // Of this version, with an operator's own change: it stays.
        let fields = ["index_patterns", "priority", "version", "_meta", "template"];
        let mut changed: Value = fields
            .map(|name| (name.to_owned(), stored[name].clone()))
            .into_iter()
            .collect();
        changed["template"]["settings"]["index"]["refresh_interval"] = json!("3s");
        // An index of a release that knew fewer fields: made while there is no template.
        let old = format!("{prefix}-jobs-2601");
        server.ask("DELETE", &path, None).await;
        let fewer = json!({"mappings": {"properties": {"queue": {"type": "keyword"}}}});
        server.ask("PUT", &old, Some(fewer)).await;
        server.ask("PUT", &path, Some(changed)).await;
        ElasticStore::open(config).await.unwrap();
        let read = server.ask("GET", &format!("{old}/_mapping"), None).await;
        let stage = &read[&old]["mappings"]["properties"]["stage"];
        assert_eq!(stage["type"], "keyword");
        let read = server.ask("GET", &path, None).await;
        let settings = &read["index_templates"][0]["index_template"]["template"]["settings"];
        assert_eq!(settings["index"]["refresh_interval"], "3s");
    })
    .await;
}

#[tokio::test]
async fn settings_reach_the_indices() {
    with_config(async |server, config| {
        let prefix = config.index_prefix.clone();
        let config = ElasticConfig {
            shards: 2,
            replicas: Some(0),
            refresh_interval: "2s".into(),
            ..config
        };
        let store = ElasticStore::open(config).await.unwrap();
        submit_all(&store, vec![state(1)]).await;
        // What is read by id only needs no refresh.
        for (index, refresh) in [
            ("jobs-2611", "2s"),
            ("documents", "2s"),
            ("sessions", "30s"),
        ] {
            let name = format!("{prefix}-{index}");
            let read = server
                .ask("GET", &format!("{name}/_settings?flat_settings=true"), None)
                .await;
            let settings = &read[&name]["settings"];
            assert_eq!(settings["index.number_of_shards"], "2", "{name}");
            assert_eq!(settings["index.number_of_replicas"], "0", "{name}");
            assert_eq!(settings["index.refresh_interval"], refresh, "{name}");
        }
    })
    .await;
}
