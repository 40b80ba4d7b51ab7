//! The plan of a job whose tests were listed: which of them each shard runs. It never changes, so that a retry keeps its
//! part.

use fairlead_job::JobId;
use fairlead_store::DocKind;
use serde::{Deserialize, Serialize};

use fairlead_base::storage::small_doc::SmallDoc;

/// Tests of each shard, in order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub tests: Vec<Vec<String>>,
}

impl SmallDoc for Plan {
    const KIND: DocKind = DocKind::Plan;
}

impl Plan {
    /// Returns the digest of its contents, which is its name.
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for tests in &self.tests {
            for test in tests {
                hasher.update(test.as_bytes());
                hasher.update(b"\n");
            }
            hasher.update(b"\0");
        }
        let digest = hasher.finalize().to_hex();
        digest.get(..32).unwrap_or_default().to_owned()
    }
}

/// Returns the id of the document.
pub fn id_of(parent: JobId, digest: &str) -> String {
    format!("{parent}.{digest}")
}

/// Returns the parent job of a plan. `None`: the id is not that of a plan.
pub fn parent_of(id: &str) -> Option<JobId> {
    id.split_once('.')?.0.parse().ok()
}
