//! Finds jobs for an offer; `placing` finds offers for a job.

use crate::engine::Engine;
use crate::event::Decision;
use crate::hosts::{Host, Nothing, Standing};
use crate::ids::{HostId, JobKey, OfferKey, QueueId};
use crate::index::KeyCells;
use crate::pick::Picker;
use crate::reserve::{Limit, Reservation, Start, start_at};
use crate::shape::first_obstacle;

/// Maximum number of further tries for an offer whose time is up, after claims for it were refused.
const LATE_TRIES_MAX: u32 = 3;

/// Interval between two looks for jobs that do not fit only because the host is busy, ms.
const LARGE_EVERY_MS: u64 = 1_000;

/// Maximum number of queues with a stale note that one look may pass.
const STALE_MAX: usize = 6;

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

    /// Returns the next job for an offer, if any cached one fits.
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
            // The find may change the conditions of entry, so they are checked again.
            return self.next_for(offer);
        }
        let Some(limit) = limit else {
            let found = found.map(|job| self.background_first(job, id));
            if self.is_loaded(id) {
                // One that is alike may have waited less long.
                return found;
            }
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

    /// Returns the job that goes before the next job of a host: one of a lower class whose queue is due its share of
    /// dispatches.
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

    /// Looks for a host's next job, of all queues or of one. Also returns the job that the host must pass over.
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
            loaded: host.is_loaded().then_some(&self.hosts),
            only,
            cells: self.cells_under(host).collect(),
            work: self.work,
            stale_queues: Vec::new(),
            stale_members: Vec::new(),
            nothing: false,
            passed_over: None,
            kept_off: Vec::new(),
        };
        let found = picker.pick();
        let Picker {
            passed_over,
            nothing,
            work,
            stale_queues,
            stale_members,
            kept_off,
            ..
        } = picker;
        self.work = work;
        self.note_kept_off(kept_off);
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

    /// Returns the first job among equal ones that this replica has the best rank for. A replica that helps another
    /// then seldom claims the job that other replicas claim now. Few jobs go before a waiting one (I13).
    pub(crate) fn own_first(&mut self, job: JobKey) -> JobKey {
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
        let alike = bucket.within_reach();
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

    /// Returns true if no shape fitted this host at the last look, and neither the host nor the shapes have changed.
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

    /// Looks up the ids of a host's keys if keys were made since the last look-up.
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

    /// Returns the jobs that wait under a host's keys, once these are looked up.
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

    /// Returns the time of submission before which jobs may reserve the host if it must pass them over. Looked for
    /// once a second.
    fn reserve_before(&mut self, host: HostId) -> Option<u64> {
        let before = self
            .now
            .checked_sub(self.config.reserve_after_ms)
            .filter(|_| self.config.reserve_after_ms > 0)?;
        let host = self.hosts.known.get_mut(host)?;
        // In one answer a job is passed over as often as another one is found.
        let looked = host.looked_for_large;
        if self.now != looked && self.now < looked.saturating_add(LARGE_EVERY_MS) {
            return None;
        }
        host.looked_for_large = self.now;
        Some(before)
    }

    fn is_loaded(&self, host: HostId) -> bool {
        let host = self.hosts.known.get(host);
        host.is_some_and(Host::is_loaded)
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

    /// Returns the condition of entry to this host, if it is reserved. A reservation that no longer makes sense is
    /// dropped here.
    pub(crate) fn limit_on(&mut self, host: HostId) -> Option<Limit> {
        let mut all = self.reservations.iter();
        let (&class, reserved) = all.find(|(_, r)| r.host == host)?;
        let (job, start) = (reserved.job, self.reserved_start(reserved));
        if start.is_none() {
            self.reservations.remove(&class);
        }
        start.map(|start| Limit { class, job, start })
    }

    /// Returns the time at which a job with a reservation could start on its host; `None`: the reservation makes no
    /// sense.
    pub(crate) fn reserved_start(&self, reserved: &Reservation) -> Option<Start> {
        let job = self.index.jobs.get(&reserved.job)?;
        let (shape, owner) = self.index.shape_of(job)?;
        let host = self.hosts.known.get(reserved.host)?;
        let is_kept = host.is_loaded() || !host.view.env.serves(self.ledger.account(owner));
        if is_kept || !self.ledger.may_begin(owner) {
            return None;
        }
        let known = (&self.runs, &self.ledger);
        start_at(shape, host, reserved.promised, known, self.now)
    }

    /// Reserves a host for a job that was passed over. Returns false if its class has a reservation, or if it would
    /// not help.
    fn reserve(&mut self, job: JobKey, host: HostId) -> bool {
        let Some(class) = self.class_of(job) else {
            return false;
        };
        let known = self.reservations.get(&class);
        if known.is_some_and(|known| self.reserved_start(known).is_some()) {
            return false;
        }
        let mut wanted = Reservation {
            job,
            host,
            promised: u64::MAX,
        };
        let Some(start) = self.reserved_start(&wanted) else {
            return false;
        };
        // Half of all runs take longer than the mean.
        let wait_ms = start.at.saturating_sub(self.now);
        wanted.promised = start.at.saturating_add(wait_ms);
        self.reservations.insert(class, wanted);
        true
    }

    /// Drops the reservation of a job. Waiting offers of the host may then get other jobs.
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
}
