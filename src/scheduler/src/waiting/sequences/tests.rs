//! Tests of turns in sequences, with several replicas over one store.

use fairlead_job::{Health, JobId, Replace, Spec, Stage};
use fairlead_store::{JobState, NewJob};
use serde_json::json;

use super::*;
use crate::{
    flows::Flows,
    testing::{flows, flows_beside, state, store_job, waits},
};
use fairlead_lifecycle::{
    alarm::at_alarm,
    attempt::ended,
    hold::{held, let_go},
    sequence::kept_on,
};

fn member(n: u64) -> JobState {
    JobState {
        sequence: "k".to_owned(),
        ready: false,
        ..state(n)
    }
}

fn key() -> Key {
    Key::of(&member(1)).unwrap()
}

async fn ready(flows: &Flows, ids: &[u64]) -> Vec<bool> {
    let ids: Vec<JobId> = ids.iter().map(|id| JobId::new(*id)).collect();
    let found = flows.ctx.store.get(&ids).await.unwrap();
    found
        .into_iter()
        .map(|job| job.unwrap().state.ready)
        .collect()
}

async fn end(flows: &Arc<Flows>, id: u64) {
    let over = |state: &JobState| Ok(Some(ended(state, Stage::Finish, Health::Success, 9, "")));
    flows.jobs.change(JobId::new(id), over).await.unwrap();
}

#[tokio::test]
async fn one_runs_at_a_time_in_order_whoever_looks() {
    let (_data, a) = flows().await;
    let b = flows_beside(&a);
    for n in [3, 1, 2] {
        store_job(&a, member(n)).await;
    }
    for flows in [&a, &b, &a] {
        assert_eq!(flows.waiting.pass_on(&key()).await, Ok(true));
        assert_eq!(ready(&a, &[1, 2, 3]).await, [true, false, false]);
    }
    let why = a.waiting.why_no_turn(&member(2)).await.unwrap();
    let first = JobId::new(1).to_string();
    assert!(why.contains(&first) && why.contains("'k'"), "{why}");
    end(&a, 1).await;
    b.waiting.pass_on(&key()).await.unwrap();
    assert_eq!(ready(&a, &[2, 3]).await, [true, false]);
    // One that is cancelled while it waits keeps nobody.
    end(&b, 3).await;
    end(&a, 2).await;
    assert_eq!(a.waiting.pass_on(&key()).await, Ok(false));
}

/// Making sure of the end was taken for another end, and so on for ever.
#[tokio::test]
async fn the_end_of_the_last_one_is_looked_at_once() {
    let (_data, flows) = flows().await;
    store_job(&flows, member(1)).await;
    assert_eq!(flows.waiting.pass_on(&key()).await, Ok(true));
    end(&flows, 1).await;
    let due = || flows.waiting.known.sequences.looks.due(u64::MAX);
    assert_eq!(due(), [(key(), ())]);
    assert_eq!(flows.waiting.pass_on(&key()).await, Ok(false));
    assert_eq!(due(), []);
}

#[tokio::test]
async fn what_a_dead_replica_began_another_one_ends() {
    let (_data, a) = flows().await;
    store_job(&a, member(1)).await;
    let turn = SequenceTurn {
        holder: JobId::new(1),
        others: Vec::new(),
        begun_ms: Vec::new(),
        host: String::new(),
        at_ms: 1,
    };
    let written = a.ctx.docs.put(&key().id(), None, Some(&turn)).await;
    assert!(written.is_ok());
    let b = flows_beside(&a);
    b.waiting.known.sequences.seen(&member(1));
    b.waiting.sweep_sequences();
    look(&b).await;
    assert_eq!(ready(&a, &[1]).await, [true]);
    // A job that is over does not keep its turn, and nobody remembers it for ever.
    b.waiting.forget_sequences().await.unwrap();
    assert!(b.waiting.read_sequence(&key()).await.unwrap().is_some());
    end(&b, 1).await;
    b.waiting.forget_sequences().await.unwrap();
    assert!(b.waiting.read_sequence(&key()).await.unwrap().is_none());
}

#[tokio::test]
async fn those_that_stay_together_run_where_the_first_did() {
    let (_data, flows) = flows().await;
    for n in [1, 2] {
        let same = JobState {
            sequence_same_host: true,
            ..member(n)
        };
        store_job(&flows, same).await;
    }
    flows.waiting.pass_on(&key()).await.unwrap();
    let ran = |state: &JobState| {
        Ok(Some(JobState {
            host: "h7".to_owned(),
            ..ended(state, Stage::Finish, Health::Fail, 9, "")
        }))
    };
    flows.jobs.change(JobId::new(1), ran).await.unwrap();
    flows.waiting.pass_on(&key()).await.unwrap();
    let next = flows.jobs.stored_job(JobId::new(2)).await.unwrap().state;
    assert_eq!(
        (next.ready, next.host_keys),
        (true, vec!["dc.x86_64@h7".to_owned()])
    );
}

#[test]
fn keys_of_a_host_are_those_under_which_it_asks() {
    let kept = |keys: &[&str]| {
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        kept_on(&keys, "h")
    };
    assert_eq!(kept(&["hw.x86_64", "hw@group"]), ["hw@h"]);
    assert_eq!(kept(&["vm.x86_64@h", "vm.x86_64@other"]), ["vm.x86_64@h"]);
    assert_eq!(kept(&["vm.x86_64@other"]), ["vm.x86_64@other"]);
}

#[tokio::test]
async fn as_many_run_as_the_limit_says_whoever_looks() {
    let (_data, a) = flows().await;
    let b = flows_beside(&a);
    let of_two = |n| JobState {
        sequence_limit: 2,
        ..member(n)
    };
    for n in 1..=4 {
        store_job(&a, of_two(n)).await;
    }
    let same = key();
    let (left, right) = tokio::join!(a.waiting.pass_on(&same), b.waiting.pass_on(&same));
    assert_eq!((left, right), (Ok(true), Ok(true)));
    assert_eq!(ready(&a, &[1, 2, 3, 4]).await, [true, true, false, false]);
    let why = a.waiting.why_no_turn(&of_two(3)).await.unwrap();
    assert!(
        why.contains("at most 2 run") && why.contains("2 jobs"),
        "{why}"
    );
    end(&a, 1).await;
    b.waiting.pass_on(&key()).await.unwrap();
    assert_eq!(ready(&a, &[2, 3, 4]).await, [true, true, false]);
    let turn = a.waiting.read_sequence(&key()).await.unwrap().unwrap().doc;
    assert_eq!(turn.holders().len(), 2, "{turn:?}");
}

#[tokio::test]
async fn the_rate_is_kept_and_the_next_look_has_a_time() {
    let (_data, flows) = flows().await;
    let rated = |n| JobState {
        sequence_limit: 10,
        sequence_per_minute: 1,
        ..member(n)
    };
    for n in [1, 2] {
        store_job(&flows, rated(n)).await;
    }
    flows.waiting.pass_on(&key()).await.unwrap();
    assert_eq!(ready(&flows, &[1, 2]).await, [true, false]);
    let began_ms = flows.ctx.clock.wall_ms();
    let ran = |state: &JobState| {
        Ok(Some(JobState {
            dispatch_ms: began_ms,
            ..ended(state, Stage::Finish, Health::Success, began_ms + 1, "")
        }))
    };
    flows.jobs.change(JobId::new(1), ran).await.unwrap();
    look(&flows).await;
    assert_eq!(ready(&flows, &[2]).await, [false]);
    let looks = &flows.waiting.known.sequences.looks;
    assert_eq!(looks.due(began_ms + 59_999), []);
    assert_eq!(looks.due(began_ms + 60_000), [(key(), ())]);
}

#[tokio::test]
async fn the_newest_cancels_older_ones_and_lends_its_priority() {
    let (_data, flows) = flows().await;
    for n in [1, 2] {
        let plain = JobState {
            submit_id: n.to_string(),
            ..member(n)
        };
        store_job(&flows, plain).await;
    }
    let urgent = JobState {
        priority: 9,
        submit_id: "3".to_owned(),
        ..member(3)
    };
    store_job(&flows, urgent.clone()).await;
    flows.waiting.pass_on(&key()).await.unwrap();
    let first = flows.jobs.stored_job(JobId::new(1)).await.unwrap().state;
    assert_eq!((first.ready, first.priority), (true, 9));
    let newest = JobState {
        sequence_replace: Some(Replace::Waiting),
        submit_id: "4".to_owned(),
        ..urgent
    };
    store_job(
        &flows,
        JobState {
            job_id: JobId::new(4),
            ..newest
        },
    )
    .await;
    flows.waiting.pass_on(&key()).await.unwrap();
    for n in [1, 2, 3] {
        let state = flows.jobs.stored_job(JobId::new(n)).await.unwrap().state;
        assert_eq!(state.stage, Stage::Cancel, "{n}");
    }
    assert_eq!(ready(&flows, &[4]).await, [true]);
}

async fn change(
    flows: &Arc<Flows>,
    id: u64,
    next: impl Fn(&JobState) -> Option<JobState> + Send + Sync,
) {
    let changed = flows.jobs.change(JobId::new(id), |state| Ok(next(state)));
    assert!(changed.await.unwrap().is_change());
}

/// Looks at the sequence as often as this replica was stirred.
async fn look(flows: &Arc<Flows>) {
    let looks = &flows.waiting.known.sequences.looks;
    let due = looks.due(looks.now_ms());
    assert_eq!(due, [(key(), ())]);
    flows.waiting.pass_on(&key()).await.unwrap();
}

#[tokio::test]
async fn a_delayed_job_takes_its_place_when_its_time_has_come() {
    let (_data, flows) = flows().await;
    let delayed = |n, start_ms| JobState {
        start_ms,
        ..member(n)
    };
    store_job(&flows, delayed(1, 5)).await;
    assert_eq!(flows.waiting.pass_on(&key()).await, Ok(true), "it waits");
    assert_eq!(ready(&flows, &[1]).await, [false]);
    store_job(&flows, delayed(2, 9)).await;
    store_job(&flows, member(3)).await;
    flows.waiting.pass_on(&key()).await.unwrap();
    assert_eq!(ready(&flows, &[1, 2, 3]).await, [false, false, true]);
    change(&flows, 1, |state| at_alarm(state, 7)).await;
    look(&flows).await;
    assert_eq!(ready(&flows, &[1, 2, 3]).await, [false, false, true]);
    end(&flows, 3).await;
    look(&flows).await;
    assert_eq!(ready(&flows, &[1, 2]).await, [true, false]);
}

#[tokio::test]
async fn a_held_job_gives_its_turn_back() {
    let (_data, a) = flows().await;
    let b = flows_beside(&a);
    for n in [1, 2] {
        store_job(&a, member(n)).await;
    }
    a.waiting.pass_on(&key()).await.unwrap();
    assert_eq!(ready(&a, &[1, 2]).await, [true, false]);
    let read = a.jobs.stored_job(JobId::new(1)).await.unwrap();
    change(&a, 1, |state| held(state, "ann")).await;
    look(&a).await;
    b.waiting.pass_on(&key()).await.unwrap();
    assert_eq!(ready(&a, &[1, 2]).await, [false, true]);
    change(&b, 1, |state| let_go(state, 9)).await;
    look(&b).await;
    assert_eq!(ready(&a, &[1, 2]).await, [false, true]);
    // A replica that read it long ago gives it no turn beside the other one.
    assert_eq!(a.waiting.give_turn(read, "").await, Ok(false));
    assert_eq!(ready(&a, &[1, 2]).await, [false, true]);
    end(&a, 2).await;
    look(&a).await;
    assert_eq!(ready(&a, &[1]).await, [true]);
}

/// They waited for each other for ever.
#[tokio::test]
async fn nobody_with_a_turn_waits_for_one_behind_it() {
    let (_data, flows) = flows().await;
    let on_2 = waits(&json!({"wait_on": {"2": null}}));
    let first = JobState {
        waits: Some(on_2.clone()),
        ..member(1)
    };
    store_job(&flows, first.clone()).await;
    flows.waiting.known.dependants.add(&first);
    store_job(&flows, member(2)).await;
    // An older version gave this one its turn at once.
    let of_old = JobState {
        waits: Some(on_2),
        sequence_turn: true,
        ..member(3)
    };
    store_job(&flows, of_old).await;
    flows.waiting.pass_on(&key()).await.unwrap();
    assert_eq!(ready(&flows, &[1, 2, 3]).await, [false, true, false]);
    end(&flows, 2).await;
    flows.waiting.sweep_dependants().await;
    look(&flows).await;
    assert_eq!(ready(&flows, &[1, 3]).await, [true, false]);
}

#[tokio::test]
async fn however_many_are_delayed_one_with_a_place_is_found() {
    let (_data, flows) = flows().await;
    let delayed = (1..=1_500).map(|n| NewJob {
        state: JobState {
            start_ms: 5,
            ..member(n)
        },
        body: Spec::new().into(),
    });
    let stored = flows.ctx.store.submit(delayed.collect()).await;
    assert!(stored.iter().all(Result::is_ok));
    store_job(&flows, member(2_000)).await;
    flows.waiting.pass_on(&key()).await.unwrap();
    assert_eq!(ready(&flows, &[1, 2_000]).await, [false, true]);
}
