//! Counts what stands before a waiting job over all queues.
//!
//! Jobs in memory are counted in the indexes. Of a cache that is partial the store's last counts by queue help, so
//! nothing is searched here.

use crate::engine::Engine;
use crate::explain::{Ahead, Count, EXPLAIN_COUNT_MAX};
use crate::ids::{CLASS_MAX, JobKey, MemberId, Owner, QueueId};
use crate::index::Job;
use crate::labels::queue_of;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The place of a job among those of its account: priority, then age.
pub(crate) type Before = (Reverse<i16>, JobKey);

impl Engine {
    /// Counts the jobs that stand before a job of this owner.
    pub(crate) fn ahead(&self, owner: Owner, place: Before, now: u64) -> Ahead {
        let mut ahead = Ahead {
            in_account: self.ahead_in_account(owner, place),
            is_exact: self.cache.is_complete(),
            ..Ahead::default()
        };
        self.add_members_before(&mut ahead, owner, now);
        let Some(own) = self.ledger.queue_rank(owner.queue, now) else {
            return ahead;
        };
        let mut first: BTreeSet<&str> = BTreeSet::new();
        for (id, queue) in &self.ledger.queues {
            let rank = self.ledger.queue_rank(id, now);
            let is_before = rank.is_some_and(|rank| rank < own);
            if queue.tally.waiting > 0 && is_before && own.0.class() == queue.class() {
                first.insert(&queue.name);
            }
        }
        ahead.queues = first.len() as u64;
        self.add_queues(&mut ahead, own.0.class(), |name| first.contains(name));
        ahead
    }

    /// Same as [`Self::ahead`] for an account that has no jobs in this queue.
    pub(crate) fn ahead_of_newcomer(&self, queue: &str) -> Ahead {
        let policy = self.ledger.policy.of_queue(queue);
        let mut ahead = Ahead {
            is_exact: self.cache.is_complete(),
            ..Ahead::default()
        };
        self.add_queues(&mut ahead, policy.priority.min(CLASS_MAX), |_| false);
        ahead
    }

    /// Adds queues of higher classes with their jobs, and the jobs of those of its class that go first.
    fn add_queues(&self, ahead: &mut Ahead, class: u8, is_first: impl Fn(&str) -> bool) {
        for (name, waiting) in self.waiting_by_queue() {
            let policy = self.ledger.policy.of_queue(name);
            if waiting == 0 || policy.paused {
                continue;
            }
            if policy.priority.min(CLASS_MAX) > class {
                if self.queue_may_go(name) {
                    ahead.higher_classes += 1;
                    ahead.higher_jobs += waiting;
                }
            } else if is_first(name) {
                ahead.queues_jobs += waiting;
            }
        }
    }

    /// Returns true if a queue is not at a limit, as far as is known of it.
    fn queue_may_go(&self, name: &str) -> bool {
        let known: Option<QueueId> = self.ledger.by_name.get(name).copied();
        known.is_none_or(|id| self.ledger.queue_rank(id, self.now).is_some())
    }

    /// Counts waiting jobs by queue: those in memory, or the store's last counts if the cache is partial.
    fn waiting_by_queue(&self) -> BTreeMap<&str, u64> {
        let mut counted: BTreeMap<&str, u64> = BTreeMap::new();
        if !self.cache.is_complete() {
            for (name, jobs) in &self.cache.counts.queues {
                *counted.entry(queue_of(name)).or_default() += jobs.jobs;
            }
        }
        for queue in self.ledger.queues.values() {
            let known = counted.entry(&queue.name).or_default();
            *known = (*known).max(queue.tally.waiting);
        }
        counted
    }

    /// Adds accounts of its queue, or labels of its account, that are next before its own.
    fn add_members_before(&self, ahead: &mut Ahead, owner: Owner, now: u64) {
        let (Some(queue), Some(own)) = (
            self.ledger.queues.get(owner.queue),
            self.ledger.member_rank(owner.member, now),
        ) else {
            return;
        };
        for id in queue.members.values() {
            let Some(member) = self.ledger.members.get(*id) else {
                continue;
            };
            let rank = self.ledger.member_rank(*id, now);
            if member.tally.waiting == 0 || rank.is_none_or(|rank| rank >= own) {
                continue;
            }
            ahead.members_jobs += member.tally.waiting;
            if &*member.account == self.ledger.account(owner) {
                ahead.labels += 1;
            } else {
                ahead.accounts += 1;
            }
        }
    }

    /// Returns the number of equal jobs that were submitted later and went first.
    pub(crate) fn overtaken_by(&self, key: JobKey, job: &Job) -> u64 {
        let bucket = self.index.buckets.get(job.bucket);
        bucket.map_or(0, |bucket| {
            bucket.overtakers.before((Reverse(job.priority), key))
        })
    }

    fn ahead_in_account(&self, owner: Owner, place: Before) -> Count {
        let member: MemberId = owner.member;
        let mut counted = 0;
        for (_, bucket) in self.index.buckets_of(member) {
            let left = usize::try_from(EXPLAIN_COUNT_MAX.saturating_sub(counted))
                .unwrap_or(0)
                .saturating_add(1);
            let before = bucket.jobs.iter().take_while(|other| **other < place);
            counted += before.take(left).count() as u64;
            if counted > EXPLAIN_COUNT_MAX {
                return Count {
                    counted: EXPLAIN_COUNT_MAX,
                    more: true,
                };
            }
        }
        Count {
            counted,
            more: false,
        }
    }
}
