//! Recently seen versions of jobs, and which of them the store acknowledged. With them, a search that lags cannot bring
//! back an older state.

use std::collections::HashMap;

use fairlead_dispatch::Millis;
use fairlead_job::JobId;
use fairlead_store::{StoredJob, Version};
use parking_lot::Mutex;

/// How long a version is remembered at least, ms: longer than searches lag behind.
pub const REMEMBER_MS: u64 = 60_000;

/// Most versions of one generation.
const REMEMBERED_MAX: usize = 100_000;

/// Versions of jobs that were seen lately: a search that lags must not bring an older state back.
#[derive(Debug, Default)]
pub struct Seen(Mutex<Generations>);

/// The newest state of a job that was seen.
#[derive(Debug, Clone, Copy)]
struct Sighting {
    version: Version,
    is_over: bool,
    /// Whether the store acknowledged this version, to this replica or to another one that told so.
    is_proven: bool,
}

#[derive(Debug, Default)]
struct Generations {
    new: HashMap<JobId, Sighting>,
    old: HashMap<JobId, Sighting>,
    since: Millis,
}

/// What a state is, compared with what was seen before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noted {
    Old,
    News,
    /// Newer, of a job whose end was seen before.
    AfterTheEnd,
}

impl Seen {
    /// Remembers that this state exists.
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

    /// The store acknowledged this version.
    pub fn prove(&self, id: JobId, version: Version) {
        if let Some(seen) = self.0.lock().newest(id) {
            seen.is_proven |= seen.version == version;
        }
    }

    /// Whether the store acknowledged this very version, as far as is remembered.
    pub fn is_proven(&self, stored: &StoredJob) -> bool {
        let mut all = self.0.lock();
        let seen = all.newest(stored.state.job_id);
        seen.is_some_and(|seen| seen.is_proven && seen.version == stored.version)
    }

    /// The newest version that was seen lately.
    pub fn newest(&self, id: JobId) -> Option<Version> {
        self.0.lock().newest(id).map(|seen| seen.version)
    }
}

impl Generations {
    fn newest(&mut self, id: JobId) -> Option<&mut Sighting> {
        self.new.get_mut(&id).or_else(|| self.old.get_mut(&id))
    }
}
