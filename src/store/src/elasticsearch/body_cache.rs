//! Bodies of new jobs, bounded by number: whoever waits for a job gets its body without another look at the store. A body
//! never changes.

use fairlead_job::{JobId, Spec};
use serde::Deserialize;

use super::document_cache::RecentCache;

/// Bodies that are kept, at least; twice as many at the most, some MB. They are for jobs that are handed out soon: of a
/// long queue the oldest go first.
const KEPT: usize = 1_000;
/// Longest document of a body that is kept, bytes: an ordinary one has 1,000 to 4,000.
const LENGTH_MAX: usize = 16_384;

/// What a document of a body holds.
#[derive(Debug, Deserialize)]
pub(super) struct StoredBody {
    pub(super) body: Spec,
}

/// Documents of bodies of the newest jobs that were submitted here, or told by another replica, and may run.
#[derive(Debug)]
pub(super) struct BodyCache(RecentCache<Box<str>>);

impl Default for BodyCache {
    fn default() -> Self {
        Self(RecentCache::new(KEPT))
    }
}

impl BodyCache {
    /// Keeps the document of a body that is in the store.
    pub(super) fn keep(&self, id: JobId, document: &str) {
        if document.len() <= LENGTH_MAX {
            self.0.keep(id, document.into());
        }
    }

    /// The document of a body, if it was kept. It is kept still.
    pub(super) fn document(&self, id: JobId) -> Option<String> {
        self.0.look(id, ToString::to_string)
    }

    /// The body of a job, if it was kept. It is kept no longer.
    pub(super) fn take(&self, id: JobId) -> Option<Spec> {
        let document = self.0.take(id)?;
        let stored: StoredBody = serde_json::from_str(&document).ok()?;
        Some(stored.body)
    }

    /// Forgets all.
    pub(super) fn clear(&self) {
        self.0.clear();
    }
}
