//! The shards of all job indices, as this replica last read them.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::clock;

/// Time for which the list of shards is cached. A new index is noticed at once, a replaced one (from a backup) after
/// this time.
const PLACES_KEPT: Duration = Duration::from_mins(1);

/// One shard of one index of jobs.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) index: String,
    pub(super) shard: u32,
    /// Name of the place. A recreated index counts its changes anew, so its places have other names.
    pub(super) name: Arc<str>,
    /// True if the index has one shard: then each version of a document there belongs to this place.
    pub(super) is_only: bool,
}

impl Place {
    /// Returns the head of a search in this place.
    pub(super) fn header(&self) -> Value {
        json!({"index": self.index, "preference": format!("_shards:{}", self.shard)})
    }
}

/// Shards of all indices of jobs, as last read.
#[derive(Debug, Default)]
pub(super) struct Places(Mutex<Option<(Instant, Arc<[Place]>)>>);

impl Places {
    /// Returns the list while it is fresh.
    pub(super) fn known(&self) -> Option<Arc<[Place]>> {
        let kept = self.0.lock();
        let (at, places) = kept.as_ref()?;
        let age = clock::now().saturating_duration_since(*at);
        (age < PLACES_KEPT).then(|| Arc::clone(places))
    }

    /// Returns the only place of an index in the last list.
    pub(super) fn only_of(&self, index: &str) -> Option<Arc<str>> {
        let kept = self.0.lock();
        let (_, places) = kept.as_ref()?;
        let place = places.iter().find(|place| place.index == index)?;
        place.is_only.then(|| Arc::clone(&place.name))
    }

    /// Caches a list that was just read.
    pub(super) fn learn(&self, places: &Arc<[Place]>) {
        let mut kept = self.0.lock();
        *kept = Some((clock::now(), Arc::clone(places)));
    }
}
