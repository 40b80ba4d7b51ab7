//! Which jobs loaded hosts get all the same, and when jobs that they do not get are looked at again.
//!
//! A loaded host gets a vm or dc job only if no host that could run the job is calm. The job has also waited for
//! [`LOADED_WAIT_MS`]. A hw host is never loaded. Time alone ends both: so each set of jobs that a loaded host
//! did not get has a time at which it is looked at again.

use crate::event::Kind;
use crate::hosts::Hosts;
use crate::ids::BucketId;
use crate::interner::Numbers;
use crate::shape::Shape;
use std::collections::{BTreeSet, HashMap};

/// Time that a job waits for a calm host if all hosts that could run it are loaded, ms.
pub const LOADED_WAIT_MS: u64 = 10_000;

/// Time after which a job kept for a calm host is compared with loaded hosts again, ms. The calm host may be gone.
const LOOK_AGAIN_MS: u64 = 1_000;

/// Buckets with jobs that loaded hosts did not get, by the time of their next look.
#[derive(Debug, Default)]
pub(crate) struct KeptOff {
    by_time: BTreeSet<(u64, BucketId)>,
    at: HashMap<BucketId, u64, Numbers>,
}

impl KeptOff {
    pub(crate) fn note(&mut self, bucket: BucketId, at: u64) {
        if let Some(known) = self.at.insert(bucket, at) {
            self.by_time.remove(&(known, bucket));
        }
        self.by_time.insert((at, bucket));
    }

    /// Removes and returns all of them.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = BucketId> + use<> {
        let all = std::mem::take(self);
        all.by_time.into_iter().map(|(_, bucket)| bucket)
    }

    /// Removes and returns one whose time has come.
    pub(crate) fn due(&mut self, now: u64) -> Option<BucketId> {
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

    /// Returns the time of the next look.
    pub(crate) fn next(&self) -> Option<u64> {
        self.by_time.first().map(|(at, _)| *at)
    }
}

/// Parts of a waiting job that matter for the load of hosts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waits<'a> {
    pub account: &'a str,
    pub shape: &'a Shape,
    pub submitted: u64,
}

impl<'a> Waits<'a> {
    pub(crate) fn new(account: &'a str, shape: &'a Shape, submitted: u64) -> Self {
        Self {
            account,
            shape,
            submitted,
        }
    }
}

impl Hosts {
    /// Returns the time until which a job is kept off a loaded host, as far as is known now; `None`: the host may
    /// have it.
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
