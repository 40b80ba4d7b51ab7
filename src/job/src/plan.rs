//! What the dispatcher needs to know of a spec: typed, validated, with the site's defaults filled in.

use serde_json::Value;

use crate::{
    Spec,
    fields::{
        CACHE_DIR_BYTES_MAX, Charset, LIST_ITEMS_MAX, NAME_BYTES_MAX, name, names, present, refuse,
        whole, yes,
    },
    place::Place,
    units::{duration_s, shown},
};

/// What kind of testbox runs a job.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum TboxType {
    /// The host itself, one job at a time.
    Hw,
    /// A virtual machine on a host.
    Vm,
    /// A container on a host.
    Dc,
}

impl TboxType {
    /// The word on the wire and in host keys.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hw => "hw",
            Self::Vm => "vm",
            Self::Dc => "dc",
        }
    }
}

/// What a site assumes when a job does not say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteDefaults {
    /// `testbox` of jobs that name none. Default `dc`.
    pub testbox: String,
    /// `arch` of jobs for "any" testbox that name none, for example `x86_64`. Default: this build's.
    pub arch: String,
    /// Memory of a vm or dc job that names none, in MB. Default 1024.
    pub memory_mb: u32,
    /// Time limit of a job that names none, in seconds. Default 3600.
    pub timeout_s: u64,
}

impl Default for SiteDefaults {
    fn default() -> Self {
        Self {
            testbox: "dc".to_owned(),
            arch: std::env::consts::ARCH.to_owned(),
            memory_mb: 1024,
            timeout_s: 3600,
        }
    }
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
    /// How often it may be tried again after a lost lease. Default 1.
    pub retry_lost_max: u16,
    /// How often it may be tried again after a failure of its own. Default 0.
    pub retry_fail_max: u16,
    /// Whether the agent must stop it when cut off from every replica.
    pub stop_when_cut_off: bool,
    /// `submit_id`, `group_id`, empty when not said.
    pub submit_id: String,
    /// See `submit_id`.
    pub group_id: String,
}

/// Why a spec cannot become a job. Never retryable: the job itself must change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct PlanError {
    /// The field at fault, as the author wrote it.
    pub field: String,
    /// What is wrong, with the value and what was expected.
    pub problem: String,
    /// What to do about it.
    pub hint: String,
}

/// Bounds of `priority`.
pub const PRIORITY_MAX: i16 = 100;
/// The most tries again that a job may ask for.
pub const RETRY_MAX: u16 = 100;

impl JobPlan {
    /// Reads and checks `spec`.
    ///
    /// # Errors
    /// The first field that is wrong: of another type, out of bounds, or against another field.
    pub fn of(spec: &Spec, defaults: &SiteDefaults) -> Result<Self, PlanError> {
        let place = Place::of(spec, defaults)?;
        let (retry_lost_max, retry_fail_max) = retry(spec)?;
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
            retry_lost_max,
            retry_fail_max,
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

/// How often a job is tried again after a lost lease, and after a failure of its own.
///
/// A number, or `{max, on}`: `on` lists for what (`infra`, `fail`, `timeout`, `oom`), all when it is left
/// out; what it does not list keeps its default.
fn retry(spec: &Spec) -> Result<(u16, u16), PlanError> {
    let (mut lost, mut fail) = (1, 0);
    let Some(value) = present(spec, "retry") else {
        return Ok((lost, fail));
    };
    let count = |field: &str, value: &Value| {
        let count = whole(field, value, 0, i64::from(RETRY_MAX))?;
        Ok::<u16, PlanError>(u16::try_from(count).unwrap_or_default())
    };
    let Value::Object(map) = value else {
        let max = count("retry", value)?;
        return Ok((max, max));
    };
    if let Some(other) = map.keys().find(|key| !matches!(key.as_str(), "max" | "on")) {
        let problem = format!(
            "{} is not a key of retry",
            shown(&Value::from(other.as_str()))
        );
        return refuse("retry", problem, "write {max: 2, on: [infra, fail]}");
    }
    let max = present(map, "max").map_or(Ok(1), |max| count("retry.max", max))?;
    let causes = names(
        "retry.on",
        present(map, "on"),
        Charset::Text,
        NAME_BYTES_MAX,
        LIST_ITEMS_MAX,
    )?;
    if causes.is_empty() {
        return Ok((max, max));
    }
    for cause in &causes {
        match cause.as_str() {
            "infra" => lost = max,
            "fail" | "timeout" | "oom" => fail = max,
            _ => {
                let problem = format!("'{cause}' is not a cause to try again");
                return refuse("retry.on", problem, "one of infra, fail, timeout, oom");
            }
        }
    }
    Ok((lost, fail))
}
