//! A pin, and the lists of what is condemned that this process has seen.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use object_store::path::Path;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::{Digest, condemned::LEASE};

/// Most chunks of a pin.
pub const PIN_CHUNKS_MAX: usize = 10_000;
/// Maximum time for which a pin counts after it was written.
pub const PIN_LASTS_MAX: Duration = Duration::from_hours(7 * 24);

/// Digests that a collection must leave until a time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// Word for the pinning put: the same for all its pins.
    pub put: String,
    /// End of the pin, UTC epoch ms; [`PIN_LASTS_MAX`] from now at most.
    pub until_ms: u64,
    /// Chunks and manifests, at most [`PIN_CHUNKS_MAX`].
    pub digests: BTreeSet<Digest>,
}

/// Times since which this process has seen each list of condemned digests.
#[derive(Debug, Clone, Default)]
pub(crate) struct Watched {
    since: Arc<Mutex<BTreeMap<Path, Duration>>>,
}

impl Watched {
    /// Notes the existing lists. Returns the abandoned ones.
    pub(crate) fn dead(&self, there: &[Path], now: Duration) -> Vec<Path> {
        let mut since = self.since.lock();
        since.retain(|name, _| there.contains(name));
        let mut dead = Vec::new();
        for name in there {
            let first = *since.entry(name.clone()).or_insert(now);
            if now.saturating_sub(first) > LEASE {
                dead.push(name.clone());
            }
        }
        dead
    }
}
