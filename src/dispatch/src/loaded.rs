//! Loaded hosts: which jobs they get all the same, and when jobs that they do not get are looked at again.
//!
//! A loaded host gets a vm or dc job only if no host that could run the job is calm, and the job has waited for
//! [`LOADED_WAIT_MS`]. A hw host is never loaded. Time alone ends both: so each set of jobs that a loaded host
//! did not get has a time at which it is looked at again.

use crate::engine::Engine;
use crate::event::{HostLoad, Kind};
use crate::hosts::Hosts;
use crate::ids::BucketId;
use crate::interner::Numbers;
use crate::shape::Shape;
use std::collections::{BTreeSet, HashMap};

/// A job waits so long for a calm host, if all that could run it are loaded, ms.
pub const LOADED_WAIT_MS: u64 = 10_000;

/// A job that a calm host could run is compared with loaded hosts again after so long, ms: that host may be gone.
const LOOK_AGAIN_MS: u64 = 1_000;

/// Buckets with jobs that loaded hosts did not get, by when they are looked at again.
#[derive(Debug, Default)]
pub(crate) struct KeptOff {
    by_time: BTreeSet<(u64, BucketId)>,
    at: HashMap<BucketId, u64, Numbers>,
}

impl KeptOff {
    fn note(&mut self, bucket: BucketId, at: u64) {
        if let Some(known) = self.at.insert(bucket, at) {
            self.by_time.remove(&(known, bucket));
        }
        self.by_time.insert((at, bucket));
    }

    fn take(&mut self) -> impl Iterator<Item = BucketId> + use<> {
        let all = std::mem::take(self);
        all.by_time.into_iter().map(|(_, bucket)| bucket)
    }

    fn due(&mut self, now: u64) -> Option<BucketId> {
        let (at, bucket) = self.by_time.first().copied()?;
        if at > now {
            return None;
        }
        self.by_time.pop_first();
        self.at.remove(&bucket);
        Some(bucket)
    }

    pub(crate) fn has(&self, bucket: BucketId) -> bool {
        self.at.contains_key(&bucket)
    }

    /// When the next one is looked at again.
    pub(crate) fn next(&self) -> Option<u64> {
        self.by_time.first().map(|(at, _)| *at)
    }
}

/// A waiting job, as far as the load of hosts matters to it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waits<'a> {
    pub account: &'a str,
    pub shape: &'a Shape,
    pub submitted: u64,
}

impl Hosts {
    /// Until when a job is kept off a loaded host, as far as is known now; none: it may have it.
    pub(crate) fn kept_off(&self, job: Waits<'_>, now: u64) -> Option<u64> {
        if job.shape.kind == Kind::Hw {
            return None;
        }
        let patient_until = job.submitted.saturating_add(LOADED_WAIT_MS);
        if now < patient_until {
            return Some(patient_until);
        }
        let calm_until = self.calm_until(job.account, job.shape, now)?;
        let again = now.saturating_add(LOOK_AGAIN_MS);
        Some(again.min(calm_until.saturating_add(1)))
    }
}

impl Engine {
    /// Jobs that loaded hosts did not get, and whose time has come, are compared with waiting offers again.
    pub(crate) fn look_at_kept_off(&mut self) {
        while let Some(bucket) = self.kept_off.due(self.now) {
            self.freshen(bucket);
        }
    }

    /// There are fewer calm hosts: what loaded ones did not get is compared with them at once.
    pub(crate) fn release_kept_off(&mut self) {
        for bucket in self.kept_off.take() {
            self.freshen(bucket);
        }
    }

    /// A loaded host did not get these.
    pub(crate) fn note_kept_off(&mut self, kept: impl IntoIterator<Item = (BucketId, u64)>) {
        for (bucket, at) in kept {
            self.kept_off.note(bucket, at);
        }
    }

    /// These hosts are closed, and no others.
    pub(crate) fn hosts_closed(&mut self, hosts: BTreeSet<String>) {
        self.hosts.closed = hosts;
        self.release_kept_off();
    }

    /// A host said between two offers how loaded it is. One that recovers while it asks says what it has by the request
    /// that follows: the open one offers what only a loaded host does.
    pub(crate) fn host_load(&mut self, host: &str, load: HostLoad) {
        let Some(id) = self.hosts.id(host) else {
            return;
        };
        let asks = self
            .hosts
            .known
            .get(id)
            .is_some_and(|host| host.open.is_some());
        if asks && !load.loaded {
            return;
        }
        self.hosts.set_load(id, Some(load));
        if load.loaded {
            self.release_kept_off();
        }
    }
}
