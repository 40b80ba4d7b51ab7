//! Webhooks on the wire.

use serde::{Deserialize, Serialize};

/// A message to a receiver that a job names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WebhookView {
    /// What the receiver knows it by, the same for each try.
    pub webhook_id: String,
    /// The job that it tells of.
    pub job_id: String,
    /// Whose job that is.
    pub my_account: String,
    /// The field that asks for it: `callback` or `notify`, which the account may say for its jobs.
    #[serde(default)]
    pub field: String,
    /// Which events were asked for: `ended`, `failed`, `passed_again`, `failing`.
    #[serde(default)]
    pub on: Vec<String>,
    /// What it tells: one of those. Until the job has ended: `ended`, or `failing` of the first failure of a shard.
    pub event: String,
    /// `waiting` for the event, `trying`, `sent`, `dead`: given up, or `skipped`: no event came that was asked for.
    pub standing: String,
    /// How often it was tried.
    pub tries: u32,
    /// When it was made, or became `sent`, `dead` or `skipped`, UTC epoch ms.
    pub since_ms: u64,
    /// When it is tried again, UTC epoch ms; absent: it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_ms: Option<u64>,
    /// Why the receiver did not take it, or why it was skipped; empty: it was taken, or not tried yet.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub problem: String,
}

/// A receiver to be tried.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WebhookTest {
    /// Its address.
    pub url: String,
    /// The key of signatures. `text` needs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// `fairlead` or `text`. Default `fairlead`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// What came of that.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WebhookTested {
    /// Whether it took the message.
    pub taken: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub problem: String,
}
