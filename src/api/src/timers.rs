//! Timers on the wire.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A run of a timer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TimerRun {
    /// When it was due, UTC.
    pub due_time: String,
    /// The same, UTC epoch ms.
    pub due_ms: u64,
    /// Its job.
    pub job_id: String,
}

/// A job that is run again and again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TimerView {
    /// Its name, one for an account.
    pub timer: String,
    /// Whose it is.
    pub my_account: String,
    /// The suite of its job.
    pub suite: String,
    /// Its period, as it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<String>,
    /// Its cron line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// The zone whose clocks the line means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// What happens while an earlier run has not ended: `skip`, `queue` or `replace`.
    pub overlap: String,
    /// What becomes of runs that nobody could start in time: `once` or `skip`.
    pub missed: String,
    /// Whether it is paused.
    pub paused: bool,
    /// When its next run is due, UTC; none while it is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_run: Option<String>,
    /// Its last run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_run: Option<TimerRun>,
    /// How many runs there were.
    pub runs: u64,
    /// How many times were left out because an earlier run had not ended.
    pub skipped_runs: u64,
    /// How many times passed while nobody could start a run.
    pub missed_runs: u64,
    /// How many runs were refused, as a submit would have been.
    pub refused_runs: u64,
    /// Why no run came of the latest time; empty: one did.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// What is to be said of a new or changed timer: that no known host could ever run its job.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub warning: String,
    /// Its job, without secrets; of one timer only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<serde_json::Map<String, Value>>"))]
    pub job: Option<Value>,
}

/// A page of timers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TimerList {
    /// By account and name.
    pub timers: Vec<TimerView>,
    /// How many there are.
    pub total: u64,
    /// To be sent as `after` for the next page; none: this is the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}
