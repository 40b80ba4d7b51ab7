//! States that this replica saw and the store does not have.

use std::collections::BTreeMap;

use fairlead_dispatch::Millis;
use fairlead_job::JobId;
use fairlead_store::Version;
use parking_lot::Mutex;

/// Time for which a job must stay older than the seen version, ms. It exceeds the lag of searches.
pub const DOUBT_MS: u64 = 4_000;

/// Maximum number of doubts at one time.
const DOUBTS_MAX: usize = 10_000;

/// Jobs that were read at an older version than the newest seen one, with the time since then.
#[derive(Debug, Default)]
pub struct VanishedWrites(Mutex<BTreeMap<JobId, (Version, Millis)>>);

impl VanishedWrites {
    /// Compares the version `found` by a read of a job with the `newest` one seen.
    pub fn weigh(&self, id: JobId, found: Version, newest: Version, now: Millis) {
        let mut all = self.0.lock();
        if found >= newest {
            all.remove(&id);
        } else if all.len() < DOUBTS_MAX || all.contains_key(&id) {
            let doubt = all.entry(id).or_insert((found, now));
            if doubt.0 != found {
                *doubt = (found, now);
            }
        }
    }

    pub fn due(&self, now: Millis) -> Vec<(JobId, Version)> {
        let mut all = self.0.lock();
        let due = |since: &Millis| now.0.saturating_sub(since.0) >= DOUBT_MS;
        let ids: Vec<_> = all
            .iter()
            .filter(|(_, (_, since))| due(since))
            .map(|(id, (version, _))| (*id, *version))
            .collect();
        for (id, _) in &ids {
            all.remove(id);
        }
        ids
    }
}
