//! Tests of old months.

use fairlead_job::{Health, JobId, Stage};
use fairlead_store::{ItemError, JobState, JobStore, OldMonth, Patch, Search, StatePatch};

use super::{change, state, submit_all};

/// Many enough that they are not dropped at one stroke.
const EACH: u64 = 1_200;

fn first(month: &str) -> JobId {
    JobId::first_of_month(month).unwrap()
}

/// Jobs of a month that have ended.
fn ended(month: &str) -> Vec<JobState> {
    let of = |n| JobState {
        job_id: JobId::new(first(month).get() + n),
        stage: Stage::Finish,
        health: Health::Success,
        ready: false,
        outputs: content_of(month),
        ..state(n)
    };
    (0..EACH).map(of).collect()
}

/// What the jobs of a month leave.
fn content_of(month: &str) -> String {
    format!("{month:0>64}")
}

fn looked_at(month: &str, unfinished: u64) -> OldMonth {
    let month = month.to_owned();
    OldMonth { month, unfinished }
}

async fn dropped_before(store: &dyn JobStore, month: &str) -> Vec<OldMonth> {
    store.refresh().await.unwrap();
    // Any id of the month says the same.
    let before = JobId::new(first(month).get() + 7);
    store.drop_oldest(before).await.unwrap()
}

pub(crate) async fn old_months_go_whole_once_all_their_jobs_have_ended(store: &dyn JobStore) {
    let runs = JobState {
        job_id: JobId::new(first("2502").get() + EACH),
        stage: Stage::Running,
        host: "h1".into(),
        ..state(0)
    };
    for month in ["2412", "2502", "2503", "2605"] {
        submit_all(store, ended(month)).await;
    }
    let version = submit_all(store, vec![runs.clone()]).await[0];
    assert_eq!(dropped_before(store, "2605").await, [looked_at("2412", 0)]);
    let named = ["2412", "2502"].map(content_of);
    assert_eq!(store.named(&named).await.unwrap(), [false, true]);
    let all = ended("2412")
        .iter()
        .map(|gone| gone.job_id)
        .collect::<Vec<_>>();
    assert!(store.get(&all).await.unwrap().iter().all(Option::is_none));
    assert!(
        store
            .get_bodies(&all)
            .await
            .unwrap()
            .iter()
            .all(Option::is_none)
    );
    assert_eq!(
        dropped_before(store, "2605").await,
        [looked_at("2502", 1), looked_at("2503", 0)],
        "one that runs keeps its month, and no other"
    );
    assert_eq!(dropped_before(store, "2605").await, [looked_at("2502", 1)]);
    change(store, runs.job_id, |state| {
        state.stage = Stage::Finish;
        state.health = Health::Success;
    })
    .await
    .unwrap();
    assert_eq!(dropped_before(store, "2605").await, [looked_at("2502", 0)]);
    assert_eq!(dropped_before(store, "2605").await, []);
    let late = Patch {
        id: first("2412"),
        expect: version,
        set: StatePatch::default(),
    };
    let late = store.patch(vec![late]).await.remove(0);
    assert!(matches!(late, Err(ItemError::Missing)), "{late:?}");
    let left = store
        .search(&Search {
            limit: 1,
            ..Search::default()
        })
        .await
        .unwrap();
    assert_eq!(
        (left.total, left.jobs[0].state.job_id),
        (EACH, ended("2605")[1_199].job_id)
    );
}

pub(crate) async fn what_is_young_stays(store: &dyn JobStore) {
    submit_all(store, ended("2605")).await;
    for before in ["2605", "2604", "0001"] {
        assert_eq!(dropped_before(store, before).await, [], "{before}");
    }
    let left = store.search(&Search::default()).await.unwrap();
    assert_eq!(left.total, EACH);
}
