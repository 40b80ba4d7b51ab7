//! Tests of changes behind a mark.

use std::collections::BTreeSet;

use fairlead_job::{JobId, Stage};
use fairlead_store::{ChangeMark, ChangePage, ChangeRanges, Changes, JobStore, Version};

use super::{change, changed, id, read_one, state, state_with, submit_all};

/// The changes of waiting jobs, then those of the others, behind one mark.
async fn both(store: &dyn JobStore, since: &ChangeMark) -> [ChangePage; 2] {
    store.refresh().await.unwrap();
    let asked = [true, false].map(|waiting| behind(since, waiting, 1_000));
    let pages = store.changes(&asked).await.unwrap();
    pages.try_into().unwrap()
}

fn behind(since: &ChangeMark, waiting: bool, limit: u32) -> Changes {
    Changes {
        since: since.clone(),
        within: ChangeRanges::new(),
        waiting,
        limit,
    }
}

async fn mark(store: &dyn JobStore) -> ChangeMark {
    store.refresh().await.unwrap();
    store.change_mark().await.unwrap()
}

fn nothing_behind(since: &ChangeMark) -> [ChangePage; 2] {
    let page = ChangePage {
        mark: since.clone(),
        ..ChangePage::default()
    };
    [page.clone(), page]
}

pub(crate) async fn an_empty_store_has_no_changes(store: &dyn JobStore) {
    let never = ChangeMark::default();
    assert_eq!(mark(store).await, never);
    assert_eq!(both(store, &never).await, nothing_behind(&never));
    assert!(store.changes(&[]).await.unwrap().is_empty());
    submit_all(store, vec![state(1)]).await;
    let [waiting, others] = both(store, &never).await;
    assert_eq!(
        waiting.jobs,
        [(id(1), read_one(store, id(1)).await.version)]
    );
    assert!(others.jobs.is_empty());
    assert_eq!(waiting.mark, mark(store).await);
}

pub(crate) async fn changes_come_once_as_they_are_now(store: &dyn JobStore) {
    submit_all(store, (1..=6).map(state).collect()).await;
    let since = mark(store).await;
    assert_eq!(both(store, &since).await, nothing_behind(&since));

    for priority in [5, 6] {
        change(store, id(2), |s| s.priority = priority)
            .await
            .unwrap();
    }
    change(store, id(3), |s| s.stage = Stage::Dispatch)
        .await
        .unwrap();
    change(store, id(4), |s| s.ready = false).await.unwrap();
    for stage in [Stage::Dispatch, Stage::Submit] {
        change(store, id(1), |s| s.stage = stage).await.unwrap();
    }
    submit_all(store, vec![state(7)]).await;
    let [waiting, others] = both(store, &since).await;
    assert_eq!(changed(&waiting), [2, 1, 7]);
    assert_eq!(changed(&others), [3, 4]);
    assert!(!waiting.more && !others.more);
    for (id, version) in waiting.jobs.iter().chain(&others.jobs) {
        assert_eq!(*version, read_one(store, *id).await.version);
    }

    // Each goes on where it stands, the one before what the other has read.
    let next = both(store, &waiting.mark).await;
    assert_eq!(next, nothing_behind(&waiting.mark));
    let again = store
        .changes(&[behind(&others.mark, true, 9), behind(&since, false, 9)])
        .await
        .unwrap();
    assert_eq!(changed(&again[0]), [1, 7]);
    assert_eq!(changed(&again[1]), [3, 4]);
}

pub(crate) async fn changes_are_read_in_pages(store: &dyn JobStore) {
    submit_all(store, (1..=20).map(state).collect()).await;
    let since = mark(store).await;
    // Not in the order of their ids.
    let order: Vec<u64> = (1..=20).map(|n| n * 7 % 20 + 1).collect();
    for n in &order {
        change(store, id(*n), |s| s.priority = 1).await.unwrap();
    }
    store.refresh().await.unwrap();
    let mut read = Vec::new();
    let mut at = since.clone();
    loop {
        let page = store
            .changes(&[behind(&at, true, 6)])
            .await
            .unwrap()
            .remove(0);
        assert!(page.jobs.len() <= 6);
        read.extend(changed(&page));
        at = page.mark;
        if !page.more {
            break;
        }
    }
    assert_eq!(read, order);
    assert_eq!(at, mark(store).await);
    let exact = store.changes(&[behind(&since, true, 20)]).await.unwrap();
    assert_eq!((exact[0].jobs.len(), exact[0].more), (20, false));
    let least = store.changes(&[behind(&since, true, 0)]).await.unwrap();
    assert_eq!((changed(&least[0]), least[0].more), (vec![8], true));
}

pub(crate) async fn changes_of_several_months_are_read_together(store: &dyn JobStore) {
    let of_month = |month: u64, n: u64| {
        state_with(n, |s| {
            s.job_id = JobId::new(month * 1_000_000_000_000_000 + 210_236_110_000_000 + n);
        })
    };
    submit_all(store, vec![of_month(2609, 1), of_month(2611, 2)]).await;
    let since = mark(store).await;
    let states = [of_month(2609, 3), of_month(2610, 4), of_month(2612, 5)];
    submit_all(store, states.to_vec()).await;
    change(store, of_month(2611, 2).job_id, |s| s.ready = false)
        .await
        .unwrap();
    let ids =
        |jobs: &[(JobId, Version)]| -> BTreeSet<JobId> { jobs.iter().map(|(id, _)| *id).collect() };
    let [waiting, others] = both(store, &since).await;
    let wanted: BTreeSet<JobId> = states.iter().map(|state| state.job_id).collect();
    assert_eq!(ids(&waiting.jobs), wanted);
    assert_eq!(ids(&others.jobs), [of_month(2611, 2).job_id].into());
    assert_eq!(both(store, &mark(store).await).await[0].jobs, []);
    // A page that was full in one place may have read another one to its end.
    let (mut at, mut read) = (since, BTreeSet::new());
    loop {
        let page = store
            .changes(&[behind(&at, true, 1)])
            .await
            .unwrap()
            .remove(0);
        read.extend(ids(&page.jobs));
        at = page.mark;
        if !page.more {
            break;
        }
    }
    assert_eq!(read, wanted);
}

pub(crate) async fn changes_are_found_by_their_numbers(store: &dyn JobStore) {
    submit_all(store, (1..=6).map(state).collect()).await;
    let at = mark(store).await;
    assert_eq!(at.0.len(), 1, "{at:?}");
    let place = at.0.keys().next().unwrap().clone();
    assert!(store.place_of(id(1)).is_none_or(|known| *known == *place));
    let mut versions = Vec::new();
    for n in 1..=6 {
        versions.push(read_one(store, id(n)).await.version.seq_no);
    }
    let in_ranges = |waiting: bool, since: &ChangeMark, limit: u32| Changes {
        within: [(
            place.clone(),
            vec![(versions[1], versions[2]), (versions[4], versions[5] + 9)],
        )]
        .into(),
        ..behind(since, waiting, limit)
    };
    let never = ChangeMark::default();
    let asked = [true, false].map(|waiting| in_ranges(waiting, &never, 9));
    let pages = store.changes(&asked).await.unwrap();
    assert_eq!(changed(&pages[0]), [2, 3, 5, 6]);
    assert!(changed(&pages[1]).is_empty() && !pages[0].more);
    let first = store.changes(&[in_ranges(true, &never, 3)]).await.unwrap();
    assert_eq!((changed(&first[0]), first[0].more), (vec![2, 3, 5], true));
    let rest = [in_ranges(true, &first[0].mark, 3)];
    let rest = store.changes(&rest).await.unwrap();
    assert_eq!((changed(&rest[0]), rest[0].more), (vec![6], false));
    // What is in another place is not asked for.
    let elsewhere = Changes {
        within: [("elsewhere".to_owned(), vec![(0, 99)])].into(),
        ..behind(&never, true, 9)
    };
    assert!(
        store.changes(&[elsewhere]).await.unwrap()[0]
            .jobs
            .is_empty()
    );
}
