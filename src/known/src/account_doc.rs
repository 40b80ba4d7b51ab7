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

/// An account's document. One that cannot be read is nobody's: its token is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AccountDoc {
    /// A newer version may have others than [`Role`] has.
    pub role: String,
    pub vip: bool,
    /// Of its newest token, as hexadecimal digits: all that a version before two tokens reads.
    pub token_hash: Option<String>,
    /// All tokens, the newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tokens: Vec<TokenDoc>,
    pub limits: Limits,
    /// Patterns of the hosts of a testbox account; `None`: nobody said so.
    #[serde(deserialize_with = "no_null", skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Vec<String>>,
    /// The same of the groups that they may be in.
    #[serde(deserialize_with = "no_null", skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<String>>,
    /// Whether jobs of all accounts may take results of its jobs.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub share_results: bool,
    /// Who is told of its jobs that do not say so themselves; `None`: nobody.
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
    /// Its tokens.
    pub fn tokens(&self) -> Tokens {
        Tokens::of(self.token_hash.as_ref(), &self.tokens)
    }

    /// Gives it these.
    pub fn set_tokens(&mut self, tokens: Tokens) {
        self.token_hash = tokens.newest().cloned();
        self.tokens = tokens.0;
    }
}
