//! Recently seen versions of jobs, and which of them the store acknowledged. With them, a search that lags cannot bring
//! back an older state.

use std::collections::HashMap;

use fairlead_dispatch::Millis;
use fairlead_job::JobId;
use fairlead_store::{StoredJob, Version};
use parking_lot::Mutex;

/// Minimum time for which a version is remembered, ms. It exceeds the lag of searches.
pub const REMEMBER_MS: u64 = 60_000;

/// Maximum number of versions of one generation.
const REMEMBERED_MAX: usize = 100_000;

/// Versions of recently seen jobs. They keep a lagging search from restoring an older state.
#[derive(Debug, Default)]
pub struct Seen(Mutex<Generations>);

/// The newest state of a job that was seen.
#[derive(Debug, Clone, Copy)]
struct Sighting {
    version: Version,
    is_over: bool,
    /// True if the store acknowledged this version, to this replica or to one that reported it.
    is_proven: bool,
}

#[derive(Debug, Default)]
struct Generations {
    new: HashMap<JobId, Sighting>,
    old: HashMap<JobId, Sighting>,
    since: Millis,
}

/// Comparison of a state with the versions seen before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noted {
    Old,
    News,
    /// A newer state of a job whose end was seen before.
    AfterTheEnd,
}

impl Seen {
    /// Remembers this state, and compares it with the newest known one.
    pub fn note(&self, stored: &StoredJob, now: Millis) -> Noted {
        let (id, version) = (stored.state.job_id, stored.version);
        let mut all = self.0.lock();
        let all = &mut *all;
        if now.0.saturating_sub(all.since.0) >= REMEMBER_MS || all.new.len() >= REMEMBERED_MAX {
            all.old = std::mem::take(&mut all.new);
            all.since = now;
        }
        let known = all.newest(id).copied();
        if known.is_some_and(|known| known.version >= version) {
            return Noted::Old;
        }
        let seen = Sighting {
            version,
            is_over: stored.state.stage.is_terminal(),
            is_proven: false,
        };
        all.new.insert(id, seen);
        if known.is_some_and(|known| known.is_over) {
            Noted::AfterTheEnd
        } else {
            Noted::News
        }
    }

    /// Notes that the store acknowledged this version.
    pub fn prove(&self, id: JobId, version: Version) {
        if let Some(seen) = self.0.lock().newest(id) {
            seen.is_proven |= seen.version == version;
        }
    }

    /// Returns true if the store is known to have acknowledged this exact version.
    pub fn is_proven(&self, stored: &StoredJob) -> bool {
        let mut all = self.0.lock();
        let seen = all.newest(stored.state.job_id);
        seen.is_some_and(|seen| seen.is_proven && seen.version == stored.version)
    }

    /// Returns the newest recently seen version.
    pub fn newest(&self, id: JobId) -> Option<Version> {
        self.0.lock().newest(id).map(|seen| seen.version)
    }
}

impl Generations {
    fn newest(&mut self, id: JobId) -> Option<&mut Sighting> {
        self.new.get_mut(&id).or_else(|| self.old.get_mut(&id))
    }
}
