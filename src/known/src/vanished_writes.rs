//! States that this replica saw and the store does not have.

use std::collections::BTreeMap;

use fairlead_dispatch::Millis;
use fairlead_job::JobId;
use fairlead_store::Version;
use parking_lot::Mutex;

/// How long a job must stay older than what was seen, ms: longer than searches lag behind.
pub const DOUBT_MS: u64 = 4_000;

/// Most doubts at one time.
const DOUBTS_MAX: usize = 10_000;

/// Jobs that were read at an older version than was seen, since when.
#[derive(Debug, Default)]
pub struct VanishedWrites(Mutex<BTreeMap<JobId, (Version, Millis)>>);

impl VanishedWrites {
    /// A job was read at `found`; the newest that was seen of it is `newest`.
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
