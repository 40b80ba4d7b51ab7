//! What the dispatcher needs to know of a spec: typed, validated, with the site's defaults filled in.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    OnShutdown, PlanError, Retry, SiteDefaults, Spec, Stage, TboxType, When,
    fields::{
        CACHE_DIR_BYTES_MAX, Charset, LIST_ITEMS_MAX, NAME_BYTES_MAX, name, names, present, refuse,
        whole, yes,
    },
    place::Place,
    retry::retry,
    units::{duration_s, shown},
    when::when,
};

/// What `max_run` may be at most.
const MAX_RUN_MAX: i64 = 1_000_000;

/// `max_run`: how many jobs that run the same thing there may be; `None`: as many as there are.
///
/// # Errors
/// It is no whole number from 1 on.
pub fn max_run(spec: &Spec) -> Result<Option<u64>, PlanError> {
    let said = present(spec, "max_run");
    let most = said
        .map(|value| whole("max_run", value, 1, MAX_RUN_MAX))
        .transpose()?;
    Ok(most.and_then(|most| u64::try_from(most).ok()))
}

/// The typed view of one spec: all that matching, charging, limits and people's searches use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobPlan {
    /// Test suite; `script` when the job has only a script.
    pub suite: String,
    /// `category`, empty when not said.
    pub category: String,
    /// Who submits and is charged: `my_account`; empty when not said (the caller fills it in).
    pub account: String,
    /// The queue asked for; empty means the account's own.
    pub queue: String,
    /// Priority inside the account, -100 to 100, higher first, default 0.
    pub priority: i16,
    /// The testbox asked for, in full.
    pub testbox: String,
    /// The group of it.
    pub tbox_group: String,
    /// Its kind.
    pub tbox_type: TboxType,
    /// The architecture that a host must have; empty when any will do (a named machine or group).
    pub arch: String,
    /// Machines that it may run on; empty means any.
    pub target_machines: Vec<String>,
    /// The host keys under which hosts find it, sorted, never empty. One match is enough.
    pub host_keys: Vec<String>,
    /// Memory that it takes from a vm/dc host, or that a hw machine must have, in MB; hw: 0 when not said.
    pub memory_mb: u32,
    /// Tags that the host must have, sorted, without repeats.
    pub tags: Vec<String>,
    /// Devices that the host must have, sorted, without repeats.
    pub devices: Vec<String>,
    /// Cache directories that it would like to find, in the job's order, without repeats.
    pub cache_dirs: Vec<String>,
    /// Time limit of stage running, in seconds, at least 1.
    pub timeout_s: u64,
    /// Limits of other stages where the job or the site sets one, in seconds, at least 1.
    pub stage_limits_s: BTreeMap<Stage, u64>,
    /// How long it may be ready and wait for a testbox, in seconds; 0: for ever.
    pub queue_timeout_s: u64,
    /// Not before.
    pub start: Option<When>,
    /// Over by.
    pub deadline: Option<When>,
    /// How it is tried again.
    pub retry: Retry,
    /// Whether the agent must stop it when cut off from every replica.
    pub stop_when_cut_off: bool,
    /// `submit_id`, `group_id`, empty when not said.
    pub submit_id: String,
    /// See `submit_id`.
    pub group_id: String,
}

/// How long a running job may say nothing: its testbox stops it then.
pub const SILENCE_TIMEOUT: &str = "silence_timeout";

/// Bounds of `priority`.
pub const PRIORITY_MAX: i16 = 100;

impl JobPlan {
    /// Reads and checks `spec`.
    ///
    /// # Errors
    /// The first field that is wrong: of another type, out of bounds, or against another field.
    pub fn of(spec: &Spec, defaults: &SiteDefaults) -> Result<Self, PlanError> {
        let place = Place::of(spec, defaults)?;
        // The agent reads it from the job: nonsense must not get that far.
        limit_s(spec, SILENCE_TIMEOUT)?;
        OnShutdown::of(spec)?;
        max_run(spec)?;
        let list =
            |field: &str, value| names(field, value, Charset::Text, NAME_BYTES_MAX, LIST_ITEMS_MAX);
        let mut tags = list("tags", present(spec, "tags"))?;
        let mut devices = list("sched.devices", devices(spec)?)?;
        tags.sort();
        devices.sort();
        let cache_dirs = present(spec, "cache_dirs");
        let cache_dirs = names(
            "cache_dirs",
            cache_dirs,
            Charset::Text,
            CACHE_DIR_BYTES_MAX,
            LIST_ITEMS_MAX,
        )?;
        Ok(Self {
            suite: suite(spec)?,
            category: name(spec, "category", Charset::Text)?,
            account: name(spec, "my_account", Charset::Path)?,
            queue: name(spec, "queue", Charset::Path)?,
            priority: priority(spec)?,
            testbox: place.testbox,
            tbox_group: place.tbox_group,
            tbox_type: place.tbox_type,
            arch: place.arch,
            target_machines: place.target_machines,
            host_keys: place.host_keys,
            memory_mb: place.memory_mb,
            tags,
            devices,
            cache_dirs,
            timeout_s: timeout_s(spec, defaults)?,
            stage_limits_s: stage_limits_s(spec, defaults)?,
            queue_timeout_s: limit_s(spec, "queue_timeout")?.unwrap_or(defaults.queue_timeout_s),
            start: when(spec, "start_at")?,
            deadline: when(spec, "deadline")?,
            retry: retry(spec)?,
            stop_when_cut_off: yes(spec, "stop_when_cut_off")?,
            submit_id: name(spec, "submit_id", Charset::Path)?,
            group_id: name(spec, "group_id", Charset::Path)?,
        })
    }
}

/// `suite`, or `script` for a job that has only a script.
fn suite(spec: &Spec) -> Result<String, PlanError> {
    let script = match present(spec, "script") {
        None => false,
        Some(Value::String(text)) if !text.contains('\0') => true,
        Some(Value::String(_)) => {
            return refuse("script", "a NUL character".to_owned(), "remove it");
        }
        Some(other) => {
            return refuse(
                "script",
                format!("{} where text was expected", shown(other)),
                "write 'script: |'",
            );
        }
    };
    let suite = name(spec, "suite", Charset::Path)?;
    if !suite.is_empty() {
        return Ok(suite);
    }
    if script {
        return Ok("script".to_owned());
    }
    refuse(
        "suite",
        "neither suite nor script is there".to_owned(),
        "name a suite, or give the job a script",
    )
}

fn priority(spec: &Spec) -> Result<i16, PlanError> {
    let Some(value) = present(spec, "priority") else {
        return Ok(0);
    };
    let most = i64::from(PRIORITY_MAX);
    let priority = whole("priority", value, -most, most)?;
    Ok(i16::try_from(priority).unwrap_or_default())
}

/// `sched: {devices: [..]}`, or the flat key `sched.devices`.
fn devices(spec: &Spec) -> Result<Option<&Value>, PlanError> {
    if let Some(flat) = present(spec, "sched.devices") {
        return Ok(Some(flat));
    }
    match present(spec, "sched") {
        None => Ok(None),
        Some(Value::Object(sched)) => Ok(present(sched, "devices")),
        Some(other) => refuse(
            "sched",
            format!("{} where a map was expected", shown(other)),
            "write {devices: [..]}",
        ),
    }
}

/// The time limit: as given; else from the runtime with room for set-up; else the site's.
fn timeout_s(spec: &Spec, defaults: &SiteDefaults) -> Result<u64, PlanError> {
    let read = |field: &str| match spec.get(field).map_or(Ok(None), duration_s) {
        Ok(seconds) => Ok(seconds),
        Err(error) => refuse(
            field,
            error.to_string(),
            "leave it empty for the site's default",
        ),
    };
    let runtime = read("runtime")?;
    for field in ["timeout", "timeout_seconds"] {
        match read(field)? {
            None => {}
            Some(0) => {
                return refuse(
                    field,
                    "0 is no time to run in".to_owned(),
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
pub fn limit_s(spec: &Spec, field: &str) -> Result<Option<u64>, PlanError> {
    spec.get(field)
        .map_or(Ok(None), |value| read_limit_s(field, value))
}

fn read_limit_s(field: &str, value: &Value) -> Result<Option<u64>, PlanError> {
    match duration_s(value) {
        Ok(Some(0)) => refuse(
            field,
            "0 is no time at all".to_owned(),
            "at least 1 second; leave it out for the usual limit",
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
fn stage_limits_s(spec: &Spec, defaults: &SiteDefaults) -> Result<BTreeMap<Stage, u64>, PlanError> {
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
