//! Recently seen versions of jobs. With them, a search that lags cannot bring back an older state.

use std::collections::HashMap;

use fairlead_dispatch::Millis;
use fairlead_job::JobId;
use fairlead_store::{StoredJob, Version};
use parking_lot::Mutex;

/// How long a version is remembered at least, ms: longer than searches lag behind.
pub(crate) const REMEMBER_MS: u64 = 60_000;

/// Most versions of one generation.
const REMEMBERED_MAX: usize = 100_000;

/// Versions of jobs that were seen lately: a search that lags must not bring an older state back.
#[derive(Debug, Default)]
pub(crate) struct Seen(Mutex<Generations>);

/// By job: its version, and whether it had ended.
#[derive(Debug, Default)]
struct Generations {
    new: HashMap<JobId, (Version, bool)>,
    pub(crate) old: HashMap<JobId, (Version, bool)>,
    pub(crate) since: Millis,
}

/// What a state is, compared with what was seen before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Noted {
    Old,
    News,
    /// Newer, of a job whose end was seen before.
    AfterTheEnd,
}

impl Seen {
    /// Remembers that this state exists.
    pub(crate) fn note(&self, stored: &StoredJob, now: Millis) -> Noted {
        let (id, version) = (stored.state.job_id, stored.version);
        let mut all = self.0.lock();
        let all = &mut *all;
        if now.0.saturating_sub(all.since.0) >= REMEMBER_MS || all.new.len() >= REMEMBERED_MAX {
            all.old = std::mem::take(&mut all.new);
            all.since = now;
        }
        let known = all.newest(id);
        if known.is_some_and(|(known, _)| known >= version) {
            return Noted::Old;
        }
        all.new
            .insert(id, (version, stored.state.stage.is_terminal()));
        match known {
            Some((_, true)) => Noted::AfterTheEnd,
            _ => Noted::News,
        }
    }

    /// The newest version that was seen lately.
    pub(crate) fn newest(&self, id: JobId) -> Option<Version> {
        let all = self.0.lock();
        all.newest(id).map(|(version, _)| version)
    }
}

impl Generations {
    pub(crate) fn newest(&self, id: JobId) -> Option<(Version, bool)> {
        self.new.get(&id).or_else(|| self.old.get(&id)).copied()
    }
}
