//! Tests of turns in sequences, with several replicas over one store.

use fairlead_job::{Health, JobId, Replace, Spec, Stage};
use fairlead_store::{JobState, NewJob};
use serde_json::json;

use super::*;
use crate::testing::{core, core_beside, state, store_job, waits};
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

async fn ready(core: &Core, ids: &[u64]) -> Vec<bool> {
    let ids: Vec<JobId> = ids.iter().map(|id| JobId::new(*id)).collect();
    let found = core.store.get(&ids).await.unwrap();
    found
        .into_iter()
        .map(|job| job.unwrap().state.ready)
        .collect()
}

async fn end(core: &Arc<Core>, id: u64) {
    let over = |state: &JobState| Ok(Some(ended(state, Stage::Finish, Health::Success, 9, "")));
    core.change(JobId::new(id), over).await.unwrap();
}

#[tokio::test]
async fn one_runs_at_a_time_in_order_whoever_looks() {
    let (_data, a) = core().await;
    let b = core_beside(&a);
    for n in [3, 1, 2] {
        store_job(&a, member(n)).await;
    }
    for core in [&a, &b, &a] {
        assert_eq!(core.pass_on(&key()).await, Ok(true));
        assert_eq!(ready(&a, &[1, 2, 3]).await, [true, false, false]);
    }
    let why = a.why_no_turn(&member(2)).await.unwrap();
    let first = JobId::new(1).to_string();
    assert!(why.contains(&first) && why.contains("'k'"), "{why}");
    end(&a, 1).await;
    b.pass_on(&key()).await.unwrap();
    assert_eq!(ready(&a, &[2, 3]).await, [true, false]);
    // One that is cancelled while it waits keeps nobody.
    end(&b, 3).await;
    end(&a, 2).await;
    assert_eq!(a.pass_on(&key()).await, Ok(false));
}

/// Making sure of the end was taken for another end, and so on for ever.
#[tokio::test]
async fn the_end_of_the_last_one_is_looked_at_once() {
    let (_data, core) = core().await;
    store_job(&core, member(1)).await;
    assert_eq!(core.pass_on(&key()).await, Ok(true));
    end(&core, 1).await;
    let due = || core.waiting.sequences.looks.due(u64::MAX);
    assert_eq!(due(), [(key(), ())]);
    assert_eq!(core.pass_on(&key()).await, Ok(false));
    assert_eq!(due(), []);
}

#[tokio::test]
async fn what_a_dead_replica_began_another_one_ends() {
    let (_data, a) = core().await;
    store_job(&a, member(1)).await;
    let turn = SequenceTurn {
        holder: JobId::new(1),
        others: Vec::new(),
        begun_ms: Vec::new(),
        host: String::new(),
        at_ms: 1,
    };
    let written = a.docs.put(&key().id(), None, Some(&turn)).await;
    assert!(written.is_ok());
    let b = core_beside(&a);
    b.waiting.sequences.seen(&member(1));
    b.sweep_sequences();
    look(&b).await;
    assert_eq!(ready(&a, &[1]).await, [true]);
    // A job that is over does not keep its turn, and nobody remembers it for ever.
    b.forget_sequences().await.unwrap();
    assert!(b.read_sequence(&key()).await.unwrap().is_some());
    end(&b, 1).await;
    b.forget_sequences().await.unwrap();
    assert!(b.read_sequence(&key()).await.unwrap().is_none());
}

#[tokio::test]
async fn those_that_stay_together_run_where_the_first_did() {
    let (_data, core) = core().await;
    for n in [1, 2] {
        let same = JobState {
            sequence_same_host: true,
            ..member(n)
        };
        store_job(&core, same).await;
    }
    core.pass_on(&key()).await.unwrap();
    let ran = |state: &JobState| {
        Ok(Some(JobState {
            host: "h7".to_owned(),
            ..ended(state, Stage::Finish, Health::Fail, 9, "")
        }))
    };
    core.change(JobId::new(1), ran).await.unwrap();
    core.pass_on(&key()).await.unwrap();
    let next = core.stored_job(JobId::new(2)).await.unwrap().state;
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
    let (_data, a) = core().await;
    let b = core_beside(&a);
    let of_two = |n| JobState {
        sequence_limit: 2,
        ..member(n)
    };
    for n in 1..=4 {
        store_job(&a, of_two(n)).await;
    }
    let same = key();
    let (left, right) = tokio::join!(a.pass_on(&same), b.pass_on(&same));
    assert_eq!((left, right), (Ok(true), Ok(true)));
    assert_eq!(ready(&a, &[1, 2, 3, 4]).await, [true, true, false, false]);
    let why = a.why_no_turn(&of_two(3)).await.unwrap();
    assert!(
        why.contains("at most 2 run") && why.contains("2 jobs"),
        "{why}"
    );
    end(&a, 1).await;
    b.pass_on(&key()).await.unwrap();
    assert_eq!(ready(&a, &[2, 3, 4]).await, [true, true, false]);
    let turn = a.read_sequence(&key()).await.unwrap().unwrap().doc;
    assert_eq!(turn.holders().len(), 2, "{turn:?}");
}

#[tokio::test]
async fn the_rate_is_kept_and_the_next_look_has_a_time() {
    let (_data, core) = core().await;
    let rated = |n| JobState {
        sequence_limit: 10,
        sequence_per_minute: 1,
        ..member(n)
    };
    for n in [1, 2] {
        store_job(&core, rated(n)).await;
    }
    core.pass_on(&key()).await.unwrap();
    assert_eq!(ready(&core, &[1, 2]).await, [true, false]);
    let began_ms = core.clock.wall_ms();
    let ran = |state: &JobState| {
        Ok(Some(JobState {
            dispatch_ms: began_ms,
            ..ended(state, Stage::Finish, Health::Success, began_ms + 1, "")
        }))
    };
    core.change(JobId::new(1), ran).await.unwrap();
    look(&core).await;
    assert_eq!(ready(&core, &[2]).await, [false]);
    let looks = &core.waiting.sequences.looks;
    assert_eq!(looks.due(began_ms + 59_999), []);
    assert_eq!(looks.due(began_ms + 60_000), [(key(), ())]);
}

#[tokio::test]
async fn the_newest_cancels_older_ones_and_lends_its_priority() {
    let (_data, core) = core().await;
    for n in [1, 2] {
        let plain = JobState {
            submit_id: n.to_string(),
            ..member(n)
        };
        store_job(&core, plain).await;
    }
    let urgent = JobState {
        priority: 9,
        submit_id: "3".to_owned(),
        ..member(3)
    };
    store_job(&core, urgent.clone()).await;
    core.pass_on(&key()).await.unwrap();
    let first = core.stored_job(JobId::new(1)).await.unwrap().state;
    assert_eq!((first.ready, first.priority), (true, 9));
    let newest = JobState {
        sequence_replace: Some(Replace::Waiting),
        submit_id: "4".to_owned(),
        ..urgent
    };
    store_job(
        &core,
        JobState {
            job_id: JobId::new(4),
            ..newest
        },
    )
    .await;
    core.pass_on(&key()).await.unwrap();
    for n in [1, 2, 3] {
        let state = core.stored_job(JobId::new(n)).await.unwrap().state;
        assert_eq!(state.stage, Stage::Cancel, "{n}");
    }
    assert_eq!(ready(&core, &[4]).await, [true]);
}

async fn change(
    core: &Arc<Core>,
    id: u64,
    next: impl Fn(&JobState) -> Option<JobState> + Send + Sync,
) {
    let changed = core.change(JobId::new(id), |state| Ok(next(state)));
    assert!(changed.await.unwrap().is_change());
}

/// Looks at the sequence as often as this replica was stirred.
async fn look(core: &Arc<Core>) {
    let looks = &core.waiting.sequences.looks;
    let due = looks.due(looks.now_ms());
    assert_eq!(due, [(key(), ())]);
    core.pass_on(&key()).await.unwrap();
}

#[tokio::test]
async fn a_delayed_job_takes_its_place_when_its_time_has_come() {
    let (_data, core) = core().await;
    let delayed = |n, start_ms| JobState {
        start_ms,
        ..member(n)
    };
    store_job(&core, delayed(1, 5)).await;
    assert_eq!(core.pass_on(&key()).await, Ok(true), "it waits");
    assert_eq!(ready(&core, &[1]).await, [false]);
    store_job(&core, delayed(2, 9)).await;
    store_job(&core, member(3)).await;
    core.pass_on(&key()).await.unwrap();
    assert_eq!(ready(&core, &[1, 2, 3]).await, [false, false, true]);
    change(&core, 1, |state| at_alarm(state, 7)).await;
    look(&core).await;
    assert_eq!(ready(&core, &[1, 2, 3]).await, [false, false, true]);
    end(&core, 3).await;
    look(&core).await;
    assert_eq!(ready(&core, &[1, 2]).await, [true, false]);
}

#[tokio::test]
async fn a_held_job_gives_its_turn_back() {
    let (_data, a) = core().await;
    let b = core_beside(&a);
    for n in [1, 2] {
        store_job(&a, member(n)).await;
    }
    a.pass_on(&key()).await.unwrap();
    assert_eq!(ready(&a, &[1, 2]).await, [true, false]);
    let read = a.stored_job(JobId::new(1)).await.unwrap();
    change(&a, 1, |state| held(state, "ann")).await;
    look(&a).await;
    b.pass_on(&key()).await.unwrap();
    assert_eq!(ready(&a, &[1, 2]).await, [false, true]);
    change(&b, 1, |state| let_go(state, 9)).await;
    look(&b).await;
    assert_eq!(ready(&a, &[1, 2]).await, [false, true]);
    // A replica that read it long ago gives it no turn beside the other one.
    assert_eq!(a.give_turn(read, "").await, Ok(false));
    assert_eq!(ready(&a, &[1, 2]).await, [false, true]);
    end(&a, 2).await;
    look(&a).await;
    assert_eq!(ready(&a, &[1]).await, [true]);
}

/// They waited for each other for ever.
#[tokio::test]
async fn nobody_with_a_turn_waits_for_one_behind_it() {
    let (_data, core) = core().await;
    let on_2 = waits(&json!({"wait_on": {"2": null}}));
    let first = JobState {
        waits: Some(on_2.clone()),
        ..member(1)
    };
    store_job(&core, first.clone()).await;
    core.waiting.dependants.add(&first);
    store_job(&core, member(2)).await;
    // An older version gave this one its turn at once.
    let of_old = JobState {
        waits: Some(on_2),
        sequence_turn: true,
        ..member(3)
    };
    store_job(&core, of_old).await;
    core.pass_on(&key()).await.unwrap();
    assert_eq!(ready(&core, &[1, 2, 3]).await, [false, true, false]);
    end(&core, 2).await;
    core.sweep_dependants().await;
    look(&core).await;
    assert_eq!(ready(&core, &[1, 3]).await, [true, false]);
}

#[tokio::test]
async fn however_many_are_delayed_one_with_a_place_is_found() {
    let (_data, core) = core().await;
    let delayed = (1..=1_500).map(|n| NewJob {
        state: JobState {
            start_ms: 5,
            ..member(n)
        },
        body: Spec::new().into(),
    });
    let stored = core.store.submit(delayed.collect()).await;
    assert!(stored.iter().all(Result::is_ok));
    store_job(&core, member(2_000)).await;
    core.pass_on(&key()).await.unwrap();
    assert_eq!(ready(&core, &[1, 2_000]).await, [false, true]);
}
