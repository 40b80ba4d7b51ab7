//! Live jobs: the jobs that testboxes hold, as this replica knows them.

use std::{collections::BTreeSet, sync::Arc};

use dashmap::{DashMap, Entry};
use fairlead_dispatch::Millis;
use fairlead_job::JobId;
use fairlead_store::StoredJob;

/// A job that a testbox holds.
#[derive(Debug, Clone)]
pub struct Live {
    /// Its state, as last known.
    pub stored: Arc<StoredJob>,
    /// When its agent was last heard to have it, on this replica's own clock.
    pub renewed: Millis,
    /// Since when it is known here that it was told to stop, on the same clock.
    pub stop_seen: Option<Millis>,
    /// Since when it is in its stage, on the same clock: when that was heard of, or at start as its document says.
    pub stage_since: Millis,
    /// What the wall clock was ahead of that clock, ms, when its claim was first seen.
    pub ahead_ms: i64,
}

/// When a job is seen.
#[derive(Debug, Clone, Copy)]
pub struct Sight {
    pub now: Millis,
    /// Since when it is in its stage, if nothing was known of that.
    pub stage_since: Millis,
    /// What the wall clock is ahead of the monotonic one, ms.
    pub ahead_ms: i64,
}

/// All jobs that testboxes hold, also by host. A job's entry stays locked until both maps agree, and it is locked first:
/// so each change of one job is one step for all others.
#[derive(Debug, Default)]
pub struct LiveJobs {
    pub jobs: DashMap<JobId, Live>,
    by_host: DashMap<String, BTreeSet<JobId>>,
}

impl LiveJobs {
    pub fn get(&self, id: JobId) -> Option<Live> {
        self.jobs.get(&id).map(|live| live.clone())
    }

    /// Adds it or brings it up to date; an older state than the known one is ignored.
    pub fn put(&self, stored: impl Into<Arc<StoredJob>>, sight: Sight) {
        let (stored, now) = (stored.into(), sight.now);
        let (id, host) = (stored.state.job_id, stored.state.host.clone());
        let entry = self.jobs.entry(id);
        let (mut stop_seen, mut seen) = (now, sight);
        if let Entry::Occupied(known) = &entry {
            let known = known.get();
            let before = &known.stored.state;
            if known.stored.version > stored.version {
                return;
            }
            if before.host != host {
                self.unlink(&before.host, id);
            }
            stop_seen = known.stop_seen.unwrap_or(now);
            if before.claim_token == stored.state.claim_token {
                seen.ahead_ms = known.ahead_ms;
                if before.stage == stored.state.stage {
                    seen.stage_since = known.stage_since;
                }
            }
        }
        let live = Live {
            stage_since: seen.stage_since,
            ahead_ms: seen.ahead_ms,
            stop_seen: stored.state.stop_asked.then_some(stop_seen),
            renewed: now,
            stored,
        };
        // Held until the host has it too.
        let _held = entry.insert(live);
        self.by_host.entry(host).or_default().insert(id);
    }

    pub fn remove(&self, id: JobId) {
        if let Entry::Occupied(known) = self.jobs.entry(id) {
            self.unlink(&known.get().stored.state.host, id);
            known.remove();
        }
    }

    fn unlink(&self, host: &str, id: JobId) {
        let mut empty = false;
        if let Some(mut ids) = self.by_host.get_mut(host) {
            ids.remove(&id);
            empty = ids.is_empty();
        }
        if empty {
            self.by_host.remove_if(host, |_, ids| ids.is_empty());
        }
    }

    /// Marks it as heard of.
    pub fn renew(&self, id: JobId, now: Millis) {
        if let Some(mut live) = self.jobs.get_mut(&id) {
            live.renewed = live.renewed.max(now);
        }
    }

    /// Marks it as heard of, if it is this host's.
    pub fn renew_of(&self, id: JobId, host: &str, now: Millis) {
        let is_its = self
            .get(id)
            .is_some_and(|live| live.stored.state.host == host);
        if is_its {
            self.renew(id, now);
        }
    }

    /// Time passed that must not count against anybody.
    pub fn forgive(&self, ms: u64) {
        for mut live in self.jobs.iter_mut() {
            live.renewed.0 = live.renewed.0.saturating_add(ms);
        }
    }

    /// What a host holds, oldest first.
    pub fn of_host(&self, host: &str) -> Vec<Live> {
        let ids = self.ids_of_host(host).into_iter();
        ids.filter_map(|id| self.get(id)).collect()
    }

    /// The ids of that.
    pub fn ids_of_host(&self, host: &str) -> Vec<JobId> {
        self.by_host
            .get(host)
            .map(|ids| ids.iter().copied().collect())
            .unwrap_or_default()
    }

    /// Their ids.
    pub fn ids(&self) -> BTreeSet<JobId> {
        self.jobs.iter().map(|live| *live.key()).collect()
    }

    /// Jobs that testboxes hold.
    pub fn count(&self) -> usize {
        self.jobs.len()
    }
}
