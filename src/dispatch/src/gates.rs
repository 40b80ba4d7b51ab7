//! Jobs that are kept back, and until when.

use crate::ids::JobKey;
use crate::interner::Numbers;
use indexmap::IndexMap;
use std::collections::BTreeSet;

/// Jobs that are held back, with the times of their release.
#[derive(Debug, Default)]
pub(crate) struct Gates {
    by_time: BTreeSet<(u64, JobKey)>,
    pub until: IndexMap<JobKey, u64, Numbers>,
}

impl Gates {
    pub(crate) fn close(&mut self, job: JobKey, until: u64) {
        self.open(job);
        self.by_time.insert((until, job));
        self.until.insert(job, until);
    }

    pub(crate) fn open(&mut self, job: JobKey) {
        if let Some(until) = self.until.swap_remove(&job) {
            self.by_time.remove(&(until, job));
        }
    }

    /// Opens the gate of one job whose time has come. Returns the job.
    pub(crate) fn due(&mut self, now: u64) -> Option<JobKey> {
        let job = self.by_time.first().filter(|(at, _)| *at <= now)?.1;
        self.open(job);
        Some(job)
    }

    /// Returns the time at which the next gate opens.
    pub(crate) fn next(&self) -> Option<u64> {
        self.by_time.first().map(|(at, _)| *at)
    }
}
