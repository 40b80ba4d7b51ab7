//! Accounts, as they are stored.

use fairlead_api::Limits;
use fairlead_store::DocKind;
use serde::{Deserialize, Serialize};

use crate::{
    account_notify::AccountNotify,
    tokens::{TokenDoc, Tokens},
};
use fairlead_base::{
    roles::DEFAULT_ROLE,
    storage::{doc_fields::no_null, small_doc::SmallDoc},
};

/// Stored document of an account. The token of an unreadable document is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AccountDoc {
    /// Name of the role. Newer versions may write roles that [`Role`] lacks.
    pub role: String,
    pub vip: bool,
    /// Hash of the newest token, hexadecimal digits. Versions with one token per account read only this field.
    pub token_hash: Option<String>,
    /// All tokens, the newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tokens: Vec<TokenDoc>,
    pub limits: Limits,
    /// Patterns of the hosts of a testbox account. `None`: not specified.
    #[serde(deserialize_with = "no_null", skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Vec<String>>,
    /// Patterns of the groups of its hosts. `None`: not specified.
    #[serde(deserialize_with = "no_null", skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<String>>,
    /// True if jobs of all accounts may reuse results of its jobs.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub share_results: bool,
    /// Receiver of messages about its jobs, unless a job names its own. `None`: none.
    #[serde(deserialize_with = "no_null", skip_serializing_if = "Option::is_none")]
    pub notify: Option<AccountNotify>,
    /// Logins of browsers before this time have ended, UTC epoch ms.
    #[serde(deserialize_with = "no_null", skip_serializing_if = "Option::is_none")]
    pub logins_since_ms: Option<u64>,
}

impl Default for AccountDoc {
    fn default() -> Self {
        Self {
            role: DEFAULT_ROLE.to_owned(),
            vip: false,
            token_hash: None,
            tokens: Vec::new(),
            limits: Limits::default(),
            hosts: None,
            groups: None,
            share_results: false,
            notify: None,
            logins_since_ms: None,
        }
    }
}

impl SmallDoc for AccountDoc {
    const KIND: DocKind = DocKind::Account;
}

impl AccountDoc {
    /// Returns its tokens.
    pub fn tokens(&self) -> Tokens {
        Tokens::of(self.token_hash.as_ref(), &self.tokens)
    }

    /// Replaces its tokens.
    pub fn set_tokens(&mut self, tokens: Tokens) {
        self.token_hash = tokens.newest().cloned();
        self.tokens = tokens.0;
    }
}
