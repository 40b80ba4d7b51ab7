//! Why jobs wait, summed up by queue: for metrics, where nobody asks about one job.

use crate::engine::Engine;
use crate::ids::{Owner, ShapeId};
use crate::shape::Shape;
use std::collections::BTreeMap;

/// Comparisons of a shape with a host that one report makes, at most. Jobs of shapes beyond it count as
/// [`WaitReason::Host`].
pub const WAIT_REPORT_LOOKS_MAX: u64 = 200_000;

/// What keeps a waiting job from a host, by the first reason that applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitReason {
    /// Its queue or the whole lab is paused.
    Paused,
    /// A limit of its account or queue is reached.
    Limit,
    /// No host that is known could ever run it.
    NoHost,
    /// It waits for its turn on a host that could.
    Host,
}

impl WaitReason {
    /// All, in order.
    pub const ALL: [Self; 4] = [Self::Paused, Self::Limit, Self::NoHost, Self::Host];

    /// A word for it.
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
    /// How many jobs that are in memory here wait for each reason, by queue. Its cost grows with the groups of jobs of one
    /// account, queue and shape, never with the jobs, and is bounded by [`WAIT_REPORT_LOOKS_MAX`].
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

    /// Whether any known host could run jobs of a shape if nothing else ran there; assumed where too much was looked at.
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
