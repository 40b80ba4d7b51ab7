//! Offers: a host's request, its deadline, and the jobs that it was given so far.

use crate::event::HostLoad;
use crate::hosts::crowd::Crowd;
use crate::hosts::load::Load;
use crate::ids::{HostId, JobKey, OfferKey};
use crate::shape::{Env, View};
use std::cmp::Reverse;
use std::sync::Arc;

/// State of an offer: does it still take jobs?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It takes jobs.
    Open,
    /// It takes no more jobs and is answered when its claims are settled.
    Closing,
    /// Its host hung up: no answer.
    Withdrawn,
}

/// An offer that is not answered yet.
#[derive(Debug)]
pub(crate) struct OpenOffer {
    pub host: HostId,
    pub jobs_max: u32,
    pub since: u64,
    pub waits_until: u64,
    pub standing: Standing,
    pub in_flight: u32,
    /// Committed jobs in order of commit, each with the order of its dispatch.
    pub committed: Vec<(u64, JobKey)>,
    /// Jobs that were on their way to its host when it was made, and have not ended since.
    pub before: Vec<JobKey>,
    /// Tries made after its time was up, because a claim was refused.
    pub late_tries: u32,
    /// Group and slot where it is listed.
    pub listed: Option<(Group, Slot)>,
}

impl OpenOffer {
    /// Returns the number of jobs that it can still take.
    pub(crate) fn room(&self) -> u32 {
        let known = self.committed.len().saturating_add(self.before.len());
        let taken = u32::try_from(known)
            .unwrap_or(u32::MAX)
            .saturating_add(self.in_flight);
        self.jobs_max.saturating_sub(taken)
    }

    /// Returns true if nothing has been claimed for it.
    pub(crate) fn is_untouched(&self) -> bool {
        self.in_flight == 0 && self.committed.is_empty()
    }
}

/// State of a host in which no shape fitted it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Nothing {
    /// Number of shapes ever listed until then.
    pub listed: u64,
    pub free_mb: u32,
    pub free_cpus: u32,
    pub hw_open: bool,
    pub shared_open: bool,
}

impl Nothing {
    /// Returns true if `view` offers no more than the host did in this state.
    pub(crate) fn covers(&self, view: &View) -> bool {
        view.free_mb <= self.free_mb
            && view.free_cpus <= self.free_cpus
            && view.hw_open <= self.hw_open
            && view.shared_open <= self.shared_open
    }
}

/// Parts that may differ between two offers of a host.
#[derive(Debug, Clone)]
pub(crate) struct Arrival {
    pub free_mb: u32,
    pub total_mb: u32,
    pub free_cpus: u32,
    pub total_cpus: u32,
    /// Jobs on their way to it, with the resources that they take there.
    pub owed: Vec<(JobKey, Load)>,
    pub jobs_max: u32,
    pub waits_until: u64,
    pub load: Option<HostLoad>,
    pub recency: Recency,
}

/// Order of hosts by their last use: permanent hosts first, then machines of pools, the last used first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Recency(u64);

impl Recency {
    /// Returns the order of a machine whose last job ended at this time; `None`: the host is permanent.
    pub(crate) fn of(ended: Option<u64>) -> Self {
        Self(ended.map_or(0, |ended| (u64::MAX - ended).max(1)))
    }

    /// Returns true for a machine of a pool.
    pub(crate) fn is_elastic(self) -> bool {
        self.0 > 0
    }
}

/// Offers that only the check of memory can tell apart. Those of pool machines have equal free memory as well, so
/// that they stand in the order of their last use.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Group {
    pub env: Arc<Env>,
    pub free_cpus: u32,
    pub hw_open: bool,
    pub shared_open: bool,
    pub crowd: Crowd,
    /// Free memory of a machine of a pool; 0: the host is permanent.
    pub elastic_mb: u32,
}

/// A waiting offer in the order of its group: most free memory, last used, longest waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot {
    pub free_mb: Reverse<u32>,
    pub recency: Recency,
    pub since: u64,
    pub key: OfferKey,
}
