//! Actions on many jobs, hosts or queues: shown before they are done.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What is to be done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BulkAction {
    /// Cancels waiting jobs.
    #[default]
    Cancel,
    /// Stops running jobs.
    Terminate,
    /// Submits jobs that have ended again.
    Rerun,
    /// Changes fields of waiting jobs, as `set` says.
    Change,
    /// Holds waiting jobs back.
    Hold,
    /// Releases jobs that are held back.
    Release,
    /// Gives hosts no new job.
    Cordon,
    /// The same, until they are empty.
    Drain,
    /// Gives closed hosts jobs again.
    Uncordon,
    /// Keeps hosts for the jobs of `accounts`, for so many `hours`.
    Reserve,
    /// Gives reserved hosts back to everybody.
    Unreserve,
    /// Dispatches nothing of a queue.
    PauseQueue,
    /// Dispatches jobs of a queue again.
    ResumeQueue,
    /// Sets weights of queues.
    Weights,
    /// Dispatches nothing in the whole lab.
    PauseLab,
    /// Dispatches jobs of the lab again.
    ResumeLab,
}

/// An action, and on what.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct PreviewRequest {
    /// What is to be done.
    pub action: BulkAction,
    /// On these jobs, at most 10,000.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<String>,
    /// Or on all jobs that this filter finds, at most 10,000: names and values as in the query of a list of jobs.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub filter: Map<String, Value>,
    /// On these hosts, at most 10,000.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// On this queue.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub queue: String,
    /// New values of fields of jobs: `queue`, `priority` and others that a waiting job may change.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub set: Map<String, Value>,
    /// New weights of queues, 1 to 10,000.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub weights: BTreeMap<String, u32>,
    /// For whom hosts are kept.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub accounts: Vec<String>,
    /// For how long hosts are kept, hours, at least 1.
    #[serde(skip_serializing_if = "is_zero")]
    pub hours: u32,
    /// Why, in the words of who asks.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// How far a preview is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PreviewState {
    /// Nothing was done.
    #[default]
    Previewed,
    /// It is being done, by some replica.
    Running,
    /// Everything was tried.
    Done,
    /// Nothing was done, and nothing will be: it is older than 10 minutes.
    Expired,
}

/// What an action will touch, or has touched.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Preview {
    /// Its id.
    pub preview_id: String,
    /// What is to be done.
    pub action: BulkAction,
    /// Who asked.
    pub by: String,
    /// When it was made, UTC epoch ms.
    pub made_ms: u64,
    /// Until when it can be run, UTC epoch ms.
    pub expires_ms: u64,
    /// What it does, in one sentence.
    pub sentence: String,
    /// How many jobs, hosts or queues it touches.
    pub total: u64,
    /// The first 200 of them.
    pub items: Vec<PreviewItem>,
    /// How many more there are.
    pub items_more: u64,
    /// The first 200 that were asked for and cannot be touched.
    pub left_out: Vec<PreviewFailure>,
    /// How many more there are.
    pub left_out_more: u64,
    /// The shares of queues that follow, for weights.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<PreviewShare>,
    /// How far it is.
    pub state: PreviewState,
    /// How many were tried, those of `failed` among them.
    pub done: u64,
    /// Those that were not changed, and why.
    pub failed: Vec<PreviewFailure>,
}

/// One that an action touches.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PreviewItem {
    /// A job, host or queue.
    pub id: String,
    /// What it is now.
    pub what: String,
}

/// One that an action does not touch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PreviewFailure {
    /// A job, host or queue.
    pub id: String,
    /// Why.
    pub why: String,
}

/// How the share of a queue changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PreviewShare {
    /// The queue.
    pub queue: String,
    /// Its share of its class now, among queues with work, thousandths.
    pub now_permille: u32,
    /// Its share afterwards.
    pub then_permille: u32,
}
