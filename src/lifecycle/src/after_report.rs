//! The state of a job after a report of its testbox.
//!
//! Reports are idempotent: a repeat changes nothing. Stages only move forward (I9), and an attempt ends once (I8). The
//! token of an earlier attempt is refused once the next attempt is claimed.

use fairlead_job::{Cause, DataReadiness, Health, Stage};
use fairlead_store::JobState;

use crate::{
    attempt::{attempt_over, avoid},
    report::{MILESTONES_MAX, Report},
    result_paths::attempt_root,
    touch::touched,
};
use fairlead_base::errors::JobError;

/// Attempt that the sender of a report belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// The present attempt.
    Present,
    /// An earlier attempt, whose lease was lost.
    Earlier(u16),
}

/// Returns the state after a report. `None`: the report changes nothing.
pub fn after_report(
    state: &JobState,
    speaker: Speaker,
    report: &Report,
    now_ms: u64,
) -> Result<Option<JobState>, JobError> {
    if let Speaker::Earlier(attempt) = speaker {
        return late_report(state, attempt, report, now_ms);
    }
    let mut next = state.clone();
    if let Some(cases) = &report.cases {
        next.cases = Some(Box::new(cases.clone()));
    }
    if state.stage.is_terminal() {
        return after_the_end(next, report);
    }
    if state.stage == Stage::Submit && (report.stage.is_some() || report.health.is_some()) {
        return Err(JobError::NoTestbox(state.job_id));
    }
    note_facts(&mut next, report);
    let begins = state.stage == Stage::Dispatch && report.stage.is_some_and(|s| s != state.stage);
    if !report.reason.is_empty() || begins && !state.stop_asked {
        // The reason of the earlier wait is no longer valid.
        next.reason.clone_from(&report.reason);
    }
    if let (Some(address), Some(place)) = (&report.address, &mut next.cluster) {
        place.address.clone_from(address);
    }
    if let Some(seconds) = report.renew_s {
        next.deadline_ms = now_ms
            .max(state.deadline_ms)
            .saturating_add(seconds.saturating_mul(1000));
    }
    advance_readiness(&mut next, report.readiness)?;
    match report.stage {
        Some(stage) if stage != state.stage => {
            let mut entered = enter(next, stage, now_ms)?;
            if report.avoid_host && entered.stage == Stage::Submit {
                avoid(&mut entered, &state.host);
            }
            Ok(Some(entered))
        }
        _ => Ok(Some(next)),
    }
}

/// Adds the facts of the report about the attempt, in any stage.
fn note_facts(next: &mut JobState, report: &Report) {
    for milestone in &report.milestones {
        if !next.milestones.contains(milestone) && next.milestones.len() < MILESTONES_MAX {
            next.milestones.push(milestone.clone());
        }
    }
    if let Some(health) = report.health {
        next.health = health;
    }
    next.exit_code = report.exit_code.or(next.exit_code);
    if !report.crash_signature.is_empty() {
        next.crash_signature.clone_from(&report.crash_signature);
    }
    let at_end = report.stage.is_some_and(Stage::is_terminal);
    if let Some(outputs) = report.outputs.filter(|_| at_end) {
        next.outputs = outputs.to_string();
    }
    if let Some(reuse) = next.reuse.as_deref_mut().filter(|_| at_end) {
        reuse.image_digest.clone_from(&report.image_digest);
    }
    next.peak_memory_mb = next.peak_memory_mb.max(report.peak_memory_mb);
    next.cpu_ms = next.cpu_ms.max(report.cpu_ms);
}

/// Moves on to `stage`.
fn enter(mut next: JobState, stage: Stage, now_ms: u64) -> Result<JobState, JobError> {
    if !next.stage.may_become(stage) || stage == Stage::Cancel {
        return Err(JobError::NotForward {
            id: next.job_id,
            from: next.stage,
            to: stage,
        });
    }
    if stage.is_terminal() {
        return Ok(finish(&next, stage, now_ms));
    }
    if stage > Stage::WaitPeer
        && next
            .cluster
            .as_ref()
            .is_some_and(|place| !place.is_through())
    {
        return Err(JobError::PeersMissing {
            id: next.job_id,
            to: stage,
        });
    }
    let began = match stage {
        Stage::Boot => Some(&mut next.boot_ms),
        Stage::Setup => Some(&mut next.setup_ms),
        Stage::WaitPeer => Some(&mut next.wait_peer_ms),
        Stage::Running => Some(&mut next.running_ms),
        Stage::PostRun => Some(&mut next.post_run_ms),
        Stage::ManualCheck => Some(&mut next.manual_check_ms),
        _ => None,
    };
    if let Some(began) = began {
        *began = now_ms;
    }
    if stage == Stage::Running {
        next.deadline_ms = next
            .deadline_ms
            .max(now_ms.saturating_add(next.timeout_s.saturating_mul(1000)));
    }
    next.stage = stage;
    Ok(next)
}

fn finish(state: &JobState, stage: Stage, now_ms: u64) -> JobState {
    let health = match (stage, state.health) {
        (Stage::AbortInvalid, Health::Unknown) => Health::AbortInvalid,
        (Stage::AbortWait, Health::Unknown) => Health::AbortWait,
        (Stage::AbortProvider, Health::Unknown) => Health::AbortProvider,
        (_, Health::Unknown) if state.exit_code.unwrap_or(0) == 0 => Health::Success,
        (_, Health::Unknown) => Health::Fail,
        (_, health) => health,
    };
    let over = attempt_over(state, health, now_ms, &state.reason);
    if over.stage.is_terminal() {
        JobState { stage, ..over }
    } else {
        over
    }
}

fn after_the_end(mut next: JobState, report: &Report) -> Result<Option<JobState>, JobError> {
    let same_stage = report.stage.is_none_or(|stage| stage == next.stage);
    let same_health = report.health.is_none_or(|health| health == next.health);
    let same_outputs = report
        .outputs
        .is_none_or(|outputs| outputs.to_string() == next.outputs);
    if !same_stage || !same_health || !same_outputs || report.renew_s.is_some() {
        return Err(JobError::Ended {
            id: next.job_id,
            stage: next.stage,
            health: next.health,
        });
    }
    advance_readiness(&mut next, report.readiness)?;
    Ok(Some(next))
}

fn advance_readiness(
    next: &mut JobState,
    readiness: Option<DataReadiness>,
) -> Result<(), JobError> {
    let Some(wanted) = readiness.filter(|wanted| *wanted != next.data_readiness) else {
        return Ok(());
    };
    let are_in = next.data_readiness == DataReadiness::Uploaded && next.stage.is_terminal();
    if are_in && wanted == DataReadiness::Incomplete {
        // The agent repeats the end because it did not get the answer. The results are sealed, so none was taken.
        return Ok(());
    }
    // A job that seemed to leave no data may still deliver some.
    let open = matches!(
        next.data_readiness,
        DataReadiness::Norun | DataReadiness::Incomplete
    );
    if wanted < next.data_readiness && !(open && wanted >= DataReadiness::Uploaded) {
        return Err(JobError::ReadinessBack {
            from: next.data_readiness,
            to: wanted,
        });
    }
    next.data_readiness = wanted;
    Ok(())
}

/// Returns the health of a reported end.
fn reported_health(report: &Report) -> Health {
    let by_code = match report.exit_code {
        None | Some(0) => Health::Success,
        Some(_) => Health::Fail,
    };
    report.health.unwrap_or(by_code)
}

/// Applies a report of a former owner. Its end counts if the next attempt was not claimed yet.
fn late_report(
    state: &JobState,
    attempt: u16,
    report: &Report,
    now_ms: u64,
) -> Result<Option<JobState>, JobError> {
    let over = || {
        Err(JobError::AttemptOver {
            id: state.job_id,
            attempt,
            present: state.attempt,
        })
    };
    let unclaimed = state.stage == Stage::Submit && state.attempt == attempt.saturating_add(1);
    let ends = report.stage.is_some_and(Stage::is_terminal);
    let Some(record) = state.attempts.last().filter(|last| last.attempt == attempt) else {
        return over();
    };
    if unclaimed && ends && record.health == reported_health(report) {
        // The agent repeats the report because the answer was lost. Only an acknowledged write proves that it is
        // recorded.
        return Ok(Some(touched(state)));
    }
    if !unclaimed || !ends || state.cluster.is_some() {
        // The other jobs of the cluster go into its next round.
        return over();
    }
    let mut again = state.clone();
    again.attempts.pop();
    again.reason.clear();
    again.attempt = attempt;
    again.result_root = attempt_root(&state.result_root, state.attempt, attempt);
    again.host.clone_from(&record.host);
    again.host_class.clone_from(&record.host_class);
    again.session.clone_from(&record.session);
    again.claim_token.clone_from(&record.claim_token);
    again.dispatch_ms = record.dispatch_ms;
    again.running_ms = record.dispatch_ms;
    again.stage = record.stage;
    let left = if record.health.cause() == Some(Cause::Infra) {
        &mut again.retry_lost_left
    } else {
        &mut again.retry_fail_left
    };
    *left = left.saturating_add(1);
    after_report(&again, Speaker::Present, report, now_ms)
}

#[cfg(test)]
mod tests;
