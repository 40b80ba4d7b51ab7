//! Conditions on other jobs: parsed, checked, and compared with states.

use std::collections::BTreeMap;

use fairlead_api::ErrorCode;
use fairlead_job::{DataReadiness, Health, JobId, Stage};
use fairlead_store::{JobState, StoredJob};
use serde_json::Value;

use crate::{
    base::errors::Refusal,
    lifecycle::{alarm::begin, attempt::ended, fields::field_of},
};

/// A job of the same submit may be stored so much later than one that waits for it, ms.
pub(crate) const MISSING_MS: u64 = 60_000;

/// Most jobs in one wait.
pub(crate) const JOBS_MAX: usize = 1_000;

/// What is waited for, of one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) job: JobId,
    /// All of these; none: that the job ends.
    fields: Vec<(String, String)>,
}

/// How a condition stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It holds.
    Met,
    /// It may yet hold.
    Open,
    /// The job ended, and it can hold no more.
    Never,
}

impl Condition {
    /// Reads `wait_on: {id: {field: value} | null}`.
    pub(crate) fn read_all(value: &Value) -> Result<Vec<Self>, Refusal> {
        let bad = |message: String| {
            Refusal::new(
                ErrorCode::BadField,
                message,
                "wait_on: {JOB_ID: {job_stage: finish}}, or {JOB_ID: null} for its end",
            )
        };
        let Some(map) = value.as_object() else {
            return Err(bad("wait_on: not a map".to_owned()));
        };
        if map.is_empty() || map.len() > JOBS_MAX {
            return Err(bad(format!(
                "wait_on: {} jobs; 1 to {JOBS_MAX} can be waited for",
                map.len()
            )));
        }
        map.iter()
            .map(|(id, fields)| {
                let job = id
                    .parse()
                    .map_err(|error| bad(format!("wait_on: {error}")))?;
                let fields = match fields {
                    Value::Null => Vec::new(),
                    Value::Object(fields) => fields
                        .iter()
                        .map(|(name, value)| (name.clone(), text_of(value)))
                        .collect(),
                    Value::String(stage) => vec![("job_stage".to_owned(), stage.clone())],
                    _ => {
                        return Err(bad(format!(
                            "wait_on: what is waited for of {id} is neither a map nor null"
                        )));
                    }
                };
                for (name, value) in &fields {
                    check_field(name, value).map_err(bad)?;
                }
                Ok(Self { job, fields })
            })
            .collect()
    }

    /// How it stands with this state of the job.
    pub(crate) fn standing(&self, state: &JobState) -> Standing {
        if self.fields.is_empty() {
            return if state.stage.is_terminal() {
                Standing::Met
            } else {
                Standing::Open
            };
        }
        if self
            .fields
            .iter()
            .all(|(name, value)| holds(state, name, value))
        {
            return Standing::Met;
        }
        let readiness_open = self
            .fields
            .iter()
            .any(|(name, _)| name == "job_data_readiness")
            && state.data_readiness < DataReadiness::Complete;
        if state.stage.is_terminal() && !readiness_open {
            Standing::Never
        } else {
            Standing::Open
        }
    }
}

fn text_of(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn check_field(name: &str, value: &str) -> Result<(), String> {
    let known = match name {
        "job_stage" => value
            .parse::<Stage>()
            .map(|_| ())
            .map_err(|error| error.to_string()),
        "job_health" => value
            .parse::<Health>()
            .map(|_| ())
            .map_err(|error| error.to_string()),
        "job_data_readiness" => value
            .parse::<DataReadiness>()
            .map(|_| ())
            .map_err(|error| error.to_string()),
        _ => Ok(()),
    };
    known.map_err(|error| format!("wait_on: {error}"))
}

pub(crate) fn holds(state: &JobState, name: &str, value: &str) -> bool {
    match name {
        "job_stage" => value.parse::<Stage>().is_ok_and(|stage| {
            // Cancelled or aborted is beyond running, but it never got there.
            if stage.is_terminal() {
                state.stage.is_terminal()
            } else {
                state.stage >= stage && state.stage <= Stage::Finish
            }
        }),
        "job_data_readiness" => value
            .parse::<DataReadiness>()
            .is_ok_and(|wanted| state.data_readiness >= wanted),
        "milestones" => value
            .split(',')
            .all(|wanted| state.milestones.iter().any(|m| m == wanted.trim())),
        _ => field_of(state, name).is_some_and(|present| text_of(&present) == value),
    }
}

/// What a job waits for; none: it waits for no job.
pub(crate) fn conditions_of(child: &JobState) -> Option<Vec<Condition>> {
    let waits = child.waits.as_ref()?;
    Condition::read_all(waits.get("wait_on")?).ok()
}

/// What becomes of a waiting job: `None`, it waits on.
pub(crate) fn decide(
    child: &JobState,
    parents: &BTreeMap<JobId, Option<StoredJob>>,
    now_ms: u64,
) -> Option<JobState> {
    let conditions = conditions_of(child)?;
    let fail_fast = child
        .waits
        .as_ref()
        .and_then(|w| w.get("fail_fast"))
        .and_then(Value::as_bool)
        .unwrap_or(false);
    let mut all_met = true;
    for condition in &conditions {
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
        match condition.standing(state) {
            Standing::Never => {
                let reason = format!(
                    "job {} ended ({}) without what was waited for",
                    condition.job, state.health
                );
                return Some(aborted(child, now_ms, &reason));
            }
            _ if fail_fast && failed => {
                return Some(aborted(
                    child,
                    now_ms,
                    &format!("job {} ended with {}", condition.job, state.health),
                ));
            }
            Standing::Open => all_met = false,
            Standing::Met => {}
        }
    }
    all_met.then(|| {
        let free = JobState {
            waits: None,
            reason: String::new(),
            ..child.clone()
        };
        begin(free, now_ms)
    })
}

fn aborted(child: &JobState, now_ms: u64, reason: &str) -> JobState {
    ended(child, Stage::AbortWait, Health::AbortWait, now_ms, reason)
}
