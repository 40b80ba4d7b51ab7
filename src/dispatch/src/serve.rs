//! Matches offers and jobs: finds jobs for an offer, and offers for a job.

use crate::engine::Engine;
use crate::event::{Decision, Kind, NOT_ON_MAX};
use crate::hosts::{Host, Nothing, Slot, Standing};
use crate::ids::{BucketId, HostId, JobKey, OfferKey, Owner, Place, QueueId};
use crate::index::KeyCells;
use crate::interner::{Atom, common};
use crate::ledger::{MemberRank, QueueRank};
use crate::peers::WINDOW;
use crate::pick::Picker;
use crate::requirement::Requirement;
use crate::reserve::{Limit, Reservation, Start, start_at};
use crate::shape::{Gate, Obstacle, Shape, first_obstacle};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// Tries for an offer whose time is up, when claims for it were refused.
const LATE_TRIES_MAX: u32 = 3;

/// Time between two looks for jobs that a host is too busy for, ms.
const LARGE_EVERY_MS: u64 = 1_000;

/// Waiting offers looked at in one group, when the first ones are reserved or too small.
const SLOTS_LOOKED_AT: usize = 32;

/// Queues noted too low that a look may pass.
const STALE_MAX: usize = 6;

const _: () = assert!(NOT_ON_MAX < SLOTS_LOOKED_AT);

type BucketRank = (QueueRank, MemberRank, Place, BucketId);

impl Engine {
    /// Looks for jobs for the offers that have news.
    pub(crate) fn serve_dirty(&mut self, decisions: &mut Vec<Decision>) {
        while let Some((_, offer)) = self.dirty.pop_first() {
            self.serve(offer, decisions);
        }
    }

    fn serve(&mut self, offer: OfferKey, decisions: &mut Vec<Decision>) {
        let Some(open) = self.hosts.offers.get_mut(&offer) else {
            return;
        };
        if open.standing != Standing::Open {
            return;
        }
        if self.now > open.waits_until {
            open.late_tries = open.late_tries.saturating_add(1);
            if open.late_tries > LATE_TRIES_MAX {
                return;
            }
        }
        if !self.may_serve(offer) {
            return;
        }
        while self.hosts.takes_more(offer) {
            let Some(job) = self.next_for(offer) else {
                break;
            };
            self.claim(job, offer, decisions);
        }
        // One that is about to be answered need not be found by others.
        let now = self.now;
        if self
            .hosts
            .offers
            .get(&offer)
            .is_some_and(|open| open.room() > 0 && open.waits_until > now)
        {
            self.hosts.list(offer);
        }
        self.served(offer);
    }

    /// The next job for an offer, if any cached one fits.
    fn next_for(&mut self, offer: OfferKey) -> Option<JobKey> {
        let id = self.hosts.offers.get(&offer)?.host;
        self.look_up_keys(id);
        if self.still_nothing(id) {
            return None;
        }
        let limit = self.limit_on(id);
        let reserve_before = self.reserve_before(id).filter(|_| limit.is_none());
        let (found, passed_over) = self.look_for(id, limit, reserve_before, None)?;
        if passed_over.is_some_and(|job| self.reserve(job, id)) {
            // Whether what was found may still enter is another question now.
            return self.next_for(offer);
        }
        let Some(limit) = limit else {
            let found = found.map(|job| self.background_first(job, id));
            return found.map(|job| self.own_first(job));
        };
        let higher = found
            .and_then(|job| self.class_of(job))
            .is_some_and(|class| class > limit.class);
        if higher || !self.fits_now(limit.job, id) {
            found
        } else {
            Some(limit.job)
        }
    }

    /// What comes before the next job of a host: one of a lower class whose queue is due its share of dispatches.
    fn background_first(&mut self, job: JobKey, host: HostId) -> JobKey {
        if self.ledger.background.is_empty() {
            return job;
        }
        let known = self.index.jobs.get(&job);
        let Some((_, owner)) = known.and_then(|job| self.index.shape_of(job)) else {
            return job;
        };
        for queue in self.ledger.pass_over(owner.queue) {
            let found = self.look_for(host, None, None, Some(queue));
            if let Some((Some(low), _)) = found {
                self.ledger.takes_its_share(queue);
                return low;
            }
        }
        job
    }

    /// Looks for a host's next job, of all queues or of one; and for a job that it must pass over.
    fn look_for(
        &mut self,
        id: HostId,
        limit: Option<Limit>,
        reserve_before: Option<u64>,
        only: Option<QueueId>,
    ) -> Option<(Option<JobKey>, Option<JobKey>)> {
        let host = self.hosts.known.get(id)?;
        let mut picker = Picker {
            index: &self.index,
            ledger: &self.ledger,
            view: &host.view,
            group: &host.group,
            now: self.now,
            limit,
            reserve_before,
            only,
            cells: self.cells_under(host).collect(),
            work: self.work,
            stale_queues: Vec::new(),
            stale_members: Vec::new(),
            nothing: false,
            passed_over: None,
        };
        let found = picker.pick();
        let Picker {
            passed_over,
            nothing,
            work,
            stale_queues,
            stale_members,
            ..
        } = picker;
        self.work = work;
        if nothing && only.is_none() {
            self.note_nothing(id);
        }
        // A few that are noted too low are sooner looked at again than noted anew.
        if stale_queues.len() > STALE_MAX {
            for queue in stale_queues {
                self.ledger.note_queue(queue, self.now);
            }
        }
        for owner in stale_members {
            self.ledger.note_member(owner.queue, owner.member, self.now);
        }
        Some((found, passed_over))
    }

    /// Of the first jobs that are alike the first that this replica comes first for, else second, and so on: who
    /// helps another with its jobs then seldom takes the one that the other, or a third, takes just now. Few go before
    /// one that waits (I13).
    fn own_first(&mut self, job: JobKey) -> JobKey {
        if self.peers.others.is_empty() {
            return job;
        }
        let bucket = self.index.jobs.get(&job).map(|job| job.bucket);
        let Some(bucket) = bucket.and_then(|id| self.index.buckets.get(id)) else {
            return job;
        };
        let Some(first) = bucket.jobs.first().copied() else {
            return job;
        };
        let reach = bucket.overtakers.reach(first);
        let within = |place: &&Place| reach.is_none_or(|last| **place <= last);
        let alike = bucket.jobs.iter().take(WINDOW).take_while(within);
        let alike = alike.take_while(|(priority, _)| *priority == first.0);
        let mut best = (usize::MAX, job);
        for (_, other) in alike {
            self.work.entries_visited += 1;
            let rank = self.peers.rank(*other);
            if rank < best.0 {
                best = (rank, *other);
            }
            if rank == 0 {
                break;
            }
        }
        best.1
    }

    /// Whether nothing fitted this host when it was looked at last, and neither it nor the shapes have changed.
    fn still_nothing(&self, host: HostId) -> bool {
        let Some(host) = self.hosts.known.get(host) else {
            return true;
        };
        let Some(nothing) = host.nothing.filter(|nothing| nothing.covers(&host.view)) else {
            return false;
        };
        let listed = |cells: &KeyCells| cells.listed_at <= nothing.listed;
        self.cells_under(host).all(listed)
    }

    /// Finds the ids of a host's keys, if there may be others than when they were looked up last.
    fn look_up_keys(&mut self, host: HostId) {
        let made = self.index.keys_made;
        let Some(host) = self.hosts.known.get_mut(host) else {
            return;
        };
        if host.under.as_ref().is_none_or(|(at, _)| *at != made) {
            let ids = self.index.key_ids(&host.view.keys);
            host.under = Some((made, self.key_sets.get(&*ids)));
        }
    }

    /// What waits under a host's keys, once they are looked up.
    fn cells_under<'a>(&'a self, host: &'a Host) -> impl Iterator<Item = &'a KeyCells> {
        let ids = host.under.iter().flat_map(|(_, ids)| &**ids);
        ids.filter_map(|id| self.index.keys.get(*id))
    }

    fn note_nothing(&mut self, host: HostId) {
        let listed = self.index.listed;
        let Some(host) = self.hosts.known.get_mut(host) else {
            return;
        };
        let view = &host.view;
        let (free_mb, free_cpus) = (view.free_mb, view.free_cpus);
        let (hw_open, shared_open) = (view.hw_open, view.shared_open);
        host.nothing = Some(Nothing {
            listed,
            free_mb,
            free_cpus,
            hw_open,
            shared_open,
        });
    }

    /// Jobs submitted before this may reserve the host if it must pass them over. Looked for once a second.
    fn reserve_before(&mut self, host: HostId) -> Option<u64> {
        let before = self
            .now
            .checked_sub(self.config.reserve_after_ms)
            .filter(|_| self.config.reserve_after_ms > 0)?;
        let host = self.hosts.known.get_mut(host)?;
        if self.now < host.looked_for_large.saturating_add(LARGE_EVERY_MS) {
            return None;
        }
        host.looked_for_large = self.now;
        Some(before)
    }

    fn class_of(&self, job: JobKey) -> Option<u8> {
        let (_, owner) = self.index.shape_of(self.index.jobs.get(&job)?)?;
        Some(self.ledger.queues.get(owner.queue)?.class())
    }

    fn fits_now(&self, job: JobKey, host: HostId) -> bool {
        let shape = self
            .index
            .jobs
            .get(&job)
            .and_then(|job| self.index.shape_of(job));
        let host = self.hosts.known.get(host);
        shape.zip(host).is_some_and(|((shape, owner), host)| {
            let account = Some(self.ledger.account(owner));
            first_obstacle(account, shape, &host.view).is_none()
        })
    }

    /// Who may enter this host, if it is reserved. A reservation that no longer makes sense is dropped here.
    pub(crate) fn limit_on(&mut self, host: HostId) -> Option<Limit> {
        let (class, job) = self
            .reservations
            .iter()
            .find(|(_, r)| r.host == host)
            .map(|(class, r)| (*class, r.job))?;
        let start = self.reserved_start(job, host);
        if start.is_none() {
            self.reservations.remove(&class);
        }
        start.map(|start| Limit { class, job, start })
    }

    /// When a job with a reservation could start on its host; none: the reservation makes no sense.
    pub(crate) fn reserved_start(&self, job: JobKey, host: HostId) -> Option<Start> {
        let (shape, owner) = self.index.shape_of(self.index.jobs.get(&job)?)?;
        let host = self.hosts.known.get(host)?;
        if !self.ledger.may_begin(owner) || !host.view.env.serves(self.ledger.account(owner)) {
            return None;
        }
        start_at(shape, host, &self.runs, &self.ledger, self.now)
    }

    /// Reserves a host for a job that was passed over. False: its class has a reservation, or it would not help.
    fn reserve(&mut self, job: JobKey, host: HostId) -> bool {
        let Some(class) = self.class_of(job) else {
            return false;
        };
        let holds = |known: &Reservation| self.reserved_start(known.job, known.host).is_some();
        if self.reservations.get(&class).is_some_and(holds)
            || self.reserved_start(job, host).is_none()
        {
            return false;
        }
        self.reservations.insert(class, Reservation { job, host });
        true
    }

    /// A job needs no reservation any more: who waits for its host may have it.
    pub(crate) fn unreserve(&mut self, job: JobKey) {
        let Some((class, host)) = self
            .reservations
            .iter()
            .find(|(_, r)| r.job == job)
            .map(|(class, r)| (*class, r.host))
        else {
            return;
        };
        self.reservations.remove(&class);
        self.host_has_room(host);
    }

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
            let job = self.own_first(rank.2.1);
            let Some(offer) = self.best_offer(job, rank.0.0.class()) else {
                continue;
            };
            self.claim(job, offer, decisions);
            order.extend(self.bucket_rank(rank.3).map(Reverse));
        }
    }

    fn bucket_rank(&self, id: BucketId) -> Option<BucketRank> {
        let bucket = self.index.buckets.get(id)?;
        let queue = self.ledger.queue_rank(bucket.owner.queue, self.now)?;
        let member = self.ledger.member_rank(bucket.owner.member, self.now)?;
        Some((queue, member, *bucket.jobs.first()?, id))
    }

    /// The waiting offer for a job: most of its cache directories, then most free memory, then longest waiting.
    fn best_offer(&mut self, key: JobKey, class: u8) -> Option<OfferKey> {
        let job = self.index.jobs.get(&key)?;
        let (shape, owner) = self.index.shape_of(job)?;
        let shape = Arc::clone(shape);
        if shape.gate == Gate::Blocked {
            return None;
        }
        let with_cache = job
            .caches
            .clone()
            .and_then(|dirs| self.best_with_caches(key, class, owner, &shape, &dirs));
        if with_cache.is_some() || matches!(shape.gate, Gate::Affine(_)) {
            return with_cache;
        }
        let account = Some(self.ledger.account(owner));
        let mut best: Option<Slot> = None;
        let mut work = self.work;
        for groups in shape
            .keys
            .iter()
            .filter_map(|name| self.hosts.waiting.get(name))
        {
            for slots in groups.values() {
                work.shapes_checked += 1;
                for slot in slots.iter().take(SLOTS_LOOKED_AT) {
                    work.entries_visited += 1;
                    if best.is_some_and(|best| best <= *slot) {
                        break;
                    }
                    let Some((id, host)) = self.hosts.host_of(slot.2) else {
                        continue;
                    };
                    match first_obstacle(account, &shape, &host.view) {
                        None if self.may_enter(key, class, id) => best = Some(*slot),
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
        best.map(|(_, _, offer)| offer)
    }

    fn best_with_caches(
        &mut self,
        key: JobKey,
        class: u8,
        owner: Owner,
        shape: &Shape,
        dirs: &[Atom],
    ) -> Option<OfferKey> {
        let mut best: Option<(Reverse<usize>, Slot)> = None;
        let mut work = self.work;
        let slots = dirs
            .iter()
            .filter_map(|dir| self.hosts.waiting_with.get(dir));
        for slot in slots.flat_map(|slots| slots.iter().take(SLOTS_LOOKED_AT)) {
            work.entries_visited += 1;
            let Some((id, host)) = self.hosts.host_of(slot.2) else {
                continue;
            };
            let rank = (Reverse(common(dirs, &host.view.caches)), *slot);
            if best.is_some_and(|best| best <= rank) {
                continue;
            }
            work.shapes_checked += 1;
            let account = Some(self.ledger.account(owner));
            let fits = first_obstacle(account, shape, &host.view).is_none();
            if fits && self.may_enter(key, class, id) {
                best = Some(rank);
            }
        }
        self.work = work;
        best.map(|(_, slot)| slot.2)
    }

    /// Whether a reservation of this host lets a job in.
    fn may_enter(&self, key: JobKey, class: u8, id: HostId) -> bool {
        let reserved = self.reservations.iter().find(|(_, r)| r.host == id);
        let (Some((reserved_class, reserved)), Some(host)) = (reserved, self.hosts.known.get(id))
        else {
            return true;
        };
        let Some(start) = self.reserved_start(reserved.job, id) else {
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
