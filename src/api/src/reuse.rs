//! Results that jobs take from earlier ones, on the wire.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::HealthWord;

/// How the lab reuses results.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReuseSettings {
    /// Any text that is part of all keys, at most 256 bytes: with another one, nothing that ran before is reused.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub salt: String,
    /// Of a hundred jobs that could take a result, how many run all the same, so that results are compared: 0 to 100.
    /// Absent: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit_percent: Option<u8>,
    /// Suites that measure: their jobs always run. Names, with `*` and `?`, at most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub performance: Vec<String>,
    /// What holds for jobs that say nothing of `reuse`: the first one whose suite fits. At most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suites: Vec<SuiteReuse>,
}

/// What holds for the jobs of a suite.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SuiteReuse {
    /// The suite: a name, with `*` and `?`.
    pub suite: String,
    /// How old a result may be, such as `14d`, at most `366d`.
    pub within: String,
}

/// Whether a job has the result of another one, and why or why not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ReuseExplanation {
    /// The job.
    pub job_id: String,
    /// `reused`, `joined` (it waited for the result), `audit` (it checks one), `runs` or `ran` (itself), `waits` (for other
    /// jobs), `ended` (before it ran), `shards` (each has an answer of its own), or `never` (it does not reuse).
    pub verdict: String,
    /// The answer in one sentence.
    pub summary: String,
    /// The job whose result it has.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reused_from: String,
    /// The job that ran the same thing when it was submitted.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub joined: String,
    /// The job whose result it checks.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub audit_of: String,
    /// How old a result may be, seconds; 0: no result will do.
    pub within_s: u64,
    /// The key of what it runs; empty: it has none, or not yet.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// The hash of each part of the key: `inputs`, `script`, `parameters`, `image`, `shards`, `requirements`, `salt`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub parts: BTreeMap<String, String>,
    /// The earlier job of the same account and suite that ran the most similar thing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest: Option<NearestRun>,
}

/// What was forgotten of the key of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ReuseForgotten {
    /// The job.
    pub job_id: String,
    /// The key of what it runs.
    pub key: String,
    /// Whose results of this key were forgotten: `account` (of the account of the job), `lab` (of all accounts that share
    /// theirs). Empty: there were none.
    pub forgotten: Vec<String>,
    /// Why results of this key were not taken before, such as that it is flaky. Empty: they were.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub was: String,
    /// Why results of this key are still not taken: only an admin can forget what the lab knows. Empty: they are.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub still: String,
}

/// An earlier job, and how it differs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct NearestRun {
    /// The job.
    pub job_id: String,
    /// How it ended.
    pub job_health: HealthWord,
    /// Each part of the key that differs, with the fields that do. Empty: it ran the same thing.
    pub differs: BTreeMap<String, Vec<String>>,
}
