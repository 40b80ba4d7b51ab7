//! Webhooks on the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A message to a receiver that a job names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WebhookView {
    /// What the receiver knows it by, the same for each try.
    pub webhook_id: String,
    /// The job that it tells of.
    pub job_id: String,
    /// Whose job that is.
    pub my_account: String,
    /// `ended` or `failing`.
    pub event: String,
    /// `waiting` for the event, `trying`, `sent`, or `dead`: given up.
    pub standing: String,
    /// How often it was tried.
    pub tries: u32,
    /// When it was made, or became `sent` or `dead`, UTC epoch ms.
    pub since_ms: u64,
    /// When it is tried again, UTC epoch ms; absent: it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_ms: Option<u64>,
    /// Why the receiver did not take it; empty: it did, or was not asked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub problem: String,
}

/// A receiver to be tried.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WebhookTest {
    /// Its address.
    pub url: String,
    /// The key of signatures.
    pub secret: String,
}

/// What came of that.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WebhookTested {
    /// Whether it took the message.
    pub taken: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub problem: String,
}
