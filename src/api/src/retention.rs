//! How long jobs are kept, on the wire.

use serde::{Deserialize, Serialize};

/// How long jobs are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RetentionView {
    /// Whole months, as an admin set it for all replicas; 0: for ever. Null: nobody did.
    pub keep_months: Option<u32>,
    /// The months that this replica keeps: `keep_months`, else its `--keep-months`.
    pub in_force: u32,
}

/// Sets how long jobs are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RetentionChange {
    /// Whole months, 0 to 1,000; 0: for ever. Null: each replica has its own `--keep-months`.
    pub keep_months: Option<u32>,
}
