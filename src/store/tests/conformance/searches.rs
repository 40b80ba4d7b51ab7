//! Tests of searches for people.

use std::cmp::Reverse;

use fairlead_job::{Health, Stage};
use fairlead_store::{
    CaseCounts, JobState, JobStore, Parts, Search, SearchOrder, ShardPlace, Sharding, Usage,
};

use super::{change, id, numbers, state_with, submit_all};

type Holds = Box<dyn Fn(&JobState) -> bool>;

pub(crate) fn varied() -> Vec<JobState> {
    (1..=120)
        .map(|n| {
            let name = |prefix: &str, of: u64| format!("{prefix}{}", n % of);
            state_with(n, |s| {
                s.stage = [Stage::Submit, Stage::Running, Stage::Finish][(n % 3) as usize];
                s.health = [Health::Unknown, Health::Success][(n % 2) as usize];
                s.ready = n % 11 != 0;
                s.priority = i16::try_from(n % 3).unwrap() - 1;
                s.account = name("a", 4);
                s.queue = name("q", 5);
                s.host = if n % 6 == 0 {
                    String::new()
                } else {
                    name("h", 6)
                };
                s.suite = name("s", 7);
                s.submit_id = if n % 8 == 0 {
                    String::new()
                } else {
                    name("i", 8)
                };
                s.queue_label = if n % 4 == 0 {
                    name("l", 3)
                } else {
                    String::new()
                };
                s.group_id = name("g", 9);
                s.tbox_group = name("t", 10);
            })
        })
        .collect()
}

pub(crate) async fn filters_hold_together(store: &dyn JobStore) {
    let states = varied();
    submit_all(store, states.clone()).await;
    store.refresh().await.unwrap();
    let list = |names: &[&str]| {
        names
            .iter()
            .map(|n| (*n).to_owned())
            .collect::<Vec<String>>()
    };
    let base = Search {
        limit: 1_000,
        order: SearchOrder::OldestFirst,
        ..Search::default()
    };
    let at = |n: u64| Some(1_795_228_571_000 + n);
    let cases: Vec<(Search, Holds)> = vec![
        (base.clone(), Box::new(|_| true)),
        (
            Search {
                stages: vec![Stage::Submit, Stage::Finish],
                ..base.clone()
            },
            Box::new(|s| s.stage != Stage::Running),
        ),
        (
            Search {
                healths: vec![Health::Success],
                accounts: list(&["a1", "a2"]),
                ..base.clone()
            },
            Box::new(|s| s.health == Health::Success && (s.account == "a1" || s.account == "a2")),
        ),
        (
            Search {
                queues: list(&["q1"]),
                hosts: list(&["h1", "none"]),
                ..base.clone()
            },
            Box::new(|s| s.queue == "q1" && s.host == "h1"),
        ),
        (
            Search {
                queues: list(&["q1", ""]),
                queue_labels: list(&["l2", "l0"]),
                ..base.clone()
            },
            Box::new(|s| s.queue == "q1" || ["l0", "l2"].contains(&s.queue_label.as_str())),
        ),
        (
            Search {
                queue_labels: list(&["l1", ""]),
                ..base.clone()
            },
            Box::new(|s| s.queue_label == "l1"),
        ),
        (
            Search {
                suites: list(&["s3"]),
                submit_ids: list(&["i1", "i2", "i3"]),
                ..base.clone()
            },
            Box::new(|s| s.suite == "s3" && ["i1", "i2", "i3"].contains(&s.submit_id.as_str())),
        ),
        (
            Search {
                group_ids: list(&["g5"]),
                tbox_groups: list(&["t4"]),
                ..base.clone()
            },
            Box::new(|s| s.group_id == "g5" && s.tbox_group == "t4"),
        ),
        (
            Search {
                since_ms: at(30),
                until_ms: at(60),
                ..base.clone()
            },
            Box::new(move |s| Some(s.submit_ms) >= at(30) && Some(s.submit_ms) < at(60)),
        ),
        (
            Search {
                ready: Some(false),
                queues: list(&["q1", "q2"]),
                ..base.clone()
            },
            Box::new(|s| !s.ready && (s.queue == "q1" || s.queue == "q2")),
        ),
        (
            Search {
                ready: Some(true),
                stages: vec![Stage::Submit],
                ..base.clone()
            },
            Box::new(|s| s.ready && s.stage == Stage::Submit),
        ),
        (
            Search {
                before: Some((3, 0, id(40))),
                ..base.clone()
            },
            Box::new(|s| (Reverse(s.priority), s.job_id) < (Reverse(0), id(40))),
        ),
        (
            Search {
                accounts: list(&["nobody"]),
                ..base.clone()
            },
            Box::new(|_| false),
        ),
    ];
    for (search, holds) in cases {
        let wanted: Vec<u64> = states
            .iter()
            .filter(|s| holds(s))
            .map(|s| s.job_id.get() - id(0).get())
            .collect();
        let page = store.search(&search).await.unwrap();
        assert_eq!(numbers(&page.jobs), wanted, "{search:?}");
        assert_eq!((page.total, page.more), (wanted.len() as u64, false));
        let newest = Search {
            order: SearchOrder::NewestFirst,
            ..search
        };
        let mut page = numbers(&store.search(&newest).await.unwrap().jobs);
        page.reverse();
        assert_eq!(page, wanted, "{newest:?}");
    }
}

pub(crate) async fn pages_and_totals(store: &dyn JobStore) {
    submit_all(store, varied()).await;
    store.refresh().await.unwrap();
    let mut search = Search {
        limit: 0,
        accounts: vec!["a1".into(), "a3".into()],
        ..Search::default()
    };
    let count = store.search(&search).await.unwrap();
    assert_eq!((count.total, count.jobs.len()), (60, 0));
    search.limit = 7;
    let mut seen = vec![];
    loop {
        let page = store.search(&search).await.unwrap();
        assert_eq!(page.total, 60);
        seen.extend(numbers(&page.jobs));
        search.after = page.jobs.last().map(|j| j.state.job_id);
        if !page.more {
            break;
        }
    }
    assert_eq!(
        seen,
        (1..=120).rev().filter(|n| n % 2 == 1).collect::<Vec<_>>()
    );
    let behind_all = store.search(&search).await.unwrap();
    assert_eq!(
        (behind_all.total, behind_all.jobs.len(), behind_all.more),
        (60, 0, false)
    );
}

pub(crate) async fn alarms_come_by_time_while_a_job_waits(store: &dyn JobStore) {
    let at = |n, alarm_ms| state_with(n, |s| s.alarm_ms = alarm_ms);
    let held = state_with(6, |s| {
        s.alarm_ms = 5;
        s.stage = Stage::Running;
    });
    let states = vec![at(1, 30), at(2, 10), at(3, 0), at(4, 20), at(5, 10), held];
    submit_all(store, states).await;
    store.refresh().await.unwrap();
    let page = store.alarms(30, 10).await.unwrap();
    assert_eq!((numbers(&page.jobs), page.more), (vec![2, 5, 4], false));
    let page = store.alarms(31, 2).await.unwrap();
    assert_eq!((numbers(&page.jobs), page.more), (vec![2, 5], true));
    // One is put off, one is taken, one waits for nothing any more.
    change(store, id(2), |s| s.alarm_ms = 99).await.unwrap();
    change(store, id(5), |s| s.stage = Stage::Dispatch)
        .await
        .unwrap();
    change(store, id(4), |s| s.alarm_ms = 0).await.unwrap();
    store.refresh().await.unwrap();
    let page = store.alarms(100, 10).await.unwrap();
    assert_eq!(numbers(&page.jobs), [1, 2]);
    assert_eq!(page.jobs[0], super::read_one(store, id(1)).await);
}

pub(crate) async fn usage_is_summed_up(store: &dyn JobStore) {
    let used = |n, at, ms, account: &str, queue: &str| {
        state_with(n, |s| {
            (s.used_at_ms, s.used_ms) = (at, ms);
            (s.account, s.queue) = (account.into(), queue.into());
        })
    };
    let states = vec![
        used(1, 100, 5, "ann", "ann"),
        used(2, 200, 7_200_000, "ann", "shared"),
        used(3, 300, 11, "bob", "shared"),
        used(4, 0, 0, "bob", "bob"),
    ];
    submit_all(store, states).await;
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let usage = |since_ms| Usage {
        since_ms,
        accounts: names(&["bob", "ann", "nobody"]),
        queues: names(&["shared"]),
        uploads_of: Vec::new(),
    };
    store.refresh().await.unwrap();
    let all = store.usage(&usage(0)).await.unwrap();
    assert_eq!(all, [11, 7_200_005, 0, 7_200_011]);
    let late = store.usage(&usage(200)).await.unwrap();
    assert_eq!(late, [11, 7_200_000, 0, 7_200_011]);
    change(store, id(4), |s| (s.used_at_ms, s.used_ms) = (400, 9))
        .await
        .unwrap();
    store.refresh().await.unwrap();
    let late = store.usage(&usage(300)).await.unwrap();
    assert_eq!(late, [20, 0, 0, 11]);
    assert!(store.usage(&Usage::default()).await.unwrap().is_empty());
    for (n, bytes) in [(1, 5 << 40), (2, 7), (3, 9)] {
        change(store, id(n), |s| s.result_bytes = bytes)
            .await
            .unwrap();
    }
    store.refresh().await.unwrap();
    let usage = Usage {
        uploads_of: names(&["bob", "ann", "nobody"]),
        ..usage(300)
    };
    let all = store.usage(&usage).await.unwrap();
    assert_eq!(all, [20, 0, 0, 11, 9, (5 << 40) + 7, 0]);
}

pub(crate) async fn jobs_are_found_by_their_crash(store: &dyn JobStore) {
    let crash = |n, signature: &str| state_with(n, |s| s.crash_signature = signature.into());
    let states = vec![
        crash(1, "KASAN: use-after-free Read in frob"),
        crash(2, "KASAN: use-after-free Write in frob"),
        crash(3, ""),
        crash(4, "KASAN: use-after-fred%_[*"),
        crash(5, "kasan: use-after-free Read in frob"),
    ];
    submit_all(store, states.clone()).await;
    // One crashes later, and one is tried again.
    change(store, id(3), |s| {
        s.crash_signature = "KASAN: use-after-free".into();
    })
    .await
    .unwrap();
    change(store, id(1), |s| s.crash_signature.clear())
        .await
        .unwrap();
    store.refresh().await.unwrap();
    for (wanted, found) in [
        ("KASAN: use-after-free*", vec![2, 3]),
        ("KASAN: use-after-free", vec![3]),
        ("KASAN: use-after-free Write in frob", vec![2]),
        ("KASAN: use-after-fre_*", vec![]),
        ("KASAN: use-after-fred%_[*", vec![4]),
        ("nothing*", vec![]),
        ("*", vec![2, 3, 4, 5]),
    ] {
        let search = Search {
            crash_signature: Some(wanted.into()),
            order: SearchOrder::OldestFirst,
            limit: 10,
            ..Search::default()
        };
        let page = store.search(&search).await.unwrap();
        assert_eq!(numbers(&page.jobs), found, "{wanted}");
        assert_eq!(page.total, found.len() as u64);
        assert!(
            page.jobs
                .iter()
                .all(|job| search.finds_crash(&job.state.crash_signature))
        );
    }
}

pub(crate) async fn content_that_jobs_name_is_known(store: &dyn JobStore) {
    let content = |letter: &str| letter.repeat(64);
    let with = |n, inputs: &[String]| state_with(n, |s| s.inputs = inputs.to_vec());
    let of_job_1 = format!("job:{}", id(1));
    let states = vec![
        with(1, &[content("a"), content("b")]),
        with(2, &[content("b"), of_job_1.clone()]),
        with(3, &[]),
    ];
    submit_all(store, states).await;
    let asked = ["a", "b", "c", "d", "a"].map(content);
    // Nothing refreshes but the question itself.
    let named = async || store.named(&asked).await.unwrap();
    assert_eq!(named().await, [true, true, false, false, true]);
    change(store, id(1), |s| s.outputs = content("c"))
        .await
        .unwrap();
    assert_eq!(named().await, [true, true, true, false, true]);
    change(store, id(2), |s| s.inputs[1] = content("d"))
        .await
        .unwrap();
    change(store, id(1), |s| {
        s.outputs.clear();
        s.inputs.remove(0);
    })
    .await
    .unwrap();
    assert_eq!(named().await, [false, true, false, true, false]);
    assert_eq!(store.named(&[of_job_1]).await.unwrap(), [false]);
    assert_eq!(store.named(&[]).await.unwrap(), [false; 0]);
    let read = super::read_one(store, id(2)).await;
    assert_eq!(read.state.inputs, [content("b"), content("d")]);
}

pub(crate) async fn jobs_are_found_by_their_words(store: &dyn JobStore) {
    let with = |n, words: &[&str]| {
        state_with(n, |s| {
            s.kv = words.iter().map(|word| (*word).to_owned()).collect();
        })
    };
    let states = vec![
        with(1, &["suite=x", "kernel=v6.13", "nr_threads=4"]),
        with(2, &["suite=x", "kernel=v6.13-rc1", "nr_threads=4"]),
        with(
            3,
            &["suite=x", "kernel=v6.12", "nr_threads=8", "note=a=b, c"],
        ),
        with(4, &["suite=x"]),
    ];
    submit_all(store, states).await;
    // A job goes on with its words.
    change(store, id(1), |s| s.stage = Stage::Running)
        .await
        .unwrap();
    store.refresh().await.unwrap();
    let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect();
    for (wanted, found) in [
        (vec![words(&["kernel=v6.13"])], vec![1]),
        (vec![words(&["kernel=v6.13", "kernel=v6.12"])], vec![1, 3]),
        (vec![words(&["nr_threads=4"])], vec![1, 2]),
        (
            vec![
                words(&["nr_threads=4", "nr_threads=8"]),
                words(&["kernel=v6.12"]),
            ],
            vec![3],
        ),
        (vec![words(&["note=a=b, c"])], vec![3]),
        (vec![words(&["kernel=v6"])], vec![]),
        (vec![words(&["kernel=%"])], vec![]),
    ] {
        let search = Search {
            keywords: wanted.clone(),
            order: SearchOrder::OldestFirst,
            limit: 10,
            ..Search::default()
        };
        let page = store.search(&search).await.unwrap();
        assert_eq!(numbers(&page.jobs), found, "{wanted:?}");
        assert_eq!((page.total, page.wordless), (found.len() as u64, 0));
    }
}

pub(crate) async fn parents_and_shards_are_told_apart(store: &dyn JobStore) {
    let parent = state_with(1, |s| {
        s.ready = false;
        s.shards = Some(Box::new(Sharding {
            count: 2,
            fail_fast: true,
            released_ms: 5,
            ..Sharding::default()
        }));
    });
    let shard = |n, of, number| {
        state_with(n, |s| {
            s.shard = Some(ShardPlace {
                of: id(of),
                n: number,
                total: 2,
            });
        })
    };
    let states = vec![
        parent,
        shard(2, 1, 1),
        shard(3, 1, 2),
        state_with(4, |_| {}),
        shard(6, 5, 1),
    ];
    submit_all(store, states).await;
    // What changes later stays what it is.
    change(store, id(1), |s| {
        if let Some(shards) = &mut s.shards {
            shards.made = true;
            shards.ends = [(Health::Fail, 2)].into();
        }
        s.cases = Some(Box::new(CaseCounts {
            passed: 7,
            first_failures: vec!["1: a".into()],
            ..CaseCounts::default()
        }));
    })
    .await
    .unwrap();
    change(store, id(2), |s| s.stage = Stage::Running)
        .await
        .unwrap();
    store.refresh().await.unwrap();
    for (parts, of, found) in [
        (Parts::All, None, vec![1, 2, 3, 4, 6]),
        (Parts::NoShards, None, vec![1, 4]),
        (Parts::NoParents, None, vec![2, 3, 4, 6]),
        (Parts::OnlyShards, None, vec![2, 3, 6]),
        (Parts::All, Some(id(1)), vec![2, 3]),
        (Parts::All, Some(id(4)), vec![]),
    ] {
        let search = Search {
            parts,
            shards_of: of,
            order: SearchOrder::OldestFirst,
            limit: 10,
            ..Search::default()
        };
        let page = store.search(&search).await.unwrap();
        assert_eq!(numbers(&page.jobs), found, "{parts:?} {of:?}");
        assert_eq!(page.total, found.len() as u64);
        assert!(page.jobs.iter().all(|job| parts.finds(&job.state)));
    }
    let read = store.get(&[id(1)]).await.unwrap().remove(0).unwrap().state;
    let shards = read.shards.unwrap();
    assert!(shards.made && shards.fail_fast && shards.released_ms == 5);
    assert_eq!(
        (shards.ends[&Health::Fail], read.cases.unwrap().passed),
        (2, 7)
    );
}

pub(crate) async fn jobs_of_one_fingerprint_are_found(store: &dyn JobStore) {
    let print = |n, print: &str| state_with(n, |s| s.fingerprint = print.into());
    submit_all(
        store,
        vec![print(1, "p"), print(2, "q"), print(3, "p"), print(4, "")],
    )
    .await;
    store.refresh().await.unwrap();
    let search = Search {
        fingerprints: vec!["p".into()],
        limit: 10,
        ..Search::default()
    };
    let page = store.search(&search).await.unwrap();
    assert_eq!((numbers(&page.jobs), page.total), (vec![3, 1], 2));
}
