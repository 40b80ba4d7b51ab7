//! Finds offers for jobs that have news: the best one that waits. Part of [`Engine`].

use crate::engine::Engine;
use crate::event::{Decision, Kind, NOT_ON_MAX};
use crate::hosts::{Crowd, Recency, Slot};
use crate::ids::{BucketId, HostId, JobKey, OfferKey, Owner, Place};
use crate::interner::{Atom, common};
use crate::kept_off::Waits;
use crate::ledger::{MemberRank, QueueRank};
use crate::requirement::Requirement;
use crate::reserve::Limit;
use crate::shape::{Gate, Obstacle, Shape, first_obstacle};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// Maximum number of waiting offers looked at in one group if the first ones are reserved or too small.
const SLOTS_LOOKED_AT: usize = 32;

const _: () = assert!(NOT_ON_MAX < SLOTS_LOOKED_AT);

type BucketRank = (QueueRank, MemberRank, Place, BucketId);

impl Engine {
    /// Gives jobs with news to offers that wait, in the order of shares.
    pub(crate) fn place_fresh(&mut self, decisions: &mut Vec<Decision>) {
        let fresh = std::mem::take(&mut self.fresh);
        if self.hosts.listed == 0 {
            return;
        }
        let ranks = fresh
            .into_iter()
            .filter_map(|bucket| self.bucket_rank(bucket))
            .map(Reverse);
        let mut order: BinaryHeap<Reverse<BucketRank>> = ranks.collect();
        while let Some(Reverse(rank)) = order.pop() {
            if self.hosts.listed == 0 {
                return;
            }
            let Some(current) = self.bucket_rank(rank.3) else {
                continue;
            };
            if current > rank {
                order.push(Reverse(current));
                continue;
            }
            let Some((job, offer)) = self.place(rank.2.1, rank.0.0.class()) else {
                continue;
            };
            self.claim(job, offer, decisions);
            order.extend(self.bucket_rank(rank.3).map(Reverse));
        }
    }

    /// Returns the first job of a bucket, or one like it, with a waiting offer for it.
    fn place(&mut self, first: JobKey, class: u8) -> Option<(JobKey, OfferKey)> {
        let own = self.own_first(first);
        if let Some(offer) = self.best_offer(own, class) {
            return Some((own, offer));
        }
        let bucket = self.index.jobs.get(&first)?.bucket;
        if own == first || !self.kept_off.has(bucket) {
            return None;
        }
        // It was kept off a loaded host, and the first has waited longer.
        let offer = self.best_offer(first, class)?;
        Some((first, offer))
    }

    /// Returns the parts of a waiting job that matter for the load of hosts.
    fn waits<'a>(&'a self, owner: Owner, shape: &'a Shape, submitted: u64) -> Waits<'a> {
        Waits::new(self.ledger.account(owner), shape, submitted)
    }

    fn bucket_rank(&self, id: BucketId) -> Option<BucketRank> {
        let bucket = self.index.buckets.get(id)?;
        let queue = self.ledger.queue_rank(bucket.owner.queue, self.now)?;
        let member = self.ledger.member_rank(bucket.owner.member, self.now)?;
        Some((queue, member, *bucket.jobs.first()?, id))
    }

    /// Returns the best waiting offer for a job. The order is: most of its cache directories; then, of hosts that
    /// report their load, fewest jobs and least pressure; then permanent hosts; then the last used machine of a pool;
    /// then most free memory; then longest waiting.
    fn best_offer(&mut self, key: JobKey, class: u8) -> Option<OfferKey> {
        let job = self.index.jobs.get(&key)?;
        let (shape, owner) = self.index.shape_of(job)?;
        let (shape, bucket) = (Arc::clone(shape), job.bucket);
        if shape.gate == Gate::Blocked {
            return None;
        }
        let submitted = job.submitted;
        let with_cache = job
            .caches
            .clone()
            .and_then(|dirs| self.best_with_caches((key, class, submitted), owner, &shape, &dirs));
        if with_cache.is_some() || matches!(shape.gate, Gate::Affine(_)) {
            return with_cache;
        }
        let account = Some(self.ledger.account(owner));
        let mut best: Option<(Crowd, Recency, Slot)> = None;
        let mut work = self.work;
        let mut kept_off = None;
        for groups in shape
            .keys
            .iter()
            .filter_map(|name| self.hosts.waiting.get(name))
        {
            for (group, slots) in groups {
                work.shapes_checked += 1;
                for slot in slots.iter().take(SLOTS_LOOKED_AT) {
                    work.entries_visited += 1;
                    let rank = (group.crowd, slot.recency, *slot);
                    if best.is_some_and(|best| best <= rank) {
                        break;
                    }
                    let Some((id, host)) = self.hosts.host_of(slot.key) else {
                        continue;
                    };
                    let obstacle = first_obstacle(account, &shape, &host.view);
                    if obstacle.is_none() && host.is_loaded() {
                        let waits = self.waits(owner, &shape, submitted);
                        kept_off = kept_off.or_else(|| self.hosts.kept_off(waits, self.now));
                        if kept_off.is_some() {
                            break;
                        }
                    }
                    match obstacle {
                        None if self.may_enter(key, class, id) => best = Some(rank),
                        // Those of a group are alike but for their names, and fewer are named than looked at.
                        None | Some(Obstacle::Unmet(Requirement::OtherHost)) => continue,
                        Some(Obstacle::Unmet(Requirement::Memory)) if shape.kind == Kind::Hw => {
                            continue;
                        }
                        Some(_) => {}
                    }
                    break;
                }
            }
        }
        self.work = work;
        self.note_kept_off(kept_off.map(|until| (bucket, until)));
        best.map(|(.., slot)| slot.key)
    }

    fn best_with_caches(
        &mut self,
        (key, class, submitted): (JobKey, u8, u64),
        owner: Owner,
        shape: &Shape,
        dirs: &[Atom],
    ) -> Option<OfferKey> {
        let mut best: Option<(Reverse<usize>, Crowd, Recency, Slot)> = None;
        let mut work = self.work;
        let slots = dirs
            .iter()
            .filter_map(|dir| self.hosts.waiting_with.get(dir));
        for slot in slots.flat_map(|slots| slots.iter().take(SLOTS_LOOKED_AT)) {
            work.entries_visited += 1;
            let Some((id, host)) = self.hosts.host_of(slot.key) else {
                continue;
            };
            let rank = (
                Reverse(common(dirs, &host.view.caches)),
                host.crowd(),
                slot.recency,
                *slot,
            );
            if best.is_some_and(|best| best <= rank) {
                continue;
            }
            work.shapes_checked += 1;
            let account = Some(self.ledger.account(owner));
            let fits = first_obstacle(account, shape, &host.view).is_none();
            let is_kept = || {
                let waits = self.waits(owner, shape, submitted);
                host.is_loaded() && self.hosts.kept_off(waits, self.now).is_some()
            };
            if fits && !is_kept() && self.may_enter(key, class, id) {
                best = Some(rank);
            }
        }
        self.work = work;
        best.map(|(.., slot)| slot.key)
    }

    /// Returns true if a reservation of this host lets a job in.
    fn may_enter(&self, key: JobKey, class: u8, id: HostId) -> bool {
        let reserved = self.reservations.iter().find(|(_, r)| r.host == id);
        let (Some((reserved_class, reserved)), Some(host)) = (reserved, self.hosts.known.get(id))
        else {
            return true;
        };
        let Some(start) = self.reserved_start(reserved) else {
            return true;
        };
        let limit = Limit {
            class: *reserved_class,
            job: reserved.job,
            start,
        };
        let waiting = self.index.jobs.get(&key);
        let waiting = waiting.and_then(|job| Some((job, self.index.shape_of(job)?.0)));
        waiting.is_some_and(|(waiting, shape)| {
            limit.admits(
                &self.ledger,
                key,
                (waiting, shape),
                class,
                &host.group,
                self.now,
            )
        })
    }
}
