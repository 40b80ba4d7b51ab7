//! Submit rules on the wire.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A rule: a submitted job that meets its condition gets new values of some fields.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SubmitRule {
    /// Its name, different from those of the others.
    pub name: String,
    /// The condition, such as `suite ~ 'lkp.*' and account == 'ci'`, at most 1,000 bytes.
    #[serde(rename = "if")]
    pub condition: String,
    /// New values of `queue`, `priority`, `need_memory`, `need_cpus`, `timeout`, `tags` or `deadline`, as job files have
    /// them.
    pub then: Map<String, Value>,
}

/// All submit rules, in their order: the first one that a job meets changes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SubmitRules {
    /// At most 100.
    pub rules: Vec<SubmitRule>,
}
