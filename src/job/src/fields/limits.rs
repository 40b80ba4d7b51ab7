//! Limits of time: of the run, of other stages, and of silence.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    FieldError, SiteDefaults, Spec, Stage,
    fields::{
        read::{present, refuse},
        table::names_of,
    },
    units::{duration_s, shown},
};

/// How long a running job may say nothing: its testbox stops it then.
pub const SILENCE_TIMEOUT: &str = "silence_timeout";

/// The time limit: as given; else from the runtime with room for set-up; else the site's.
pub(crate) fn timeout_s(spec: &Spec, defaults: &SiteDefaults) -> Result<u64, FieldError> {
    let read = |field: &str| match spec.get(field).map_or(Ok(None), duration_s) {
        Ok(seconds) => Ok(seconds),
        Err(error) => refuse(
            field,
            error.to_string(),
            "leave it out for the site's default",
        ),
    };
    let runtime = read("runtime")?;
    for field in names_of("timeout") {
        match read(field)? {
            None => {}
            Some(0) => {
                return refuse(
                    field,
                    "0 is not a valid limit".to_owned(),
                    "at least 1 second",
                );
            }
            Some(seconds) => return Ok(seconds),
        }
    }
    Ok(runtime
        .map_or(defaults.timeout_s, |runtime| {
            runtime + (runtime / 8).max(300) + runtime.isqrt()
        })
        .max(1))
}

/// A limit in `field`, in seconds; `None`: nothing is said.
///
/// # Errors
/// No duration, or none at all.
pub fn limit_s(spec: &Spec, field: &str) -> Result<Option<u64>, FieldError> {
    spec.get(field)
        .map_or(Ok(None), |value| read_limit_s(field, value))
}

fn read_limit_s(field: &str, value: &Value) -> Result<Option<u64>, FieldError> {
    match duration_s(value) {
        Ok(Some(0)) => refuse(
            field,
            "0 is not a valid duration".to_owned(),
            "write at least 1 second, or leave it out for the default",
        ),
        Ok(seconds) => Ok(seconds),
        Err(error) => refuse(field, error.to_string(), "write for example 10m"),
    }
}

/// Stages that have a limit of their own which a job and a site may set.
pub const LIMITED: [Stage; 6] = [
    Stage::Dispatch,
    Stage::Boot,
    Stage::Setup,
    Stage::WaitPeer,
    Stage::PostRun,
    Stage::ManualCheck,
];

/// `stage_timeouts: {boot: 20m}` over the site's.
pub(crate) fn stage_limits_s(
    spec: &Spec,
    defaults: &SiteDefaults,
) -> Result<BTreeMap<Stage, u64>, FieldError> {
    const FIELD: &str = "stage_timeouts";
    let mut limits = defaults.stage_limits_s.clone();
    let said = match present(spec, FIELD) {
        None => return Ok(limits),
        Some(Value::Object(said)) => said,
        Some(other) => {
            let problem = format!("{} where a map was expected", shown(other));
            return refuse(FIELD, problem, "write {boot: 20m, post_run: 1h}");
        }
    };
    for (name, value) in said {
        let Some(stage) = LIMITED.into_iter().find(|stage| stage.as_str() == name) else {
            let problem = format!("{} has no limit to set", shown(&Value::from(name.as_str())));
            let known = LIMITED.map(Stage::as_str).join(", ");
            return refuse(
                FIELD,
                problem,
                &format!("one of {known}; timeout is the limit of stage running"),
            );
        };
        if let Some(seconds) = read_limit_s(&format!("{FIELD}.{name}"), value)? {
            limits.insert(stage, seconds);
        }
    }
    Ok(limits)
}
