//! Tests of what people ask: counts of stages, and of other fields.

use std::collections::BTreeMap;

use fairlead_job::{Health, Stage};
use fairlead_store::{Group, GroupBy, JobState, JobStore, Search, Sharding, StageCounts};

use super::{change, searches::varied, state_with, submit_all};

pub(crate) async fn jobs_are_counted_by_stage(store: &dyn JobStore) {
    let at = |n: u64| 1_795_228_571_000 + n;
    let empty = store.stage_counts(0).await.unwrap();
    assert_eq!(empty, StageCounts::default());
    let mut states: Vec<JobState> = varied();
    for (n, state) in (1..).zip(&mut states) {
        state.ready_ms = at(1_000 - n);
    }
    states.push(state_with(200, |s| {
        s.stage = Stage::Running;
        s.shards = Some(Box::new(Sharding {
            count: 2,
            ..Sharding::default()
        }));
    }));
    submit_all(store, states.clone()).await;
    // One of them goes on: it is counted where it is now.
    let waits = |s: &JobState| s.stage == Stage::Submit && s.ready;
    let gone = states.iter().position(waits).unwrap();
    change(store, states[gone].job_id, |state| {
        state.stage = Stage::Dispatch;
    })
    .await
    .unwrap();
    states[gone].stage = Stage::Dispatch;
    store.refresh().await.unwrap();
    let since = states[60].submit_ms;
    let counts = store.stage_counts(since).await.unwrap();
    let runs: Vec<&JobState> = states.iter().filter(|s| s.shards.is_none()).collect();
    let many = |is: &dyn Fn(&JobState) -> bool| {
        u64::try_from(runs.iter().filter(|s| is(s)).count()).unwrap()
    };
    for stage in [Stage::Submit, Stage::Dispatch, Stage::Running] {
        assert_eq!(
            counts.open.get(&stage),
            Some(&many(&|s| s.stage == stage)),
            "{stage}"
        );
    }
    assert_eq!(counts.open.len(), 3);
    assert_eq!(
        counts.not_ready,
        many(&|s| s.stage == Stage::Submit && !s.ready)
    );
    for health in [Health::Unknown, Health::Success] {
        let ended =
            many(&|s| s.stage == Stage::Finish && s.health == health && s.submit_ms >= since);
        assert_eq!(counts.ended.get(&health), Some(&ended), "{health}");
    }
    for queue in ["q0", "q1", "q4"] {
        let its = runs.iter().filter(|s| waits(s) && s.queue == queue);
        let oldest = its.map(|s| s.ready_ms).min();
        assert_eq!(
            counts.oldest_ready_ms.get(queue).copied(),
            oldest,
            "{queue}"
        );
    }
}

pub(crate) async fn what_is_found_is_counted_by_a_field(store: &dyn JobStore) {
    let states = varied();
    submit_all(store, states.clone()).await;
    store.refresh().await.unwrap();
    let search = Search {
        accounts: vec!["a1".into(), "a2".into()],
        ..Search::default()
    };
    for (name, by) in GroupBy::ALL {
        let mut wanted: BTreeMap<String, Group> = BTreeMap::new();
        for state in states
            .iter()
            .filter(|s| search.accounts.contains(&s.account))
        {
            let value = match by {
                GroupBy::Stage => state.stage.to_string(),
                GroupBy::Health => state.health.to_string(),
                GroupBy::Suite => state.suite.clone(),
                GroupBy::Account => state.account.clone(),
                GroupBy::Queue => state.queue.clone(),
                GroupBy::Host => state.host.clone(),
                GroupBy::TboxGroup => state.tbox_group.clone(),
                GroupBy::SubmitId => state.submit_id.clone(),
            };
            let group = wanted.entry(value.clone()).or_default();
            group.value = value;
            group.count(state);
        }
        let found = store.groups(&search, by).await.unwrap();
        let rank = |group: &Group| match by {
            GroupBy::SubmitId => group.since_ms,
            _ => group.jobs,
        };
        let ranks: Vec<u64> = found.iter().map(rank).collect();
        assert!(ranks.is_sorted_by(|a, b| a >= b), "{name}: {ranks:?}");
        let found = found.into_iter().map(|group| (group.value.clone(), group));
        assert_eq!(found.collect::<BTreeMap<_, _>>(), wanted, "{name}");
    }
    let nobody = Search {
        accounts: vec!["nobody".into()],
        ..search
    };
    let found = store.groups(&nobody, GroupBy::Suite).await.unwrap();
    assert!(found.is_empty());
}
