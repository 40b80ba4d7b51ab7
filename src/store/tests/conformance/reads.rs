//! Tests of counts, pulls and finds over waiting jobs.

use std::collections::BTreeMap;

use fairlead_job::{JobId, Stage};
use fairlead_store::{JobState, JobStore, Page, Pull, PullBy, Search};

use super::{change, id, numbers, read_one, state, state_with, submit_all};

pub(crate) async fn counts_are_exact(store: &dyn JobStore) {
    // 1,500 names of each dimension: more than any default page of terms.
    let states: Vec<_> = (1..=3_000)
        .map(|n| {
            state_with(n, |s| {
                s.account = format!("account-{}", n % 1_500);
                s.queue = format!("queue-{}", n % 1_400);
                s.host_keys = vec![format!("key-{}", n % 1_450), "hw.x86_64".into()];
                s.ready = n % 10 != 0;
                if n % 7 == 0 {
                    s.stage = Stage::Dispatch;
                }
            })
        })
        .collect();
    let mut total = 0;
    let mut by = [const { BTreeMap::<String, u64>::new() }; 3];
    for state in states
        .iter()
        .filter(|s| s.ready && s.stage == Stage::Submit)
    {
        total += 1;
        *by[0].entry(state.account.clone()).or_default() += 1;
        *by[1].entry(state.queue.clone()).or_default() += 1;
        for key in &state.host_keys {
            *by[2].entry(key.clone()).or_default() += 1;
        }
    }
    submit_all(store, states).await;
    store.refresh().await.unwrap();
    let counts = store.counts().await.unwrap();
    assert_eq!(counts.total, total);
    let lists = [counts.accounts, counts.queues, counts.host_keys];
    for (list, wanted) in lists.into_iter().zip(by) {
        assert_eq!(list, wanted.into_iter().collect::<Vec<_>>());
    }
}

pub(crate) async fn counts_follow_every_change(store: &dyn JobStore) {
    submit_all(store, (1..=4).map(state).collect()).await;
    change(store, id(1), |s| s.stage = Stage::Dispatch)
        .await
        .unwrap();
    change(store, id(2), |s| s.ready = false).await.unwrap();
    change(store, id(3), |s| {
        s.queue = "shared".into();
        s.account = "bob".into();
        s.host_keys = vec!["hw@a".into(), "hw@b".into()];
    })
    .await
    .unwrap();
    store.refresh().await.unwrap();
    let counts = store.counts().await.unwrap();
    let pairs = |list: &[(&str, u64)]| -> Vec<(String, u64)> {
        list.iter().map(|(k, n)| ((*k).to_owned(), *n)).collect()
    };
    assert_eq!(counts.total, 2);
    assert_eq!(counts.accounts, pairs(&[("ann", 1), ("bob", 1)]));
    assert_eq!(counts.queues, pairs(&[("ann", 1), ("shared", 1)]));
    assert_eq!(
        counts.host_keys,
        pairs(&[("dc.x86_64", 1), ("hw@a", 1), ("hw@b", 1)])
    );
    // A requeue waits again.
    change(store, id(1), |s| s.stage = Stage::Submit)
        .await
        .unwrap();
    store.refresh().await.unwrap();
    assert_eq!(store.counts().await.unwrap().total, 3);
}

async fn one_pull(
    store: &dyn JobStore,
    by: PullBy,
    limit: u32,
    after: Option<(u8, i16, JobId)>,
) -> Page {
    let request = Pull { by, limit, after };
    store.pull(&[request]).await.unwrap().remove(0)
}

pub(crate) async fn pulls_come_in_order_and_in_pages(store: &dyn JobStore) {
    let states: Vec<_> = (1..=60)
        .map(|n| {
            state_with(n, |s| {
                s.class = [3, 9, 0, 1][usize::try_from(n % 4).unwrap()];
                s.priority = [0, -100, 100, i16::MAX, i16::MIN][usize::try_from(n % 5).unwrap()];
                s.ready = n % 6 != 0;
            })
        })
        .collect();
    let mut wanted: Vec<&JobState> = states.iter().filter(|s| s.ready).collect();
    wanted.sort_by_key(|s| (u8::MAX - s.class, -i32::from(s.priority), s.job_id));
    let wanted: Vec<u64> = wanted
        .iter()
        .map(|s| s.job_id.get() - id(0).get())
        .collect();
    submit_all(store, states.clone()).await;
    store.refresh().await.unwrap();

    let whole = one_pull(store, PullBy::All, 10_000, None).await;
    assert_eq!((numbers(&whole.jobs), whole.more), (wanted.clone(), false));
    let exact = one_pull(store, PullBy::All, 50, None).await;
    assert_eq!((exact.jobs.len(), exact.more), (50, false));
    let mut seen = vec![];
    let mut after = None;
    loop {
        let page = one_pull(store, PullBy::All, 7, after).await;
        assert!(page.jobs.len() <= 7);
        seen.extend(numbers(&page.jobs));
        let last = &page.jobs.last().unwrap().state;
        after = Some((last.class, last.priority, last.job_id));
        if !page.more {
            break;
        }
    }
    assert_eq!(seen, wanted);
    // Versions as read here are good for a compare-and-set.
    let first = &whole.jobs[0];
    assert_eq!(first, &read_one(store, first.state.job_id).await);
}

pub(crate) async fn pulls_slice_by_dimension(store: &dyn JobStore) {
    let states = (1..=12)
        .map(|n| {
            state_with(n, |s| {
                s.account = format!("a{}", n % 2);
                s.queue = format!("q{}", n % 3);
                s.host_keys = vec![format!("k{}", n % 4), "any".into()];
            })
        })
        .collect();
    submit_all(store, states).await;
    store.refresh().await.unwrap();
    let pull = |by| Pull {
        by,
        limit: 100,
        after: None,
    };
    let pages = store
        .pull(&[
            pull(PullBy::Account("a1".into())),
            pull(PullBy::Queue("q0".into())),
            pull(PullBy::HostKey("k3".into())),
            pull(PullBy::HostKey("any".into())),
            pull(PullBy::Account("nobody".into())),
        ])
        .await
        .unwrap();
    let got: Vec<Vec<u64>> = pages.iter().map(|page| numbers(&page.jobs)).collect();
    assert_eq!(got[0], [1, 3, 5, 7, 9, 11]);
    assert_eq!(got[1], [3, 6, 9, 12]);
    assert_eq!(got[2], [3, 7, 11]);
    assert_eq!(got[3], (1..=12).collect::<Vec<_>>());
    assert!(got[4].is_empty());
    let last = &pages[3].jobs[4].state;
    let rest = one_pull(
        store,
        PullBy::HostKey("any".into()),
        5,
        Some((last.class, last.priority, last.job_id)),
    )
    .await;
    assert_eq!(
        (numbers(&rest.jobs), rest.more),
        (vec![6, 7, 8, 9, 10], true)
    );
}

/// A queue has jobs of the account of its name and of others; an account has jobs in its queue and in others.
pub(crate) async fn a_queue_is_shared_beside_its_own_account(store: &dyn JobStore) {
    let states: Vec<_> = (1..=36)
        .map(|n| {
            state_with(n, |s| {
                s.account = ["ann", "bob", "carl"][usize::try_from(n % 3).unwrap()].into();
                s.queue = ["ann", &s.account, "shared"][usize::try_from(n / 3 % 3).unwrap()].into();
                s.priority = i16::try_from(n * 5 % 7).unwrap();
            })
        })
        .collect();
    submit_all(store, states.clone()).await;
    store.refresh().await.unwrap();
    let wanted = |holds: &dyn Fn(&JobState) -> bool| {
        let mut wanted: Vec<&JobState> = states.iter().filter(|s| holds(s)).collect();
        wanted.sort_by_key(|s| (-i32::from(s.priority), s.job_id));
        let ids = wanted.iter().map(|s| s.job_id.get() - id(0).get());
        ids.collect::<Vec<u64>>()
    };
    for name in ["ann", "bob", "shared", "nobody"] {
        let in_queue = wanted(&|s| s.queue == name);
        let of_account = wanted(&|s| s.account == name);
        for (by, wanted) in [
            (PullBy::Queue(name.into()), &in_queue),
            (PullBy::Account(name.into()), &of_account),
        ] {
            let (mut seen, mut after) = (Vec::new(), None);
            loop {
                let page = one_pull(store, by.clone(), 5, after).await;
                seen.extend(numbers(&page.jobs));
                let last = page.jobs.last().map(|job| &job.state);
                after = last.map(|last| (last.class, last.priority, last.job_id));
                if !page.more {
                    break;
                }
            }
            assert_eq!(&seen, wanted, "{by:?}");
        }
        let search = Search {
            queues: vec![name.into()],
            limit: 100,
            ..Search::default()
        };
        let page = store.search(&search).await.unwrap();
        let mut found = numbers(&page.jobs);
        found.sort_unstable();
        let mut in_queue = in_queue;
        in_queue.sort_unstable();
        assert_eq!(found, in_queue, "{name}");
    }
}
