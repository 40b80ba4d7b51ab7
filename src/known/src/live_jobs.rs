//! Live jobs: the jobs that testboxes hold, as this replica knows them.

use std::{collections::BTreeSet, sync::Arc};

use dashmap::{DashMap, Entry};
use fairlead_dispatch::Millis;
use fairlead_job::JobId;
use fairlead_store::StoredJob;

/// A job that a testbox holds.
#[derive(Debug, Clone)]
pub struct Live {
    /// Its latest known state.
    pub stored: Arc<StoredJob>,
    /// Time at which its agent was last heard to have it, on this replica's clock.
    pub renewed: Millis,
    /// Time since which its order to stop is known here, on the same clock.
    pub stop_seen: Option<Millis>,
    /// Time since which it is in its stage, on the same clock. At start it comes from the document.
    pub stage_since: Millis,
    /// Offset of the wall clock ahead of that clock when its claim was first seen, ms.
    pub ahead_ms: i64,
}

/// Time at which a job is seen.
#[derive(Debug, Clone, Copy)]
pub struct Sight {
    pub now: Millis,
    /// Time since which it is in its stage, if no earlier time is known.
    pub stage_since: Millis,
    /// Offset of the wall clock ahead of the monotonic clock, ms.
    pub ahead_ms: i64,
}

/// All jobs that testboxes hold, also by host. A job's entry is locked first, and stays locked until both maps agree.
/// So each change of a job is one step for all others.
#[derive(Debug, Default)]
pub struct LiveJobs {
    pub jobs: DashMap<JobId, Live>,
    by_host: DashMap<String, BTreeSet<JobId>>,
}

impl LiveJobs {
    pub fn get(&self, id: JobId) -> Option<Live> {
        self.jobs.get(&id).map(|live| live.clone())
    }

    /// Adds or updates a job. A state older than the known one is ignored.
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
        // The entry stays locked until the host's set has the job, too.
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

    /// Notes a sign of life of a job.
    pub fn renew(&self, id: JobId, now: Millis) {
        if let Some(mut live) = self.jobs.get_mut(&id) {
            live.renewed = live.renewed.max(now);
        }
    }

    /// Notes a sign of life of a job, if this host has it.
    pub fn renew_of(&self, id: JobId, host: &str, now: Millis) {
        let is_its = self
            .get(id)
            .is_some_and(|live| live.stored.state.host == host);
        if is_its {
            self.renew(id, now);
        }
    }

    /// Moves all times forward by `ms`, so that this time counts against nobody.
    pub fn forgive(&self, ms: u64) {
        for mut live in self.jobs.iter_mut() {
            live.renewed.0 = live.renewed.0.saturating_add(ms);
        }
    }

    /// Returns the jobs of a host, oldest first.
    pub fn of_host(&self, host: &str) -> Vec<Live> {
        let ids = self.ids_of_host(host).into_iter();
        ids.filter_map(|id| self.get(id)).collect()
    }

    /// Returns the ids of a host's jobs.
    pub fn ids_of_host(&self, host: &str) -> Vec<JobId> {
        self.by_host
            .get(host)
            .map(|ids| ids.iter().copied().collect())
            .unwrap_or_default()
    }

    /// Returns the ids of all jobs.
    pub fn ids(&self) -> BTreeSet<JobId> {
        self.jobs.iter().map(|live| *live.key()).collect()
    }

    /// Returns the number of jobs that testboxes hold.
    pub fn count(&self) -> usize {
        self.jobs.len()
    }
}
