//! Evicts jobs from the partial cache (I7).
//!
//! The worst jobs of the longest queues go first. The last job of a dimension that the store counts stays. A *plan*
//! orders accounts by how many of their jobs are cached, and serves many evictions. An event evicts a bounded number.
//! So the cost of an event does not grow with the number of names. Beyond twice the limit, any job may go.

use crate::counted::NAMES_MAX;
use crate::engine::Engine;
use crate::event::{Cursor, Dimension};
use crate::evict_plan::{LOOKS_PER_EVICTION, Plan};
use crate::ids::{BucketId, JobKey, MemberId, Owner, Place};
use crate::labels::is_label;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Smallest cache that makes sense.
const CACHE_JOBS_MIN: u32 = 64;

/// Jobs evicted in one event, while the cache is below [`OVERFULL`] times its limit.
const EVICTED_AT_ONCE: usize = 256;

/// The cache may grow to this many times its limit for the sake of jobs that are the last of a dimension, or of finds.
const OVERFULL: usize = 2;

/// Maximum number of groups of jobs of one account that are looked at each time without a plan.
const BUCKETS_FEW: usize = 8;

impl Engine {
    /// Makes room: evicts the deepest jobs of the longest queues.
    pub(crate) fn evict(&mut self) {
        let limit = self.config.cache_jobs_max.max(CACHE_JOBS_MIN);
        // Found jobs must not be evicted before the offer that they were found for is served.
        let found = u32::try_from(self.cache.finding.len())
            .unwrap_or(u32::MAX)
            .saturating_mul(self.cache.find_jobs());
        let size = |jobs: u32| usize::try_from(jobs).unwrap_or(usize::MAX);
        let overfull = size(limit).saturating_mul(OVERFULL);
        let most = size(limit.saturating_add(found)).min(overfull);
        let excess = self.index.jobs.len().saturating_sub(most);
        if excess == 0 {
            self.cache.plan.asleep_until = 0;
            return;
        }
        let at_once = EVICTED_AT_ONCE.max(self.index.jobs.len().saturating_sub(overfull));
        self.evict_some(excess.min(at_once), true);
        let excess = self.index.jobs.len().saturating_sub(overfull);
        self.evict_some(excess, false);
    }

    fn evict_some(&mut self, mut excess: usize, spares_last: bool) {
        while excess > 0 {
            let jobs = self.index.jobs.len();
            if spares_last && jobs < self.cache.plan.asleep_until {
                return;
            }
            let plan = &self.cache.plan;
            let is_new = plan.left == 0 || plan.spares_last != spares_last;
            if is_new {
                self.make_plan(spares_last);
            }
            let evicted = self.evict_by_plan(excess);
            excess -= evicted;
            if evicted > 0 {
                continue;
            }
            self.cache.plan.left = 0;
            if is_new {
                // Looking again is worth it when more has come.
                let looked_at = self.ledger.members.len();
                self.cache.plan.asleep_until = jobs + 1 + looked_at / LOOKS_PER_EVICTION;
                return;
            }
        }
    }

    fn make_plan(&mut self, spares_last: bool) {
        let members = self.ledger.members.iter();
        let waiting = members.filter(|(_, member)| member.tally.waiting > 0);
        let longest: Vec<_> = waiting
            .map(|(id, member)| (member.tally.waiting, Reverse(id)))
            .collect();
        self.cache.plan = Plan {
            longest: longest.into(),
            tails: BTreeMap::new(),
            left: 1,
            spares_last,
            asleep_until: self.cache.plan.asleep_until,
            looks: self.cache.plan.looks,
        };
        self.cache.plan.looked_at(self.ledger.members.len());
    }

    /// Evicts up to `most` jobs as planned. Returns their number; `None`: the plan is used up.
    fn evict_by_plan(&mut self, most: usize) -> usize {
        let mut evicted = 0;
        while evicted < most && self.cache.plan.left > 0 {
            let Some((noted, Reverse(id))) = self.cache.plan.longest.pop() else {
                break;
            };
            let waiting = self
                .ledger
                .members
                .get(id)
                .map(|member| member.tally.waiting);
            let waiting = waiting.unwrap_or(0);
            if waiting < noted {
                if waiting > 0 {
                    self.cache.plan.longest.push((waiting, Reverse(id)));
                }
                continue;
            }
            let next = self.cache.plan.longest.peek().map_or(0, |(next, _)| *next);
            let longer = usize::try_from(waiting.saturating_sub(next).max(1)).unwrap_or(usize::MAX);
            let wanted = longer.min(most - evicted).min(self.cache.plan.left);
            let gone = self.evict_from(id, wanted);
            self.cache.plan.left = self.cache.plan.left.saturating_sub(gone);
            evicted += gone;
            // One that has no job to spare is not looked at again.
            let left = waiting.saturating_sub(gone as u64);
            if gone == wanted && left > 0 {
                self.cache.plan.longest.push((left, Reverse(id)));
            }
        }
        evicted
    }

    /// Evicts up to `most` of the deepest jobs of one account in one queue. Returns their number.
    fn evict_from(&mut self, member: MemberId, most: usize) -> usize {
        let mut tails = self.tails_of(member);
        let mut evicted = 0;
        while evicted < most {
            let Some((place, bucket)) = tails.pop() else {
                break;
            };
            self.cache.plan.looks += 1;
            let last = |engine: &Self| engine.index.buckets.get(bucket)?.jobs.last().copied();
            if last(self) != Some(place) {
                tails.extend(last(self).map(|last| (last, bucket)));
                continue;
            }
            let key = place.1;
            let is_reserved = self
                .reservations
                .values()
                .any(|reserved| reserved.job == key);
            if is_reserved || (self.cache.plan.spares_last && !self.is_spare(key)) {
                continue;
            }
            self.note_eviction(member, key);
            self.drop_waiting(key);
            self.cache.missing = self.cache.missing.saturating_add(1);
            self.cache.evicted = self.cache.evicted.saturating_add(1);
            evicted += 1;
            tails.extend(last(self).map(|last| (last, bucket)));
        }
        if tails.len() > BUCKETS_FEW {
            self.cache.plan.tails.insert(member, tails);
        }
        evicted
    }

    /// Returns the last job of each group of an account's jobs in a queue, deepest first.
    fn tails_of(&mut self, member: MemberId) -> BinaryHeap<(Place, BucketId)> {
        if let Some(tails) = self.cache.plan.tails.remove(&member) {
            return tails;
        }
        let buckets = self.index.buckets_of(member);
        let last = buckets.filter_map(|(id, bucket)| Some((*bucket.jobs.last()?, id)));
        let tails: Vec<_> = last.collect();
        if tails.len() > BUCKETS_FEW {
            self.cache.plan.looked_at(tails.len());
        }
        tails.into()
    }

    /// Notes that a waiting job is about to be evicted: the known extent of its account ends there.
    fn note_eviction(&mut self, member: MemberId, key: JobKey) {
        let Some(job) = self.index.jobs.get(&key) else {
            return;
        };
        let Some((_, owner)) = self.index.shape_of(job) else {
            return;
        };
        let queue = self.ledger.queues.get(owner.queue);
        let evicted = Cursor {
            class: queue.map_or(0, crate::ledger::Queue::class),
            priority: job.priority,
            key,
        };
        let account = self.ledger.account(owner);
        self.coverage.evicted(member, account, evicted);
        let account = Dimension::Account(account.to_owned());
        if let Some(begun) = self.cache.pulling.get_mut(&account) {
            begun.loses(evicted);
        }
    }

    /// Returns true if this job may go: each dimension that must keep a job in memory has another one.
    fn is_spare(&self, key: JobKey) -> bool {
        let job = self.index.jobs.get(&key);
        let bucket = job.and_then(|job| self.index.buckets.get(job.bucket));
        let Some(bucket) = bucket else { return false };
        let Some(entry) = self.index.shapes.get(bucket.shape) else {
            return false;
        };
        let names_max = usize::try_from(NAMES_MAX).unwrap_or(usize::MAX);
        let all_keys = self.index.keys.len() <= names_max;
        let mut keys = entry.keys.iter().zip(&entry.shape.keys);
        self.spares_owner(bucket.owner, names_max)
            && keys.all(|(id, name)| {
                let jobs = self.index.keys.get(*id).map_or(0, |cells| cells.jobs);
                jobs > 1 || (!all_keys && !self.hosts.offers_key(name))
            })
    }

    /// Same as [`Self::is_spare`] for its queue and account. All queues and accounts count while there are few, else
    /// those that the store counts.
    fn spares_owner(&self, owner: Owner, names_max: usize) -> bool {
        let (ledger, counts) = (&self.ledger, &self.cache.counts);
        let (Some(queue), Some(member)) = (
            ledger.queues.get(owner.queue),
            ledger.members.get(owner.member),
        ) else {
            return true;
        };
        let all_queues = ledger.order.len() <= names_max;
        // The store counts each label as a queue of its own.
        let (stored, waiting) = if is_label(&member.turn) {
            (&member.turn, member.tally.waiting)
        } else {
            (&queue.name, queue.tally.waiting)
        };
        let queue_may_go = waiting > 1 || (!all_queues && !counts.queues.contains_key(&**stored));
        let account_may_go = if all_queues && ledger.waiting.count <= names_max {
            member.tally.waiting > 1
        } else {
            ledger.waiting.of_id(member.of) > 1 || !counts.accounts.contains_key(&*member.account)
        };
        queue_may_go && account_may_go
    }
}
