//! Tests of reports: stages move forward, and a repeat changes nothing.

use fairlead_api::ErrorCode;

use super::*;
use fairlead_base::errors::Refusal;
use fairlead_fixtures::state;

fn report(pairs: &[(&str, &str)]) -> Report {
    Report::of(pairs.iter().copied()).unwrap()
}

fn apply(state: &JobState, pairs: &[(&str, &str)]) -> Result<JobState, ErrorCode> {
    after_report(state, Speaker::Present, &report(pairs), 1_000)
        .map(|next| next.unwrap_or_else(|| state.clone()))
        .map_err(|error| Refusal::from(error).body().code)
}

#[test]
fn stages_move_forward_and_an_end_is_an_end() {
    let held = JobState {
        stage: Stage::Dispatch,
        ..state(1)
    };
    let running = apply(&held, &[("job_stage", "running")]).unwrap();
    assert_eq!((running.stage, running.running_ms), (Stage::Running, 1_000));
    assert_eq!(
        apply(&running, &[("job_stage", "boot")]),
        Err(ErrorCode::WrongStage)
    );
    assert_eq!(
        apply(&running, &[("job_stage", "running")]),
        Ok(running.clone())
    );
    let end = apply(&running, &[("job_stage", "finish"), ("exit_code", "0")]).unwrap();
    assert_eq!((end.stage, end.health), (Stage::Finish, Health::Success));
    assert_eq!(
        apply(&end, &[("job_stage", "running")]),
        Err(ErrorCode::Closed)
    );
    assert_eq!(apply(&end, &[("job_stage", "finish")]), Ok(end.clone()));
    assert_eq!(
        apply(&end, &[("job_health", "fail")]),
        Err(ErrorCode::Closed)
    );
    assert_eq!(
        apply(&end, &[("job_data_readiness", "uploaded")])
            .unwrap()
            .data_readiness,
        DataReadiness::Uploaded
    );
}

#[test]
fn outputs_come_with_the_end_and_with_no_other_report() {
    let running = JobState {
        stage: Stage::Running,
        running_ms: 1,
        retry_fail_left: 1,
        retry_on: vec![Cause::Fail],
        ..state(1)
    };
    let (one, other) = ("a".repeat(64), "b".repeat(64));
    let outputs = ("outputs", one.as_str());
    let early = apply(&running, &[("job_stage", "post_run"), outputs]).unwrap();
    assert_eq!(early.outputs, "");
    let end = [("job_stage", "finish"), ("job_health", "success"), outputs];
    let ended = apply(&running, &end).unwrap();
    assert_eq!((ended.stage, &ended.outputs), (Stage::Finish, &one));
    assert_eq!(
        apply(&ended, &end),
        Ok(ended.clone()),
        "the answer was lost"
    );
    let others = [("job_stage", "finish"), ("outputs", other.as_str())];
    assert_eq!(apply(&ended, &others), Err(ErrorCode::Closed));
    let failed = [("job_stage", "finish"), ("job_health", "fail"), outputs];
    let again = apply(&running, &failed).unwrap();
    assert_eq!((again.stage, again.outputs.as_str()), (Stage::Submit, ""));
}

/// Regression: a success kept the reason "nobody took the answer" of an earlier grant.
#[test]
fn why_a_job_came_back_is_over_when_it_begins() {
    let claimed = JobState {
        stage: Stage::Dispatch,
        reason: "nobody took the answer".to_owned(),
        ..state(1)
    };
    let running = apply(&claimed, &[("job_stage", "running")]).unwrap();
    assert_eq!(running.reason, "");
    let end = [("job_stage", "finish"), ("job_health", "success")];
    assert_eq!(apply(&claimed, &end).unwrap().reason, "");
    let with_reason = [&end[..], &[("reason", "the disk is full")]].concat();
    assert_eq!(
        apply(&claimed, &with_reason).unwrap().reason,
        "the disk is full"
    );
    let told_to_stop = JobState {
        stop_asked: true,
        reason: "stopped by ann".to_owned(),
        ..claimed
    };
    assert_eq!(apply(&told_to_stop, &end).unwrap().reason, "stopped by ann");
}

#[test]
fn results_that_are_in_stay_in() {
    let held = JobState {
        stage: Stage::Running,
        running_ms: 1,
        ..state(1)
    };
    let end = [("job_stage", "finish"), ("job_data_readiness", "uploaded")];
    let end = apply(&held, &end).unwrap();
    let again = apply(&end, &[("job_data_readiness", "incomplete")]).unwrap();
    assert_eq!(again.data_readiness, DataReadiness::Uploaded);
    let complete = apply(&end, &[("job_data_readiness", "complete")]).unwrap();
    assert_eq!(complete.data_readiness, DataReadiness::Complete);
}

#[test]
fn a_failure_is_tried_again_while_the_job_says_so() {
    let held = JobState {
        stage: Stage::Running,
        retry_fail_left: 1,
        claim_token: "t".into(),
        ..state(1)
    };
    let again = apply(&held, &[("job_stage", "finish"), ("exit_code", "3")]).unwrap();
    assert_eq!(
        (again.stage, again.attempt, again.retry_fail_left),
        (Stage::Submit, 2, 0)
    );
    let end = apply(
        &JobState {
            stage: Stage::Running,
            ..again
        },
        &[("job_stage", "finish"), ("exit_code", "3")],
    );
    let end = end.unwrap();
    assert_eq!(
        (end.stage, end.health, end.exit_code),
        (Stage::Finish, Health::Fail, Some(3))
    );
}

#[test]
fn a_testbox_that_fails_a_job_is_avoided_by_the_next_attempt() {
    let held = JobState {
        stage: Stage::Running,
        host: "bad".into(),
        retry_lost_left: 1,
        claim_token: "t".into(),
        ..state(1)
    };
    let end = [
        ("job_stage", "finish"),
        ("job_health", "abort_provider"),
        ("avoid_host", "1"),
    ];
    let again = apply(&held, &end).unwrap();
    assert_eq!((again.stage, again.attempt), (Stage::Submit, 2));
    assert_eq!(again.not_on, ["bad"]);
    let plain = apply(&held, &end[..2]).unwrap();
    assert!(plain.not_on.is_empty());
    // After the last attempt there is no next one that could avoid the host.
    let last = JobState {
        retry_lost_left: 0,
        ..held
    };
    let over = apply(&last, &end).unwrap();
    assert!(over.stage.is_terminal() && over.not_on.is_empty());
}

#[test]
fn a_crash_is_on_record_for_as_long_as_its_attempt_is_the_last() {
    let held = JobState {
        stage: Stage::Running,
        retry_fail_left: 1,
        claim_token: "t".into(),
        ..state(1)
    };
    let end = [
        ("job_stage", "finish"),
        ("job_health", "oops"),
        ("crash_signature", "kernel BUG in frob"),
    ];
    let again = apply(&held, &end).unwrap();
    assert_eq!((again.stage, again.attempt), (Stage::Submit, 2));
    assert_eq!(again.crash_signature, "");
    let running = JobState {
        stage: Stage::Running,
        ..again
    };
    let over = apply(&running, &end).unwrap();
    assert_eq!((over.stage, over.health), (Stage::Finish, Health::Oops));
    assert_eq!(over.crash_signature, "kernel BUG in frob");
    let long = "x".repeat(1_000);
    let noted = apply(&running, &[("crash_signature", &long)]).unwrap();
    assert_eq!(
        (noted.health, noted.crash_signature.len()),
        (Health::Unknown, 256)
    );
}

#[test]
fn a_failure_that_is_told_twice_is_tried_again_once() {
    let held = JobState {
        stage: Stage::Running,
        retry_fail_left: 2,
        claim_token: "t".into(),
        ..state(1)
    };
    let end = report(&[("job_stage", "finish"), ("job_health", "fail")]);
    let again = after_report(&held, Speaker::Present, &end, 500)
        .unwrap()
        .unwrap();
    assert_eq!((again.attempt, again.retry_fail_left), (2, 1));
    let twice = after_report(&again, Speaker::Earlier(1), &end, 900).unwrap();
    assert_eq!(twice, Some(touched(&again)), "it is made sure of");
}

#[test]
fn a_late_end_counts_until_the_next_attempt_is_claimed() {
    let held = JobState {
        stage: Stage::Running,
        claim_token: "t".into(),
        retry_lost_left: 1,
        ..state(1)
    };
    let waiting = crate::attempt::lost(&held, 500, "silent");
    let late = report(&[("job_stage", "finish"), ("job_health", "success")]);
    let end = after_report(&waiting, Speaker::Earlier(1), &late, 900)
        .unwrap()
        .unwrap();
    assert_eq!(
        (end.stage, end.health, end.attempt),
        (Stage::Finish, Health::Success, 1)
    );
    assert_eq!(end.result_root, held.result_root);
    let claimed = JobState {
        stage: Stage::Dispatch,
        ..waiting
    };
    let refused = after_report(&claimed, Speaker::Earlier(1), &late, 900).unwrap_err();
    assert!(
        matches!(refused, JobError::AttemptOver { .. }),
        "{refused:?}"
    );
}
