//! Conditions on other jobs, compared with their states.

use std::collections::BTreeMap;

use fairlead_job::{
    Condition, DataReadiness, Health, JobId, Requirement, Stage, WaitOn, Waits, text_of,
};
use fairlead_store::{JobState, StoredJob};

use crate::{
    alarm::begin,
    attempt::{MISSING_MS, ended},
    fields::field_of,
    reuse::{after_joined, joined},
};

/// Status of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is met.
    Met,
    /// It may still be met.
    Open,
    /// The job ended, so it can never be met.
    Never,
}

/// Returns the status of a condition with this state of its job.
pub fn standing(condition: &Condition, state: &JobState) -> Standing {
    let requirements = &condition.requirements;
    if requirements.is_empty() {
        return if state.stage.is_terminal() {
            Standing::Met
        } else {
            Standing::Open
        };
    }
    if requirements.iter().all(|required| holds(state, required)) {
        return Standing::Met;
    }
    let on_results = |required: &Requirement| matches!(required, Requirement::DataReadiness(_));
    let results_may_come = state.data_readiness < DataReadiness::Complete;
    let readiness_open = results_may_come && requirements.iter().any(on_results);
    if state.stage.is_terminal() && !readiness_open {
        Standing::Never
    } else {
        Standing::Open
    }
}

fn holds(state: &JobState, required: &Requirement) -> bool {
    match required {
        // A cancelled or aborted job is beyond stage running, but never reached it.
        Requirement::Stage(stage) if stage.is_terminal() => state.stage.is_terminal(),
        Requirement::Stage(stage) => state.stage >= *stage && state.stage <= Stage::Finish,
        Requirement::Health(health) => state.health == *health,
        Requirement::DataReadiness(wanted) => state.data_readiness >= *wanted,
        Requirement::Field(name, value) if name == "milestones" => text_of(value)
            .split(',')
            .all(|wanted| state.milestones.iter().any(|m| m == wanted.trim())),
        Requirement::Field(name, value) => {
            field_of(state, name).is_some_and(|present| text_of(&present) == text_of(value))
        }
    }
}

/// Returns the conditions that a job waits for. `None`: none, or a kind that this version does not know.
pub fn waits_for(child: &JobState) -> Option<&WaitOn> {
    match child.waits.as_ref()? {
        Waits::Jobs(on) => Some(on),
        Waits::Unknown(_) => None,
    }
}

/// Returns the next state of a waiting job. `None`: it waits on.
pub fn decide(
    child: &JobState,
    parents: &BTreeMap<JobId, Option<StoredJob>>,
    now_ms: u64,
) -> Option<JobState> {
    if let Some(other) = joined(child) {
        return after_joined(child, parents.get(&other)?.as_ref(), now_ms);
    }
    let on = waits_for(child)?;
    let mut all_met = true;
    for condition in &on.conditions {
        let Some(parent) = parents.get(&condition.job)? else {
            if now_ms < child.submit_ms.saturating_add(MISSING_MS) {
                all_met = false;
                continue;
            }
            return Some(aborted(
                child,
                now_ms,
                &format!("job {} does not exist", condition.job),
            ));
        };
        let state = &parent.state;
        let failed = state.stage.is_terminal() && state.health != Health::Success;
        match standing(condition, state) {
            Standing::Never => {
                let reason = format!(
                    "job {} ended ({}) without what was waited for",
                    condition.job, state.health
                );
                return Some(aborted(child, now_ms, &reason));
            }
            _ if on.fail_fast && failed => {
                return Some(aborted(
                    child,
                    now_ms,
                    &format!("job {} ended with {}", condition.job, state.health),
                ));
            }
            Standing::Open => all_met = false,
            // The outputs of a job are known at its end.
            Standing::Met if !state.stage.is_terminal() && takes_from(child, condition.job) => {
                all_met = false;
            }
            Standing::Met => {}
        }
    }
    all_met.then(|| {
        let free = JobState {
            waits: None,
            reason: String::new(),
            ..child.clone()
        };
        match with_inputs(free, parents) {
            Ok(free) => begin(free, now_ms),
            Err(reason) => aborted(child, now_ms, &reason),
        }
    })
}

/// Describes jobs that wait for each other, beginning with the one that waits for the first of `others`.
pub fn words_of_circle(first: &str, others: impl Iterator<Item = JobId>) -> String {
    let others: Vec<String> = others.map(|id| format!("job {id}")).collect();
    let others = others.join(", which waits for ");
    format!("a circle: {first} waits for {others}, which waits for {first}")
}

/// Returns true if the outputs of `parent` are inputs of `child`.
fn takes_from(child: &JobState, parent: JobId) -> bool {
    child.inputs_from().any(|from| from == parent)
}

/// Returns the content ids of the known outputs that are inputs of this job.
pub fn outputs_for<'p>(
    child: &JobState,
    parents: &'p BTreeMap<JobId, Option<StoredJob>>,
) -> Vec<&'p str> {
    let known = |from: JobId| Some(parents.get(&from)?.as_ref()?.state.outputs.as_str());
    child.inputs_from().filter_map(known).collect()
}

/// Adds the outputs of other jobs to the inputs of a job.
///
/// # Errors
/// Returns the reason why an input is missing.
fn with_inputs(
    mut child: JobState,
    parents: &BTreeMap<JobId, Option<StoredJob>>,
) -> Result<JobState, String> {
    for input in &mut child.inputs {
        let Some(from) = input.strip_prefix(JobState::INPUT_FROM) else {
            continue;
        };
        let parent = from.parse().ok().and_then(|from: JobId| parents.get(&from));
        let outputs = parent.and_then(|parent| Some(&parent.as_ref()?.state.outputs));
        match outputs.filter(|outputs| !outputs.is_empty()) {
            Some(outputs) => input.clone_from(outputs),
            None => return Err(format!("job {from} left no outputs, which are its input")),
        }
    }
    Ok(child)
}

/// Returns a waiting job that ends because its conditions can never be met.
pub fn aborted(child: &JobState, now_ms: u64, reason: &str) -> JobState {
    ended(child, Stage::AbortWait, Health::AbortWait, now_ms, reason)
}
