//! Counts, pulls, finds and changes over what only a server can hold.

use fairlead_job::JobId;
use fairlead_store::{
    ChangeMark, Changes, ElasticConfig, ElasticStore, Find, JobStore, Pull, PullBy,
};
use serde_json::json;

use crate::{
    conformance::{change, id, numbers, read_one, state, state_with, submit_all},
    with_config,
};

#[tokio::test]
async fn moves_between_queues_are_seen_by_finds() {
    with_config(async |_, config| {
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
    with_config(async |_, config| {
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
    with_config(async |server, config| {
        let prefix = config.index_prefix.clone();
        let store = ElasticStore::open(config).await.unwrap();
        submit_all(&store, (1..=3).map(state).collect()).await;
        let index = format!("{prefix}-jobs-2611");
        let mapping = json!({"properties": {"tomorrow": {"type": "long"}}});
        server
            .ask("PUT", &format!("{index}/_mapping"), Some(mapping))
            .await;
        for (n, doc) in [(1, json!({"tomorrow": 7})), (2, json!({"format": 3}))] {
            let path = format!("{index}/_update/{}", id(n));
            server.ask("POST", &path, Some(json!({"doc": doc}))).await;
        }
        change(&store, id(1), |s| s.priority = 5).await.unwrap();
        let read = server
            .ask("GET", &format!("{index}/_source/{}", id(1)), None)
            .await;
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

fn behind(since: &ChangeMark, limit: u32) -> [Changes; 1] {
    [Changes {
        since: since.clone(),
        waiting: true,
        limit,
    }]
}

#[tokio::test]
async fn changes_of_several_shards_are_read_to_the_end() {
    with_config(async |_, config| {
        let config = ElasticConfig {
            shards: 3,
            ..config
        };
        let store = ElasticStore::open(config).await.unwrap();
        submit_all(&store, (1..=60).map(state).collect()).await;
        store.refresh().await.unwrap();
        let since = store.change_mark().await.unwrap();
        assert_eq!(since.0.len(), 3, "{since:?}");
        for n in 1..=60 {
            change(&store, id(n), |s| s.ready = n % 2 == 0)
                .await
                .unwrap();
        }
        store.refresh().await.unwrap();
        let (mut at, mut read, mut pages) = (since, Vec::new(), 0);
        loop {
            let page = store.changes(&behind(&at, 4)).await.unwrap().remove(0);
            assert!(page.jobs.len() <= 3 * 4);
            read.extend(numbers(&page.jobs));
            at = page.mark;
            pages += 1;
            if !page.more {
                break;
            }
        }
        read.sort_unstable();
        assert_eq!(read, (1..=30).map(|n| 2 * n).collect::<Vec<_>>());
        assert!(pages >= 3);
    })
    .await;
}

#[tokio::test]
async fn changes_in_an_index_that_another_replica_made_are_read_at_once() {
    with_config(async |server, config| {
        let prefix = config.index_prefix.clone();
        let one = ElasticStore::open(config.clone()).await.unwrap();
        let other = ElasticStore::open(config).await.unwrap();
        submit_all(&one, vec![state(1)]).await;
        one.refresh().await.unwrap();
        let since = one.change_mark().await.unwrap();
        let of_another_month = state_with(1, |s| s.job_id = JobId::new(2_601_010_000_000_000_001));
        submit_all(&other, vec![of_another_month.clone()]).await;
        other.refresh().await.unwrap();
        let page = one.changes(&behind(&since, 9)).await.unwrap().remove(0);
        assert_eq!(page.jobs.len(), 1);
        assert_eq!(page.jobs[0].state, of_another_month);

        // An index that takes another one's place counts its changes anew.
        for n in 1..=5 {
            change(&one, id(1), |s| s.priority = n).await.unwrap();
        }
        one.refresh().await.unwrap();
        let since = one.change_mark().await.unwrap();
        server
            .ask("DELETE", &format!("{prefix}-jobs-2611"), None)
            .await;
        submit_all(&one, vec![state(2)]).await;
        one.refresh().await.unwrap();
        let later = ElasticStore::open(ElasticConfig {
            index_prefix: prefix,
            ..server.config()
        });
        let later = later.await.unwrap();
        let page = later.changes(&behind(&since, 9)).await.unwrap().remove(0);
        assert_eq!(numbers(&page.jobs), [2]);
    })
    .await;
}
