//! Tests of counts, pulls, finds and changes over data that only a server can hold.

use std::collections::BTreeMap;

use fairlead_job::JobId;
use fairlead_store::{
    ChangeMark, ChangeRanges, Changes, ElasticConfig, ElasticStore, Find, JobState, JobStore, Pull,
    PullBy,
};
use serde_json::json;

use crate::{
    conformance::{self, change, changed, id, numbers, read_one, state, state_with, submit_all},
    with_config,
};

fn offer() -> Find {
    Find {
        host: "h1".to_owned(),
        keys: vec!["dc.x86_64".into()],
        arch: "x86_64".into(),
        free_memory_mb: 4_000,
        free_cpus: None,
        tags: vec![],
        devices: vec![],
        accounts: vec![],
        limit: 1,
        pairs_max: u32::MAX,
        after: None,
    }
}

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
        let page = store.find(&[offer()]).await.unwrap().remove(0);
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
        within: ChangeRanges::new(),
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
            read.extend(changed(&page));
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
        assert_eq!(page.jobs[0].0, of_another_month.job_id);

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
        assert_eq!(changed(&page), [2]);
    })
    .await;
}

#[tokio::test]
async fn counts_and_finds_beyond_a_page_of_names_are_exact_over_shards() {
    with_config(async |_, config| {
        let config = ElasticConfig {
            shards: 3,
            ..config
        };
        let store = ElasticStore::open(config.clone()).await.unwrap();
        // Each cell's jobs lie in several shards, and each shard has another largest one.
        let states: Vec<JobState> = (1..=300)
            .map(|n| {
                state_with(n, |s| {
                    s.account = format!("a{}", n * n % 23);
                    s.queue = format!("q{}", n % 7);
                    s.host_keys = vec![format!("k{}", n * n % 41), "dc.x86_64".into()];
                    s.priority = i16::try_from(n * 31 % 11).unwrap();
                    s.ready = n % 9 != 0;
                })
            })
            .collect();
        submit_all(&store, states.clone()).await;
        store.refresh().await.unwrap();
        let small = ElasticStore::open(config).await.unwrap();
        let small = small.with_page_of_names(5);
        let counts = store.counts().await.unwrap();
        assert_eq!(small.counts().await.unwrap(), counts);
        let waiting = || states.iter().filter(|s| s.ready);
        assert_eq!(counts.total, waiting().count() as u64);
        for (name, count) in &counts.accounts {
            let naive = waiting().filter(|s| s.account == *name).count() as u64;
            assert_eq!(*count, naive, "{name}");
        }
        for (name, count) in &counts.host_keys {
            let naive = waiting().filter(|s| s.host_keys.contains(name)).count() as u64;
            assert_eq!(*count, naive, "{name}");
        }
        for limit in [1, 3] {
            let offer = Find { limit, ..offer() };
            let page = store.find(std::slice::from_ref(&offer)).await.unwrap();
            assert_eq!(small.find(&[offer]).await.unwrap(), page);
            assert_eq!(numbers(&page[0].jobs), best_of_each_cell(&states, limit));
            assert!(page[0].more);
        }
    })
    .await;
}

fn best_of_each_cell(states: &[JobState], limit: u32) -> Vec<u64> {
    let mut waiting: Vec<&JobState> = states.iter().filter(|s| s.ready).collect();
    waiting.sort_by_key(|s| (-i32::from(s.priority), s.job_id));
    let mut taken: BTreeMap<(&str, &str), u32> = BTreeMap::new();
    waiting.retain(|s| {
        let of_cell = taken.entry((&s.queue, &s.account)).or_default();
        *of_cell += 1;
        *of_cell <= limit
    });
    let ids = waiting.iter().map(|s| s.job_id.get() - id(0).get());
    ids.collect()
}

#[tokio::test]
async fn random_histories_over_shards_and_pages_of_two_names_equal_the_model() {
    with_config(async |_, config| {
        let config = ElasticConfig {
            shards: 3,
            ..config
        };
        let store = ElasticStore::open(config).await.unwrap();
        let store = store.with_page_of_names(2);
        conformance::model::random_histories_equal_a_naive_model(&store).await;
    })
    .await;
}
