//! Why jobs wait, summed up by queue: for metrics, where nobody asks about one job.

use crate::engine::Engine;
use crate::ids::{Owner, ShapeId};
use crate::shape::Shape;
use std::collections::BTreeMap;

/// Maximum number of comparisons of a shape with a host in one report. Jobs of shapes beyond it count as
/// [`WaitReason::Host`].
pub const WAIT_REPORT_LOOKS_MAX: u64 = 200_000;

/// Reason why a waiting job gets no host. The first reason that applies counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitReason {
    /// Its queue or the whole lab is paused.
    Paused,
    /// A limit of its account or queue is reached.
    Limit,
    /// No known host could ever run it.
    NoHost,
    /// It waits for its turn on a host that could run it.
    Host,
}

impl WaitReason {
    /// All reasons, in order.
    pub const ALL: [Self; 4] = [Self::Paused, Self::Limit, Self::NoHost, Self::Host];

    /// Returns the word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Paused => "paused",
            Self::Limit => "limit",
            Self::NoHost => "no_host",
            Self::Host => "host",
        }
    }
}

impl Engine {
    /// Returns the number of jobs in memory by queue and by reason of their wait. Its cost grows with the groups of
    /// jobs of one account, queue and shape, not with the jobs. [`WAIT_REPORT_LOOKS_MAX`] bounds the cost.
    pub fn waiting_by_reason(&self) -> BTreeMap<(String, WaitReason), u64> {
        let mut counts: BTreeMap<(Owner, WaitReason), u64> = BTreeMap::new();
        let mut owners: BTreeMap<Owner, Option<WaitReason>> = BTreeMap::new();
        let mut shapes: BTreeMap<ShapeId, bool> = BTreeMap::new();
        let mut looks = 0;
        for bucket in self.index.buckets.values() {
            let of_owner = owners
                .entry(bucket.owner)
                .or_insert_with(|| self.reason_of_owner(bucket.owner));
            let reason = of_owner.unwrap_or_else(|| {
                let could = shapes.entry(bucket.shape).or_insert_with(|| {
                    let entry = self.index.shapes.get(bucket.shape);
                    entry.is_none_or(|entry| self.has_able_host(&entry.shape, &mut looks))
                });
                if *could {
                    WaitReason::Host
                } else {
                    WaitReason::NoHost
                }
            });
            *counts.entry((bucket.owner, reason)).or_default() += bucket.jobs.len() as u64;
        }
        let mut by_queue = BTreeMap::new();
        for ((owner, reason), jobs) in counts {
            if let Some(queue) = self.ledger.queues.get(owner.queue) {
                *by_queue
                    .entry((queue.name.to_string(), reason))
                    .or_default() += jobs;
            }
        }
        by_queue
    }

    fn reason_of_owner(&self, owner: Owner) -> Option<WaitReason> {
        let queue = self.ledger.queues.get(owner.queue)?;
        if queue.policy.paused || self.ledger.policy.paused {
            return Some(WaitReason::Paused);
        }
        let reached = self
            .ledger
            .limits_reached(&queue.name, self.ledger.account(owner));
        (!reached.is_empty()).then_some(WaitReason::Limit)
    }

    /// Returns true if any known host could run jobs of a shape on its own. Beyond the maximum of looks it is
    /// assumed.
    fn has_able_host(&self, shape: &Shape, looks: &mut u64) -> bool {
        if *looks >= WAIT_REPORT_LOOKS_MAX {
            return true;
        }
        self.hosts.present().any(|(_, host)| {
            *looks += 1;
            let required = shape.requirements(None);
            required.first_unmet_by(&host.view.idle()).is_none()
        })
    }
}
