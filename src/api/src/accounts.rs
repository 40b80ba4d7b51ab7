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
    /// Of one with a limit of results: MB of the result files of its kept jobs, as last summed up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results_used_mb: Option<u64>,
    /// Who is told of its jobs that do not say so themselves; absent: nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<NotifyView>,
    /// Its tokens without themselves, the newest first; at most two are good at a time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tokens: Vec<TokenView>,
    /// A new token, once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub my_token: Option<String>,
}

/// A token of an account, without itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TokenView {
    /// The first digits of its hash, to tell tokens apart.
    pub id: String,
    /// When it was made, UTC epoch ms; 0: before that was noted.
    pub made_ms: u64,
    /// When it was used last, UTC epoch ms, ten minutes late at most; 0: not since that is noted.
    pub last_used_ms: u64,
    /// It is good for nothing from then on, UTC epoch ms; 0: it does not end.
    pub ends_ms: u64,
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
    /// Make a new token even if it has one. The one before it stays good for `overlap_s`; older ones end at once.
    #[serde(default)]
    pub new_token: bool,
    /// The token before the newest is good for so long from now on, s, 0 to 2,592,000. Default with `new_token`: 86,400, a
    /// day; else no change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap_s: Option<u64>,
    /// The new token is good for so long, s, 60 to 315,360,000. Default: it does not end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_s: Option<u64>,
}
