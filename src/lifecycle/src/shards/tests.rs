//! Tests of the rules of a sharded job.

use fairlead_job::JobId;
use fairlead_store::Version;

use super::*;
use crate::{alarm::at_alarm, attempt::lost, parent::released};
use fairlead_fixtures::state;

fn parent(count: u16) -> JobState {
    let parent = JobState {
        ready: false,
        fingerprint: "f".to_owned(),
        shards: Some(Box::new(Sharding {
            count,
            ..Sharding::default()
        })),
        ..state(100)
    };
    released(parent, 1_000).set_alarm()
}

/// Returns the shards of a parent. `ends` has the health of each; `None`: it waits.
fn shards(parent: &JobState, ends: &[Option<Health>]) -> Vec<Option<StoredJob>> {
    let shard = |(n, end): (u16, &Option<Health>)| {
        let state = shard_state(parent, n, None);
        let state = match end {
            None => state,
            Some(health) => JobState {
                data_readiness: DataReadiness::Uploaded,
                ..ended(&state, Stage::Finish, *health, 2_000, "")
            },
        };
        let version = Version::default();
        Some(StoredJob { state, version })
    };
    (1..).zip(ends).map(shard).collect()
}

fn all_made(parent: &JobState) -> JobState {
    made(parent)
}

#[test]
fn a_shard_is_its_parent_with_a_number() {
    let parent = parent(20);
    assert!(!parent.ready && parent.alarm_ms == 6_000, "{parent:?}");
    let shard = shard_state(&parent, 3, None);
    assert_eq!(shard.job_id, JobId::new(103));
    assert_eq!(
        (shard.ready, shard.alarm_ms, shard.submit_ms),
        (true, 0, 1_000)
    );
    assert_eq!(shard.params, "shard=3/20");
    assert!(shard.fingerprint.is_empty() && shard.shards.is_none());
    // The later state of the parent changes nothing.
    assert_eq!(shard_state(&all_made(&parent), 3, None), shard);
}

#[test]
fn what_is_missing_is_made_and_then_noted() {
    let parent = parent(3);
    let mut there = shards(&parent, &[None, None, None]);
    there[1] = None;
    assert_eq!(next(&parent, &there, 1_000), Next::Make(vec![2]));
    let there = shards(&parent, &[None, None, None]);
    let Next::Note(noted) = next(&parent, &there, 1_000) else {
        panic!("it is not noted");
    };
    assert!(noted.shards.as_ref().is_some_and(|it| it.made));
    assert_eq!(noted.alarm_ms, 0);
    assert_eq!(next(&noted, &there, 1_000), Next::Wait(None));
}

#[test]
fn the_whole_succeeds_if_all_do_and_names_those_that_do_not() {
    let parent = all_made(&parent(3));
    let end = |ends: &[Option<Health>]| match next(&parent, &shards(&parent, ends), 3_000) {
        Next::End(end) => (end.stage, end.health, end.reason, end.data_readiness),
        other => panic!("{other:?}"),
    };
    let (good, bad) = (Some(Health::Success), Some(Health::Fail));
    let uploaded = DataReadiness::Uploaded;
    assert_eq!(
        end(&[good, good, good]),
        (Stage::Finish, Health::Success, String::new(), uploaded)
    );
    let why = "1 of 3 shards failed: 2 (fail)".to_owned();
    assert_eq!(
        end(&[good, bad, good]),
        (Stage::Finish, Health::Fail, why, uploaded)
    );
    let lost = Some(Health::AbortProvider);
    let mixed = |ends: &[Option<Health>]| end(ends).1;
    assert_eq!(mixed(&[good, lost, lost]), Health::AbortProvider);
    assert_eq!(mixed(&[lost, lost, bad]), Health::Fail);
    assert_eq!(
        mixed(&[lost, Some(Health::NfsHang), good]),
        Health::AbortProvider
    );
    assert_eq!(mixed(&[Some(Health::Oom), good, good]), Health::Oom);
}

#[test]
fn the_first_failure_stops_the_others_if_that_is_asked() {
    let mut whole = all_made(&parent(3));
    let there = shards(&whole, &[None, Some(Health::Fail), Some(Health::Success)]);
    assert_eq!(next(&whole, &there, 3_000), Next::Wait(None));
    whole.shards.as_mut().unwrap().fail_fast = true;
    let Next::Note(told) = next(&whole, &there, 3_000) else {
        panic!("nobody stops them");
    };
    assert!(told.stop_asked && told.stop_health == Some(Health::Fail));
    assert_eq!(told.reason, "shard 2 ended with fail: fail_fast");
    assert_eq!(next(&told, &there, 3_000), Next::Stop(vec![1]));
    let waiting = &there[0].as_ref().unwrap().state;
    let stopped = stopped_shard(&told, waiting, 3_000).unwrap();
    assert_eq!(stopped.stage, Stage::Cancel);
    // A running shard is told to stop, and gets no further attempt.
    let running = JobState {
        stage: Stage::Running,
        ..waiting.clone()
    };
    let stopped = stopped_shard(&told, &running, 3_000).unwrap();
    assert_eq!(lost(&stopped, 4_000, "silent").stage, Stage::Finish);
    assert_eq!(stopped_shard(&told, &stopped, 4_000), None);
    let over = shards(
        &told,
        &[
            Some(Health::Cancel),
            Some(Health::Fail),
            Some(Health::Success),
        ],
    );
    let Next::End(end) = next(&told, &over, 5_000) else {
        panic!("it goes on");
    };
    assert_eq!((end.stage, end.health), (Stage::Finish, Health::Fail));
    let ends = &end.shards.as_ref().unwrap().ends;
    assert_eq!(ends.values().sum::<u16>(), 3);
}

#[test]
fn the_whole_is_stopped_when_its_time_is_up() {
    let whole = JobState {
        finish_by_ms: 9_000,
        ..all_made(&parent(2))
    };
    let there = shards(&whole, &[None, Some(Health::Success)]);
    assert_eq!(next(&whole, &there, 8_999), Next::Wait(Some(9_000)));
    assert_eq!(at_alarm(&whole, 9_000), None, "its shards decide");
    let Next::Note(told) = next(&whole, &there, 9_000) else {
        panic!("it goes on");
    };
    assert_eq!(told.stop_health, Some(Health::TimeoutRunning));
    assert_eq!(told.reason, "1 of 2 shards were not over in time");
    assert_eq!(told.alarm_ms, 14_000, "somebody looks whether they stop");
}

#[test]
fn data_that_comes_late_is_waited_for_and_not_for_ever() {
    let whole = all_made(&parent(2));
    let mut there = shards(&whole, &[Some(Health::Success), Some(Health::Fail)]);
    let late = &mut there[1].as_mut().unwrap().state;
    late.data_readiness = DataReadiness::Incomplete;
    let until = 2_000 + DATA_COMES_MS;
    assert_eq!(next(&whole, &there, 3_000), Next::Wait(Some(until)));
    assert!(matches!(next(&whole, &there, until), Next::End(_)));
    // A host that was lost sends nothing.
    there[1].as_mut().unwrap().state.health = Health::AbortProvider;
    assert!(matches!(next(&whole, &there, 3_000), Next::End(_)));
}

#[test]
fn a_shard_that_is_made_after_the_stop_never_runs() {
    let whole = parent(2);
    let cancelled = cancelled(&whole, 5_000, "cancelled by ann");
    assert_eq!(
        (cancelled.stage, cancelled.stop_asked),
        (Stage::Submit, true)
    );
    let shard = shard_state(&cancelled, 2, None);
    assert_eq!((shard.stage, shard.health), (Stage::Cancel, Health::Cancel));
    assert!(!shard.ready && shard.reason == "cancelled by ann");
    let there = shards(&cancelled, &[None, None]);
    let noted = all_made(&cancelled);
    let Next::End(end) = next(&noted, &there, 6_000) else {
        panic!("it goes on");
    };
    assert_eq!((end.stage, end.health), (Stage::Cancel, Health::Cancel));
    assert_eq!(end.data_readiness, DataReadiness::Norun);
}

#[test]
fn failures_are_counted_and_the_first_are_named_with_their_shard() {
    let whole = all_made(&parent(3));
    let mut there = shards(
        &whole,
        &[
            Some(Health::Success),
            Some(Health::Fail),
            Some(Health::Fail),
        ],
    );
    for (n, failed) in [(1, 2), (2, 2)] {
        there[n].as_mut().unwrap().state.cases = Some(Box::new(CaseCounts {
            passed: 10,
            failed,
            skipped: 1,
            first_failures: vec![format!("a{n}"), "ü".repeat(60)],
        }));
    }
    let Next::End(end) = next(&whole, &there, 3_000) else {
        panic!("it goes on");
    };
    let cases = end.cases.as_ref().unwrap();
    assert_eq!((cases.passed, cases.failed, cases.skipped), (20, 4, 2));
    let names = &cases.first_failures;
    assert_eq!(
        (names.len(), names[0].as_str(), names[2].as_str()),
        (3, "2: a1", "3: a2")
    );
    assert!(names[1].len() <= CaseCounts::FAILURE_BYTES_MAX);
}
