//! The last sign of life of each host, from all replicas together.

use dashmap::DashMap;
use fairlead_job::JobId;
use fairlead_store::DocKind;
use serde::{Deserialize, Serialize};

use fairlead_base::storage::small_doc::{SmallDoc, Stored};

/// Maximum number of lost leases in a document.
pub const LOST_MAX: usize = 256;

/// Stored document of a host's lease renewals.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseDoc {
    /// Jobs that the host reported as its own.
    #[serde(default)]
    pub jobs: Vec<JobId>,
    /// Claim tokens of lost leases.
    #[serde(default)]
    pub lost: Vec<String>,
    /// Replica that wrote it, for people.
    #[serde(default)]
    pub replica: String,
    #[serde(default)]
    pub beat_ms: u64,
}

impl SmallDoc for LeaseDoc {
    const KIND: DocKind = DocKind::Lease;
}

/// Documents as this replica knows them, by host.
#[derive(Debug, Default)]
pub struct Renewals(pub DashMap<String, Stored<LeaseDoc>>);

impl Renewals {
    pub fn known(&self, host: &str) -> Option<Stored<LeaseDoc>> {
        self.0.get(host).map(|known| known.clone())
    }

    /// Returns true if a document that was read is newer than the known one.
    pub fn is_news(&self, host: &str, read: &Stored<LeaseDoc>) -> bool {
        let known = self.0.get(host).map(|known| known.version);
        let is_news = known < Some(read.version);
        if is_news {
            self.0.insert(host.to_owned(), read.clone());
        }
        is_news
    }
}

/// A job that a host reports as its own: the id and its claim token.
pub type Held = (JobId, String);
