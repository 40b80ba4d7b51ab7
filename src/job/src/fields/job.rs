//! What the dispatcher needs to know of a spec: typed, validated, with the site's defaults filled in.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    FieldError, OnShutdown, Retry, SiteDefaults, Spec, Stage, TboxType, When,
    fields::{
        limits::{SILENCE_TIMEOUT, limit_s, stage_limits_s, timeout_s},
        place::Place,
        read::{
            CACHE_DIR_BYTES_MAX, Charset, LIST_ITEMS_MAX, NAME_BYTES_MAX, name, names, present,
            refuse, whole, yes,
        },
        retry::retry,
        when::when,
    },
    units::shown,
};

/// What `max_run` may be at most.
const MAX_RUN_MAX: i64 = 1_000_000;

/// `max_run`: how many jobs that run the same thing there may be; `None`: as many as there are.
///
/// # Errors
/// It is no whole number from 1 on.
pub fn max_run(spec: &Spec) -> Result<Option<u64>, FieldError> {
    let said = present(spec, "max_run");
    let most = said
        .map(|value| whole("max_run", value, 1, MAX_RUN_MAX))
        .transpose()?;
    Ok(most.and_then(|most| u64::try_from(most).ok()))
}

/// The typed view of one spec: all that matching, charging, limits and people's searches use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFields {
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

/// Bounds of `priority`.
const PRIORITY_MAX: i16 = 100;

impl JobFields {
    /// Reads and checks `spec`.
    ///
    /// # Errors
    /// The first field that is wrong: of another type, out of bounds, or against another field.
    pub fn parse(spec: &Spec, defaults: &SiteDefaults) -> Result<Self, FieldError> {
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
fn suite(spec: &Spec) -> Result<String, FieldError> {
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

fn priority(spec: &Spec) -> Result<i16, FieldError> {
    let Some(value) = present(spec, "priority") else {
        return Ok(0);
    };
    let most = i64::from(PRIORITY_MAX);
    let priority = whole("priority", value, -most, most)?;
    Ok(i16::try_from(priority).unwrap_or_default())
}

/// `sched: {devices: [..]}`, or the flat key `sched.devices`.
fn devices(spec: &Spec) -> Result<Option<&Value>, FieldError> {
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
