//! The shards of all job indices, as this replica last read them.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::clock;

/// How long the list of shards is kept. An index that is new is noticed at once; one that was put in the
/// place of another (from a backup) after this time.
const PLACES_KEPT: Duration = Duration::from_mins(1);

/// One shard of one index of jobs.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) index: String,
    pub(super) shard: u32,
    /// An index that was made anew counts its changes anew, so its places have other names.
    pub(super) name: Arc<str>,
    /// The index has no other shard: each version of a document there is of this place.
    pub(super) is_only: bool,
}

impl Place {
    /// The head of a search in this place.
    pub(super) fn header(&self) -> Value {
        json!({"index": self.index, "preference": format!("_shards:{}", self.shard)})
    }
}

/// The shards of all indices of jobs, as they were asked for last.
#[derive(Debug, Default)]
pub(super) struct Places(Mutex<Option<(Instant, Arc<[Place]>)>>);

impl Places {
    /// The list, while it is young.
    pub(super) fn known(&self) -> Option<Arc<[Place]>> {
        let kept = self.0.lock();
        let (at, places) = kept.as_ref()?;
        let age = clock::now().saturating_duration_since(*at);
        (age < PLACES_KEPT).then(|| Arc::clone(places))
    }

    /// The only place of an index, as the last list has it.
    pub(super) fn only_of(&self, index: &str) -> Option<Arc<str>> {
        let kept = self.0.lock();
        let (_, places) = kept.as_ref()?;
        let place = places.iter().find(|place| place.index == index)?;
        place.is_only.then(|| Arc::clone(&place.name))
    }

    /// Keeps a list that was read just now.
    pub(super) fn learn(&self, places: &Arc<[Place]>) {
        let mut kept = self.0.lock();
        *kept = Some((clock::now(), Arc::clone(places)));
    }
}
