//! The last sign of life of each host, from all replicas together.

use dashmap::DashMap;
use fairlead_job::JobId;
use fairlead_store::DocKind;
use serde::{Deserialize, Serialize};

use fairlead_base::storage::small_doc::{SmallDoc, Stored};

/// Most lost leases that a document names.
pub const LOST_MAX: usize = 256;

/// The document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseDoc {
    /// Jobs that the host said it has.
    #[serde(default)]
    pub jobs: Vec<JobId>,
    /// Claim tokens of leases that were lost.
    #[serde(default)]
    pub lost: Vec<String>,
    /// Who wrote it and when, for people.
    #[serde(default)]
    pub replica: String,
    #[serde(default)]
    pub beat_ms: u64,
}

impl SmallDoc for LeaseDoc {
    const KIND: DocKind = DocKind::Lease;
}

/// The documents as this replica knows them, by host.
#[derive(Debug, Default)]
pub struct Renewals(pub DashMap<String, Stored<LeaseDoc>>);

impl Renewals {
    pub fn known(&self, host: &str) -> Option<Stored<LeaseDoc>> {
        self.0.get(host).map(|known| known.clone())
    }

    /// A document was read: is it newer than what was known?
    pub fn is_news(&self, host: &str, read: &Stored<LeaseDoc>) -> bool {
        let known = self.0.get(host).map(|known| known.version);
        let is_news = known < Some(read.version);
        if is_news {
            self.0.insert(host.to_owned(), read.clone());
        }
        is_news
    }
}

/// A job that a host has, as it says: the job and its claim's token.
pub type Held = (JobId, String);
