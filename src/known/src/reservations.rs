//! Hosts that are reserved for some accounts, as last read or written.

use fairlead_api::ReservedView;
use fairlead_store::DocKind;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use fairlead_base::{
    clock::utc_text,
    storage::{doc_cache::DocCache, small_doc::SmallDoc},
};

/// A host that is reserved for some accounts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// Sorted, never empty.
    pub accounts: Vec<String>,
    pub until_ms: u64,
    #[serde(default)]
    pub reason: String,
    pub by: String,
    pub at_ms: u64,
}

impl SmallDoc for Reservation {
    const KIND: DocKind = DocKind::Reservation;
}

impl Reservation {
    /// Returns true if the host gets jobs of this account.
    pub fn serves(&self, account: &str) -> bool {
        self.accounts.iter().any(|one| one == account)
    }

    /// Returns a sentence with the accounts and the end of the reservation.
    pub fn words(&self) -> String {
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

    pub fn view(self) -> ReservedView {
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
pub struct Reservations(Mutex<DocCache<Reservation>>);

impl Reservations {
    pub fn with<R>(&self, work: impl FnOnce(&mut DocCache<Reservation>) -> R) -> R {
        work(&mut self.0.lock())
    }
}
