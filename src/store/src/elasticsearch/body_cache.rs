//! Bodies of new jobs, bounded by number: whoever waits for a job gets its body without another look at the store. A body
//! never changes.

use fairlead_job::{JobId, Spec};
use serde::Deserialize;

use super::document_cache::RecentCache;

/// Minimum number of cached bodies; the maximum is twice as many, some MB. They are for jobs that are dispatched
/// soon: of a long queue the oldest go first.
const KEPT: usize = 1_000;
/// Longest cached document of a body, bytes. An ordinary one has 1,000 to 4,000.
const LENGTH_MAX: usize = 16_384;

/// Document of a body.
#[derive(Debug, Deserialize)]
pub(super) struct StoredBody {
    pub(super) body: Spec,
}

/// Documents of bodies of the newest jobs that may run. They were submitted here or reported by another replica.
#[derive(Debug)]
pub(super) struct BodyCache(RecentCache<Box<str>>);

impl Default for BodyCache {
    fn default() -> Self {
        Self(RecentCache::new(KEPT))
    }
}

impl BodyCache {
    /// Caches the stored document of a body.
    pub(super) fn keep(&self, id: JobId, document: &str) {
        if document.len() <= LENGTH_MAX {
            self.0.keep(id, document.into());
        }
    }

    /// Returns the cached document of a body, without removing it.
    pub(super) fn document(&self, id: JobId) -> Option<String> {
        self.0.look(id, ToString::to_string)
    }

    /// Removes and returns the cached body of a job.
    pub(super) fn take(&self, id: JobId) -> Option<Spec> {
        let document = self.0.take(id)?;
        let stored: StoredBody = serde_json::from_str(&document).ok()?;
        Some(stored.body)
    }

    /// Forgets all bodies.
    pub(super) fn clear(&self) {
        self.0.clear();
    }
}
