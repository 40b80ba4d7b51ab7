//! Tests of reads: an incomplete answer is an error, and known facts are not requested again.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicU32, Ordering},
};

use fairlead_job::JobId;
use fairlead_store::{
    ChangeMark, ChangeRanges, Changes, JobStore, Pull, PullBy, Search, SearchOrder, SearchPage,
    StoreError,
};

use crate::{Reply, Stub, error, opened};

#[tokio::test]
async fn a_search_that_is_not_whole_is_an_error() {
    let stub = Stub::start().await;
    let store = opened(&stub).await;
    for body in [
        r#"{"_shards":{"failed":1,"failures":[{"reason":{"type":"x","reason":"gone"}}]},"hits":{}}"#,
        r#"{"timed_out":true,"hits":{}}"#,
    ] {
        let many = format!(r#"{{"responses":[{body}]}}"#);
        stub.answer(move |(_, path, _)| {
            let text = if path.starts_with("/_msearch") {
                &many
            } else {
                body
            };
            Some(Reply::Json(200, text.to_owned()))
        });
        let error = store.counts().await.unwrap_err();
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
        let all = Pull {
            by: PullBy::All,
            limit: 5,
            after: None,
        };
        store.pull(&[all]).await.unwrap_err();
    }
    stub.answer(|_| Some(Reply::Json(400, error("parsing_exception"))));
    let error = store.counts().await.unwrap_err();
    assert!(matches!(error, StoreError::Refused { .. }), "{error:?}");
    stub.answer(|_| Some(Reply::Json(500, "oops".into())));
    let error = store.counts().await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
}

#[tokio::test]
async fn an_idle_poll_of_changes_is_one_request() {
    let stub = Stub::start().await;
    let store = opened(&stub).await;
    // One shard of an index; a second index of two shards comes later.
    let with_two = Arc::new(AtomicBool::new(false));
    let has_two = Arc::clone(&with_two);
    stub.answer(move |(_, path, body)| {
        let two = has_two.load(Ordering::Relaxed);
        let text = if path.contains("/_settings") {
            let of = |name: &str, shards: u32| {
                format!(
                    r#""{name}":{{"settings":{{"index":{{"number_of_shards":"{shards}","uuid":"u-{name}"}}}}}}"#
                )
            };
            let more = if two { format!(",{}", of("b", 2)) } else { String::new() };
            format!("{{{}{more}}}", of("a", 1))
        } else {
            // The last search asks whether there is any other index.
            let searches = body.lines().count() / 2;
            let knows_all = !two || body.contains(",-b");
            let others = format!(r#"{{"_shards":{{"total":{}}}}}"#, u32::from(!knows_all));
            let none = r#"{"_shards":{"total":1}},"#.repeat(searches - 1);
            format!(r#"{{"responses":[{none}{others}]}}"#)
        };
        Some(Reply::Json(200, text))
    });
    let asked = [true, false].map(|waiting| Changes {
        since: ChangeMark::default(),
        within: ChangeRanges::new(),
        waiting,
        limit: 10,
    });
    store.changes(&asked).await.unwrap();
    assert_eq!(stub.requests(), 2);
    for _ in 0..3 {
        store.changes(&asked).await.unwrap();
    }
    assert_eq!(stub.requests(), 5);
    with_two.store(true, Ordering::Relaxed);
    store.changes(&asked).await.unwrap();
    assert_eq!(stub.requests(), 5 + 3);
    store.changes(&asked).await.unwrap();
    assert_eq!(stub.requests(), 5 + 3 + 1);
}

#[tokio::test]
async fn searches_that_meet_overload_are_tried_again_within_bounds() {
    let stub = Stub::start().await;
    let store = opened(&stub).await;
    let all = [Pull {
        by: PullBy::All,
        limit: 5,
        after: None,
    }];
    let busy = r#"{"responses":[{"status":429,"error":{"type":"circuit_breaking_exception","reason":"too large"}}]}"#;
    stub.answer(|_| Some(Reply::Json(200, busy.to_owned())));
    let error = store.pull(&all).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    assert_eq!(stub.requests(), 5);
    assert!(store.health().reads.problem.contains("circuit_breaking"));
    let times = AtomicU32::new(0);
    stub.answer(move |_| {
        let is_busy = times.fetch_add(1, Ordering::Relaxed) < 2;
        let text = if is_busy {
            busy
        } else {
            r#"{"responses":[{}]}"#
        };
        Some(Reply::Json(200, text.to_owned()))
    });
    assert!(store.pull(&all).await.unwrap()[0].jobs.is_empty());
    assert_eq!(stub.requests(), 3);
    assert!(store.health().is_well());
}

/// A search of an Elasticsearch that has so many jobs, and so many of them in each step back. Answers the least id of
/// each step: 0 is all.
async fn searched(total: u64, found: &'static [usize], search: &Search) -> (SearchPage, Vec<u64>) {
    let stub = Stub::start().await;
    let store = opened(&stub).await;
    let steps = Arc::new(Mutex::new(Vec::new()));
    let asked = Arc::clone(&steps);
    stub.answer(move |(_, _, body)| {
        let page = body.lines().last().unwrap_or_default();
        let from = page.split_once(r#"{"gte":"#).map(|(_, id)| &id[..19]);
        let from = from.map_or(0, |id| id.parse().unwrap());
        // In its months alone.
        let place = body.lines().rev().nth(1).unwrap_or_default();
        let month = JobId::new(from).month();
        let is_named = place.contains(&format!("-jobs-{month}")) && !place.contains('*');
        assert!(from == 0 || is_named, "{place}");
        let mut asked = asked.lock().unwrap();
        let hits = vec![r#"{"_source":{}}"#; found[asked.len()]].join(",");
        asked.push(from);
        let page = format!(r#"{{"hits":{{"hits":[{hits}]}}}}"#);
        let count = format!(r#"{{"hits":{{"total":{{"value":{total}}}}}}}"#);
        let is_first = body.contains(r#""track_total_hits":true"#);
        let both = if is_first {
            format!("{count},{page}")
        } else {
            page
        };
        let text = format!(r#"{{"responses":[{both}]}}"#);
        Some(Reply::Json(200, text))
    });
    let page = store.search(search).await.unwrap();
    let steps = steps.lock().unwrap().clone();
    (page, steps)
}

#[tokio::test]
async fn the_newest_are_looked_for_in_the_last_hour_and_then_further_back() {
    // 2026-11-21T02:36:11Z
    let search = Search {
        limit: 2,
        after: Some(JobId::new(2_611_210_236_110_700_000)),
        ..Search::default()
    };
    let (hour, day, days_31) = (
        2_611_210_136_110_000_000,
        2_611_200_236_110_000_000,
        2_610_210_236_110_000_000,
    );
    let (page, steps) = searched(20_000_000, &[3], &search).await;
    assert_eq!(
        (page.total, page.more, steps),
        (20_000_000, true, vec![hour])
    );
    let (page, steps) = searched(20_000, &[0, 2, 3], &search).await;
    assert_eq!((page.more, steps), (true, vec![hour, day, days_31]));
    let (page, steps) = searched(20_000, &[0, 0, 0, 1], &search).await;
    assert_eq!((page.more, steps), (false, vec![hour, day, days_31, 0]));
    let (_, steps) = searched(10_000, &[2, 3], &search).await;
    assert_eq!(steps, [hour, 0], "few are looked at all together");
    let until = Search {
        after: None,
        until_ms: Some(1_795_228_571_999),
        ..search.clone()
    };
    assert_eq!(searched(20_000, &[3], &until).await.1, [hour]);
    let oldest = Search {
        order: SearchOrder::OldestFirst,
        ..search
    };
    assert_eq!(searched(20_000, &[0], &oldest).await.1, [0]);
}

/// What is not counted must never be taken for ended.
#[tokio::test]
async fn a_month_whose_jobs_cannot_be_counted_is_not_dropped() {
    let stub = Stub::start().await;
    let store = opened(&stub).await;
    for found in [
        r#"{"_shards":{"total":1},"hits":{}}"#,
        r#"{"_shards":{"total":0},"hits":{"total":{"value":0}}}"#,
        r#"{"_shards":{"total":1,"failed":1},"hits":{"total":{"value":0}}}"#,
    ] {
        let index = Arc::new(Mutex::new(String::new()));
        let searched = Arc::clone(&index);
        let dropped = Arc::new(AtomicU32::new(0));
        let drops = Arc::clone(&dropped);
        stub.answer(move |(method, path, _)| {
            if method == "DELETE" {
                drops.fetch_add(1, Ordering::Relaxed);
            }
            let text = if path.contains("/_settings") {
                // As it is asked for: by a pattern, then by its name.
                let begin = path.split(['*', '/', ',']).nth(1).unwrap_or_default();
                let name = format!(
                    "{}-2501",
                    begin.trim_end_matches("-2501").trim_end_matches('-')
                );
                searched.lock().unwrap().clone_from(&name);
                format!(r#"{{"{name}":{{"settings":{{"index":{{"uuid":"u"}}}}}}}}"#)
            } else {
                found.to_owned()
            };
            Some(Reply::Json(200, text))
        });
        let error = store
            .drop_oldest(JobId::first_of_month("2605").unwrap())
            .await;
        assert!(error.is_err(), "{found}: {error:?}");
        assert!(index.lock().unwrap().contains("-jobs-2501"), "{index:?}");
        assert_eq!(dropped.load(Ordering::Relaxed), 0, "{found}");
    }
}
