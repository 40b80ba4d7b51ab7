//! Hosts that are reserved for some accounts, as last read or written.

use fairlead_api::ReservedView;
use fairlead_store::DocKind;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::{
    base::clock::utc_text,
    storage::{doc_cache::DocCache, small_doc::SmallDoc},
};

/// A host that is kept for some accounts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reservation {
    /// Sorted, never empty.
    pub(crate) accounts: Vec<String>,
    pub(crate) until_ms: u64,
    #[serde(default)]
    pub(crate) reason: String,
    pub(crate) by: String,
    pub(crate) at_ms: u64,
}

impl SmallDoc for Reservation {
    const KIND: DocKind = DocKind::Reservation;
}

impl Reservation {
    /// Whether the host gets jobs of this account.
    pub(crate) fn serves(&self, account: &str) -> bool {
        self.accounts.iter().any(|one| one == account)
    }

    /// For whom the host is kept, and until when, in one sentence.
    pub(crate) fn words(&self) -> String {
        let why = if self.reason.is_empty() {
            String::new()
        } else {
            format!(": {}", self.reason)
        };
        format!(
            "it is reserved for jobs of {} until {} by {}{why}",
            self.accounts.join(", "),
            utc_text(self.until_ms),
            self.by
        )
    }

    pub(crate) fn view(self) -> ReservedView {
        ReservedView {
            accounts: self.accounts,
            until_ms: self.until_ms,
            reason: self.reason,
            by: self.by,
            at_ms: self.at_ms,
        }
    }
}

/// Reservations as last read or written.
#[derive(Debug, Default)]
pub(crate) struct Reservations(Mutex<DocCache<Reservation>>);

impl Reservations {
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut DocCache<Reservation>) -> R) -> R {
        work(&mut self.0.lock())
    }
}
