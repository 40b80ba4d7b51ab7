//! Offers: a host's request, its deadline, and the jobs that it was given so far.

use crate::event::HostLoad;
use crate::hosts::crowd::Crowd;
use crate::hosts::load::Load;
use crate::ids::{HostId, JobKey, OfferKey};
use crate::shape::{Env, View};
use std::cmp::Reverse;
use std::sync::Arc;

/// Whether an offer still takes jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It does.
    Open,
    /// No more: it is answered when its claims are settled.
    Closing,
    /// Its asker hung up: no answer.
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
    /// In order of commit, each with the order of its dispatch.
    pub committed: Vec<(u64, JobKey)>,
    /// On their way to its host when it was made, and not ended since.
    pub before: Vec<JobKey>,
    /// Tries made after its time was up, because a claim was refused.
    pub late_tries: u32,
    /// Where it is listed.
    pub listed: Option<(Group, Slot)>,
}

impl OpenOffer {
    /// How many more jobs it takes.
    pub(crate) fn room(&self) -> u32 {
        let known = self.committed.len().saturating_add(self.before.len());
        let taken = u32::try_from(known)
            .unwrap_or(u32::MAX)
            .saturating_add(self.in_flight);
        self.jobs_max.saturating_sub(taken)
    }

    /// Nothing was claimed for it so far.
    pub(crate) fn is_untouched(&self) -> bool {
        self.in_flight == 0 && self.committed.is_empty()
    }
}

/// Under which circumstances no shape fitted a host.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Nothing {
    /// Shapes ever listed until then.
    pub listed: u64,
    pub free_mb: u32,
    pub free_cpus: u32,
    pub hw_open: bool,
    pub shared_open: bool,
}

impl Nothing {
    /// Whether a host that could take no more than this one could do so now.
    pub(crate) fn covers(&self, view: &View) -> bool {
        view.free_mb <= self.free_mb
            && view.free_cpus <= self.free_cpus
            && view.hw_open <= self.hw_open
            && view.shared_open <= self.shared_open
    }
}

/// What may differ from one offer of a host to the next.
#[derive(Debug, Clone)]
pub(crate) struct Arrival {
    pub free_mb: u32,
    pub total_mb: u32,
    pub free_cpus: u32,
    pub total_cpus: u32,
    /// Jobs on their way to it, with what they take there.
    pub owed: Vec<(JobKey, Load)>,
    pub jobs_max: u32,
    pub waits_until: u64,
    pub load: Option<HostLoad>,
    pub recency: Recency,
}

/// The order of hosts by their last use: those that are always there first, then machines of pools, the last used first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Recency(u64);

impl Recency {
    /// That of a machine whose last job ended then; none: the host is always there.
    pub(crate) fn of(ended: Option<u64>) -> Self {
        Self(ended.map_or(0, |ended| (u64::MAX - ended).max(1)))
    }

    /// Whether it is that of a machine of a pool.
    pub(crate) fn is_elastic(self) -> bool {
        self.0 > 0
    }
}

/// Offers that no check but that of memory tells apart. Those of machines of pools have equal free memory, too, so that they
/// stand in the order of their last use.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Group {
    pub env: Arc<Env>,
    pub free_cpus: u32,
    pub hw_open: bool,
    pub shared_open: bool,
    pub crowd: Crowd,
    /// Free memory of a machine of a pool; 0: of a host that is always there.
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
