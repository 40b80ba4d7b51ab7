//! Limits of accounts and queues.

use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

/// A limit: past the soft one jobs go behind others, at the hard one they stop. Each 0 to 1,000,000,000; none: no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// The soft one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soft: Option<u64>,
    /// The hard one, not below the soft one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hard: Option<u64>,
}

impl Bounds {
    /// Whether there is no limit.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// The limits of an account or a queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Limits {
    /// Jobs that wait.
    #[serde(default, skip_serializing_if = "Bounds::is_none")]
    pub waiting: Bounds,
    /// Jobs that testboxes have.
    #[serde(default, skip_serializing_if = "Bounds::is_none")]
    pub running: Bounds,
    /// Hours of testboxes within 24 hours.
    #[serde(default, skip_serializing_if = "Bounds::is_none")]
    pub hours: Bounds,
    /// Shards that have not ended. They have no soft limit.
    #[serde(default, skip_serializing_if = "Bounds::is_none")]
    pub shards: Bounds,
    /// Of an account: MB (2^20 bytes) of its inputs and outputs together. No soft limit. Puts of the last minute at other
    /// schedulers may not count yet, so that it can be exceeded by them.
    #[serde(default, skip_serializing_if = "Bounds::is_none")]
    pub content_mb: Bounds,
    /// Of an account: MB of inputs and outputs put within 24 hours that it still has. No soft limit. It can be exceeded as
    /// `content_mb` can.
    #[serde(default, skip_serializing_if = "Bounds::is_none")]
    pub content_day_mb: Bounds,
    /// Of an account: MB of the result files of its kept jobs. No soft limit. Jobs over it end without their files. Uploads of
    /// the last half minute at other schedulers may not count yet.
    #[serde(default, skip_serializing_if = "Bounds::is_none")]
    pub results_mb: Bounds,
}

impl Limits {
    /// Whether there are none.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// A change of limits: each that is given is replaced whole, so `{}` takes it away.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LimitsChange {
    /// Jobs that wait.
    #[serde(
        default,
        deserialize_with = "object",
        skip_serializing_if = "Option::is_none"
    )]
    pub waiting: Option<Bounds>,
    /// Jobs that testboxes have.
    #[serde(
        default,
        deserialize_with = "object",
        skip_serializing_if = "Option::is_none"
    )]
    pub running: Option<Bounds>,
    /// Hours of testboxes within 24 hours.
    #[serde(
        default,
        deserialize_with = "object",
        skip_serializing_if = "Option::is_none"
    )]
    pub hours: Option<Bounds>,
    /// Shards that have not ended.
    #[serde(
        default,
        deserialize_with = "object",
        skip_serializing_if = "Option::is_none"
    )]
    pub shards: Option<Bounds>,
    /// Of an account: MB of its inputs and outputs together.
    #[serde(
        default,
        deserialize_with = "object",
        skip_serializing_if = "Option::is_none"
    )]
    pub content_mb: Option<Bounds>,
    /// Of an account: MB of inputs and outputs put within 24 hours that it still has.
    #[serde(
        default,
        deserialize_with = "object",
        skip_serializing_if = "Option::is_none"
    )]
    pub content_day_mb: Option<Bounds>,
    /// Of an account: MB of the result files of its kept jobs.
    #[serde(
        default,
        deserialize_with = "object",
        skip_serializing_if = "Option::is_none"
    )]
    pub results_mb: Option<Bounds>,
}

impl LimitsChange {
    /// Whether nothing changes.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Reads an object, where a derived reader also takes a list of values in the order of the fields.
pub(crate) fn object<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let map = Option::<Map<String, Value>>::deserialize(deserializer)?;
    let value = map.map_or(Value::Null, Value::Object);
    serde_json::from_value(value).map_err(serde::de::Error::custom)
}
