//! The last sign of life of each host, from all replicas together.

use dashmap::DashMap;
use fairlead_job::JobId;
use fairlead_store::{Doc, Version};
use serde::{Deserialize, Serialize};

/// Most lost leases that a document names.
pub(crate) const LOST_MAX: usize = 256;

/// The document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LeaseDoc {
    /// Jobs that the host said it has.
    #[serde(default)]
    pub(crate) jobs: Vec<JobId>,
    /// Claim tokens of leases that were lost.
    #[serde(default)]
    pub(crate) lost: Vec<String>,
    /// Who wrote it and when, for people.
    #[serde(default)]
    pub(crate) replica: String,
    #[serde(default)]
    pub(crate) beat_ms: u64,
}

/// A document as it was read or written.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) version: Version,
    pub(crate) doc: LeaseDoc,
}

impl Known {
    pub(crate) fn of(doc: &Doc) -> Self {
        Self {
            version: doc.version,
            // One that cannot be read names nothing.
            doc: serde_json::from_value(doc.body.clone()).unwrap_or_default(),
        }
    }
}

/// The documents as this replica knows them, by host.
#[derive(Debug, Default)]
pub(crate) struct Renewals(pub(crate) DashMap<String, Known>);

impl Renewals {
    pub(crate) fn known(&self, host: &str) -> Option<Known> {
        self.0.get(host).map(|known| known.clone())
    }

    /// A document was read: is it newer than what was known?
    pub(crate) fn read(&self, doc: &Doc) -> Option<Known> {
        let read = Known::of(doc);
        let known = self.known(&doc.id).map(|known| known.version);
        if known >= Some(read.version) {
            return None;
        }
        self.0.insert(doc.id.clone(), read.clone());
        Some(read)
    }
}

/// A job that a host has, as it says: the job and its claim's token.
pub(crate) type Held = (JobId, String);
