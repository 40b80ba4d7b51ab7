//! Tests of submits, reads by id, and compare-and-set.

use std::sync::Arc;

use fairlead_job::{Health, JobId, Spec, Stage, Waits};
use fairlead_store::{
    Attempt, ClusterPlace, ItemError, JobStore, NewJob, Patch, StatePatch, Version,
};
use serde_json::json;

use super::{change, claim, id, job, read_one, state, state_with, submit_all};

pub(crate) async fn create_then_read(store: &dyn JobStore) {
    let wanted = state_with(1, |s| {
        s.attempts = vec![Attempt {
            attempt: 1,
            host: "h".into(),
            host_class: "{}".into(),
            session: String::new(),
            claim_token: "t".into(),
            stage: Stage::Boot,
            health: Health::Oom,
            dispatch_ms: 1,
            end_ms: 2,
            reason: "räson".into(),
        }];
        s.exit_code = Some(-1);
        s.priority = i16::MIN;
        s.memory_mb = u32::MAX;
        s.labels = vec!["a b".into(), "\u{0}".into()];
    });
    let version = submit_all(store, vec![wanted.clone()]).await[0];
    // No refresh: reads by id are in real time.
    let read = store.get(&[id(2), id(1)]).await.unwrap();
    assert_eq!(read[0], None);
    let read = read[1].clone().unwrap();
    assert_eq!((read.state, read.version), (wanted.clone(), version));
    let bodies = store.get_bodies(&[id(1), id(2)]).await.unwrap();
    assert_eq!(bodies, [Some(Arc::unwrap_or_clone(job(wanted).body)), None]);
}

pub(crate) async fn a_repeated_submit_is_ours(store: &dyn JobStore) {
    let first = submit_all(store, vec![state(1), state(2)]).await;
    let again = submit_all(store, vec![state(1), state(2)]).await;
    for ((n, first), again) in (1..).zip(first).zip(again) {
        // A store may write it once more to be sure; the version it gives is the present one.
        assert!(again >= first);
        let read = read_one(store, id(n)).await;
        assert_eq!((read.state, read.version), (state(n), again));
    }
    let twice = store.submit(vec![job(state(3)), job(state(3))]).await;
    assert!(twice[0].is_ok());
    assert_eq!(twice[0], twice[1]);
}

pub(crate) async fn an_id_is_taken_once(store: &dyn JobStore) {
    submit_all(store, vec![state(1)]).await;
    let other_state = state_with(1, |s| s.account = "bob".into());
    let mut other_body = job(state(1));
    Arc::make_mut(&mut other_body.body).insert("more".into(), json!(1));
    for rival in [job(other_state), other_body] {
        let result = store.submit(vec![rival]).await.remove(0);
        assert!(
            matches!(result, Err(ItemError::Conflict { .. })),
            "{result:?}"
        );
    }
    let rivals = store
        .submit(vec![job(state(2)), job(state_with(2, |s| s.class = 9))])
        .await;
    assert!(rivals[0].is_ok());
    assert!(matches!(rivals[1], Err(ItemError::Conflict { .. })));
    assert_eq!(read_one(store, id(1)).await.state, state(1));
    assert_eq!(read_one(store, id(2)).await.state, state(2));
    // What has moved on is not ours to submit again.
    change(store, id(1), |s| s.stage = Stage::Dispatch)
        .await
        .unwrap();
    let late = store.submit(vec![job(state(1))]).await.remove(0);
    assert!(matches!(late, Err(ItemError::Conflict { .. })), "{late:?}");
}

pub(crate) async fn one_bad_item_does_not_hurt_the_others(store: &dyn JobStore) {
    let bad_format = state_with(2, |s| s.format = 99);
    let mut bad_id = state(3);
    bad_id.job_id = JobId::new(u64::MAX);
    let mut no_id = state(3);
    no_id.job_id = JobId::new(0);
    let mut huge = job(state(4));
    Arc::make_mut(&mut huge.body).insert("x".into(), json!("y".repeat(33 << 20)));
    let results = store
        .submit(vec![
            job(state(1)),
            job(bad_format),
            job(bad_id),
            job(no_id),
            huge,
            job(state(5)),
        ])
        .await;
    assert!(results[0].is_ok() && results[5].is_ok(), "{results:?}");
    for result in &results[1..5] {
        assert!(
            matches!(result, Err(ItemError::Refused { .. })),
            "{result:?}"
        );
    }
    let read = store.get(&[id(1), id(2), id(4), id(5)]).await.unwrap();
    let there: Vec<bool> = read.iter().map(Option::is_some).collect();
    assert_eq!(there, [true, false, false, true]);
    let bodies = store.get_bodies(&[id(2), id(4)]).await.unwrap();
    assert_eq!(bodies, [None, None]);
}

pub(crate) async fn one_of_many_races_wins(store: &dyn JobStore) {
    let version = submit_all(store, vec![state(1)]).await[0];
    let tries = (0..32).map(|n| {
        let set = claim(&state(1), &format!("token-{n}"));
        let patch = Patch {
            id: id(1),
            expect: version,
            set,
        };
        async move { (n, store.patch(vec![patch]).await.remove(0)) }
    });
    let results = futures_util::future::join_all(tries).await;
    let won: Vec<_> = results.iter().filter(|(_, r)| r.is_ok()).collect();
    assert_eq!(won.len(), 1, "{results:?}");
    let (winner, version) = (won[0].0, won[0].1.clone().unwrap());
    for (_, result) in results.iter().filter(|(n, _)| *n != winner) {
        assert!(
            matches!(result, Err(ItemError::Conflict { .. })),
            "{result:?}"
        );
    }
    let read = read_one(store, id(1)).await;
    assert_eq!(read.state.claim_token, format!("token-{winner}"));
    assert_eq!(read.version, version);
}

pub(crate) async fn a_patch_names_fields_and_nulls_clear(store: &dyn JobStore) {
    let first = submit_all(store, vec![state_with(1, |s| s.reason = "because".into())]).await[0];
    let second = change(store, id(1), |s| {
        s.reason = String::new();
        s.exit_code = Some(3);
        s.milestones = vec!["m1".into()];
    })
    .await
    .unwrap();
    assert!(second > first);
    let read = read_one(store, id(1)).await.state;
    assert_eq!((read.reason.as_str(), read.exit_code), ("", Some(3)));
    assert_eq!(read.account, "ann");
    change(store, id(1), |s| {
        s.exit_code = None;
        s.milestones = vec![];
    })
    .await
    .unwrap();
    let read = read_one(store, id(1)).await.state;
    assert_eq!(read, state(1));
    // A patch that sets nothing still is a compare-and-set with a new version or the same one.
    let before = read_one(store, id(1)).await.version;
    let nothing = Patch {
        id: id(1),
        expect: before,
        set: StatePatch::new(),
    };
    assert!(store.patch(vec![nothing]).await[0].is_ok());
}

pub(crate) async fn a_stale_or_unknown_patch_is_told_apart(store: &dyn JobStore) {
    let version = submit_all(store, (1..=5).map(state).collect()).await;
    change(store, id(2), |s| s.stage = Stage::Dispatch)
        .await
        .unwrap();
    let patch = |n: u64, expect: Version| Patch {
        id: id(n),
        expect,
        set: claim(&state(n), "t"),
    };
    let patches = |first: u64, last: u64| {
        let of = |n: u64| version[usize::try_from(n).unwrap() - 1];
        vec![
            patch(first, of(first)),
            patch(2, of(2)),
            patch(9, of(1)),
            patch(last, of(last)),
        ]
    };
    let results = store.patch(patches(1, 3)).await;
    assert!(results[0].is_ok() && results[3].is_ok(), "{results:?}");
    assert!(
        matches!(results[1], Err(ItemError::Conflict { .. })),
        "{results:?}"
    );
    assert_eq!(results[2], Err(ItemError::Missing));
    // The same, answered with what is there then.
    let results = store.patch_and_get(patches(4, 5)).await;
    for (result, n) in [(&results[0], 4), (&results[3], 5)] {
        assert_eq!(result.as_ref(), Ok(&read_one(store, id(n)).await));
    }
    assert!(
        matches!(results[1], Err(ItemError::Conflict { .. })),
        "{results:?}"
    );
    assert_eq!(results[2], Err(ItemError::Missing));
}

pub(crate) async fn nested_values_are_replaced_whole(store: &dyn JobStore) {
    let waits = Waits::Unknown(
        json!({"parent": "1", "deep": {"a": null, "b": [1, {"c": 2.5}]}, "_x.y": 1}),
    );
    submit_all(
        store,
        vec![state_with(1, |s| s.waits = Some(waits.clone()))],
    )
    .await;
    assert_eq!(read_one(store, id(1)).await.state.waits, Some(waits));
    let other: Waits = serde_json::from_value(
        json!({"wait_on": {id(7).to_string(): {"job_stage": "boot"}}, "fail_fast": true, "z": [1]}),
    )
    .unwrap();
    assert!(matches!(other, Waits::Jobs(_)));
    change(store, id(1), |s| s.waits = Some(other.clone()))
        .await
        .unwrap();
    assert_eq!(read_one(store, id(1)).await.state.waits, Some(other));
    change(store, id(1), |s| {
        s.waits = Some(Waits::Unknown(json!("text")));
    })
    .await
    .unwrap();
    assert_eq!(
        read_one(store, id(1)).await.state.waits,
        Some(Waits::Unknown(json!("text")))
    );
    change(store, id(1), |s| s.waits = None).await.unwrap();
    assert_eq!(read_one(store, id(1)).await.state.waits, None);
    let place = |jobs: &[u64], round| ClusterPlace {
        jobs: jobs.iter().map(|n| id(*n)).collect(),
        roles: "server".to_owned(),
        round,
        ..ClusterPlace::default()
    };
    for place in [Some(place(&[1, 2, 3], 1)), Some(place(&[1], 7)), None] {
        change(store, id(1), |s| s.cluster.clone_from(&place))
            .await
            .unwrap();
        assert_eq!(read_one(store, id(1)).await.state.cluster, place);
    }
}

pub(crate) async fn ids_of_several_months_live_together(store: &dyn JobStore) {
    let ids: Vec<JobId> = [
        1_u64,
        2_510_010_000_000_000_001,
        2_511_300_000_000_000_001,
        2_612_310_000_000_000_001,
        9_112_310_000_000_000_001,
    ]
    .into_iter()
    .map(JobId::new)
    .collect();
    let states: Vec<_> = ids
        .iter()
        .map(|id| state_with(1, |s| s.job_id = *id))
        .collect();
    submit_all(store, states.clone()).await;
    let read = store.get(&ids).await.unwrap();
    for (read, wanted) in read.into_iter().zip(&states) {
        assert_eq!(&read.unwrap().state, wanted);
    }
    store.refresh().await.unwrap();
    assert_eq!(store.counts().await.unwrap().total, 5);
}

pub(crate) async fn five_thousand_at_once(store: &dyn JobStore) {
    let states: Vec<_> = (1..=5_000).map(state).collect();
    let versions = submit_all(store, states.clone()).await;
    let patches = states
        .iter()
        .zip(&versions)
        .map(|(state, version)| Patch {
            id: state.job_id,
            expect: *version,
            set: claim(state, "t"),
        })
        .collect();
    let results = store.patch(patches).await;
    assert_eq!(results.len(), 5_000);
    assert!(results.iter().all(Result::is_ok));
    let ids: Vec<_> = (1..=5_000).map(id).collect();
    let read = store.get(&ids).await.unwrap();
    for (n, read) in (1..=5_000).zip(read) {
        let read = read.unwrap();
        assert_eq!(
            (read.state.job_id, read.state.stage),
            (id(n), Stage::Dispatch)
        );
    }
}

pub(crate) async fn odd_bodies_come_back_equal(store: &dyn JobStore) {
    let body = json!({
        "z": 1, "a": null, "empty": {}, "list": [null, [], [1, "x", {"deep": [true]}]],
        "dots.in.keys": {"a": 1, "a.b": 2}, "": "nameless", "$_\u{1F600}": "\u{0}\u{7f}\"\\\n\u{2028}",
        "big": u64::MAX, "small": i64::MIN, "float": 1e-7, "script": "#!/bin/sh\necho '\t'\n",
        "same": {"a": 1}, "type": "text", "_id": "x",
    });
    let body: Spec = serde_json::from_value(body).unwrap();
    let job = NewJob {
        state: state(1),
        body: body.clone().into(),
    };
    store.submit(vec![job]).await.remove(0).unwrap();
    let read = store.get_bodies(&[id(1)]).await.unwrap().remove(0).unwrap();
    assert_eq!(read, body);
    let order: Vec<_> = read.keys().collect();
    assert_eq!(order, body.keys().collect::<Vec<_>>());
}

pub(crate) async fn an_empty_batch_is_nothing(store: &dyn JobStore) {
    assert!(store.submit(vec![]).await.is_empty());
    assert!(store.patch(vec![]).await.is_empty());
    assert!(store.get(&[]).await.unwrap().is_empty());
    assert!(store.get_bodies(&[]).await.unwrap().is_empty());
    assert!(store.pull(&[]).await.unwrap().is_empty());
    assert!(store.find(&[]).await.unwrap().is_empty());
    store.append_events(vec![]).await.unwrap();
    assert_eq!(
        store.counts().await.unwrap(),
        fairlead_store::Counts::default()
    );
}
