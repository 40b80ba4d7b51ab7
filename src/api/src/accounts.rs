//! Accounts on the wire.

use serde::{Deserialize, Serialize};

use crate::{Limits, LimitsChange, limits::object};

/// One account. The token is shown only in the answer that made it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AccountView {
    /// Its name.
    pub my_account: String,
    /// `admin`, `user` or `testbox`; a role of a newer version may do nothing.
    pub role: String,
    /// Of a testbox: the hosts that it acts for, names and patterns (`rack1-*`, `a6?`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Of a testbox: the groups that its hosts may be in, names and patterns; empty: it does not say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// What an admin should do about it; empty: nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hint: String,
    /// Whether it may use queue `vip`.
    #[serde(default)]
    pub vip: bool,
    /// Whether jobs of all accounts may take results of its jobs, see `reuse` of a job.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub share_results: bool,
    /// Its limits, over all queues.
    #[serde(default, skip_serializing_if = "Limits::is_none")]
    pub limits: Limits,
    /// Who is told of its jobs that do not say so themselves; absent: nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<NotifyView>,
    /// A new token, once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub my_token: Option<String>,
}

/// Who is told of the jobs of an account.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NotifyView {
    /// The address without its path and query, which may let in whoever knows them.
    pub url: String,
    /// Of what: `ended`, `failed`, `passed_again`, `failing`.
    pub on: Vec<String>,
    /// In which words: `text` or `fairlead`.
    pub kind: String,
}

/// Who is to be told of the jobs of an account that do not say so themselves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NotifyChange {
    /// The address, `http` or `https`, at most 2,048 bytes. It is stored sealed.
    pub url: String,
    /// Of what: `ended`, `failed`, `passed_again`, `failing`. Default `ended`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on: Vec<String>,
    /// `text`, a sentence for a chat, or `fairlead`, which needs a secret. Default `text`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The key of signatures. It is stored sealed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// What to do with an account.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AccountChange {
    /// `admin`, `user` or `testbox`. Default `user`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Of a testbox: the hosts that it acts for, 1 to 64 names and patterns (`rack1-*`, `a6?`); replaced whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Vec<String>>,
    /// Of a testbox: the groups that its hosts may be in, 1 to 64 names and patterns; replaced whole. Default: every group
    /// that is not the name of a host which it may not be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<String>>,
    /// Whether it may use queue `vip`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vip: Option<bool>,
    /// Whether jobs of all accounts may take results of its jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_results: Option<bool>,
    /// Its limits, over all queues.
    #[serde(
        default,
        deserialize_with = "object",
        skip_serializing_if = "LimitsChange::is_none"
    )]
    pub limits: LimitsChange,
    /// Make a new token even if it has one.
    #[serde(default)]
    pub new_token: bool,
}
