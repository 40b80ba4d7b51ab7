//! The table of hosts and their open offers.
//!
//! A host's free room is what it reported, less later claims, and at most what its known jobs leave. Knows no queues.

use crate::event::About;
use crate::hosts::host::{Claimed, Host};
use crate::hosts::load::{Load, Taken};
use crate::hosts::offer::{Arrival, Group, OpenOffer, Slot, Standing};
use crate::ids::{HostId, JobKey, OfferKey};
use crate::interner::{Atom, Fixed, Numbers};
use crate::shape::View;
use indexmap::IndexMap;
use slotmap::SlotMap;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Maximum number of remembered hosts. Beyond it, the host that was unseen for longest and has nothing open or
/// running is forgotten.
const HOSTS_MAX: usize = 65_536;

/// A host that asked within this time may ask again soon enough to be waited for, ms.
pub(crate) const RECENT_MS: u64 = 60_000;

/// Interval at which the last sight of a host is noted, ms. The order of unseen hosts is exact to this interval.
const NOTE_MS: u64 = 60_000;

/// Maximum number of hosts looked at for one cache directory. More hosts do not improve the choice.
const HOLDERS_LOOKED_AT: usize = 32;

/// All hosts and offers.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    pub known: SlotMap<HostId, Host>,
    by_name: HashMap<Atom, HostId, Fixed>,
    pub offers: IndexMap<OfferKey, OpenOffer, Numbers>,
    pub waiting: HashMap<Atom, BTreeMap<Group, BTreeSet<Slot>>, Fixed>,
    pub waiting_with: HashMap<Atom, BTreeSet<Slot>, Fixed>,
    /// Known hosts by cache directory.
    holders: HashMap<Atom, BTreeSet<HostId>, Fixed>,
    /// Offers without claims in flight, by their deadlines.
    pub deadlines: BTreeSet<(u64, OfferKey)>,
    seen: BTreeSet<(u64, HostId)>,
    pub listed: usize,
    /// Number of known hosts that offer each key.
    pub offered: HashMap<Atom, u32, Fixed>,
    /// Those hosts that are not loaded, by key.
    pub calm: HashMap<Atom, BTreeSet<HostId>, Fixed>,
    /// Names of hosts that get no jobs for now.
    pub closed: BTreeSet<String>,
}

impl Hosts {
    /// Returns the id of the host of this name.
    pub(crate) fn id(&self, name: &str) -> Option<HostId> {
        self.by_name.get(name).copied()
    }

    /// Takes over the properties that a host reports, first or changed ones. The host must not be listed.
    pub(crate) fn describe(
        &mut self,
        name: &Atom,
        group: Atom,
        view: View,
        about: Arc<About>,
    ) -> HostId {
        let known = self.id(name);
        if let Some(id) = known {
            self.forget_caches(id);
            self.count_keys(id, false);
        }
        let dirs = view.caches.clone();
        let new = Host {
            about: Some(about),
            ..Host::new(Atom::clone(name), group, view)
        };
        let id = match known.and_then(|id| Some((id, self.known.get_mut(id)?))) {
            Some((id, host)) => {
                host.group = new.group;
                host.view = new.view;
                host.about = new.about;
                host.under = None;
                host.nothing = None;
                id
            }
            None => self.add(new),
        };
        for dir in dirs {
            self.holders.entry(dir).or_default().insert(id);
        }
        self.count_keys(id, true);
        id
    }

    fn add(&mut self, host: Host) -> HostId {
        let name = Atom::clone(&host.name);
        let id = self.known.insert(host);
        self.by_name.insert(name, id);
        id
    }

    /// Opens an offer of a host. The host must be described, and its older offer closed, before.
    pub(crate) fn open(&mut self, key: OfferKey, id: HostId, arrival: &Arrival, now: u64) {
        self.set_load(id, arrival.load);
        let Some(host) = self.known.get_mut(id) else {
            return;
        };
        match host.noted {
            Some(noted) if now.saturating_sub(noted) < NOTE_MS => {}
            noted => {
                if let Some(noted) = noted {
                    self.seen.remove(&(noted, id));
                }
                host.noted = Some(now);
                self.seen.insert((now, id));
            }
        }
        host.offered_mb = arrival.free_mb;
        host.offered_cpus = arrival.free_cpus;
        host.freed = Taken::default();
        let (total_mb, total_cpus) = (arrival.total_mb, arrival.total_cpus);
        if (host.view.total_mb, host.view.total_cpus) != (total_mb, total_cpus) {
            host.nothing = None;
        }
        host.view.total_mb = total_mb;
        host.view.total_cpus = total_cpus;
        host.claimed.retain(|claimed| claimed.in_flight);
        for (job, load) in &arrival.owed {
            let is_known = host.claimed.iter().any(|claimed| claimed.job == *job);
            if host.runs.contains(job) && !is_known {
                host.claimed.push(Claimed {
                    job: *job,
                    shared: load.shared(),
                    in_flight: false,
                });
            }
        }
        let before = host.claimed.iter().map(|claimed| claimed.job).collect();
        host.last_seen = now;
        host.recency = arrival.recency;
        host.open = Some(key);
        host.left = false;
        host.refresh();
        let (jobs_max, waits_until) = (arrival.jobs_max, arrival.waits_until);
        let offer = OpenOffer {
            host: id,
            jobs_max,
            since: now,
            waits_until,
            standing: Standing::Open,
            in_flight: 0,
            committed: Vec::new(),
            before,
            late_tries: 0,
            listed: None,
        };
        self.offers.insert(key, offer);
        self.deadlines.insert((waits_until, key));
        self.make_room();
    }

    /// Adds a job to a host that was not dispatched here.
    pub(crate) fn hold(
        &mut self,
        name: &Atom,
        job: JobKey,
        load: Load,
        unknown: impl FnOnce() -> (Atom, View),
    ) -> HostId {
        let id = self.id(name).unwrap_or_else(|| {
            let (group, view) = unknown();
            self.add(Host::new(Atom::clone(name), group, view))
        });
        // For hosts that report their load, the number of jobs orders their offers.
        let orders = self.known.get(id).filter(|host| host.load.is_some());
        let open = orders.and_then(|host| host.open);
        let listed = open.filter(|open| self.is_listed(*open));
        if let Some(open) = listed {
            self.unlist(open);
        }
        if let Some(host) = self.known.get_mut(id) {
            let noted = *host.noted.get_or_insert(host.last_seen);
            self.seen.insert((noted, id));
            host.runs.insert(job);
            host.enter(load);
        }
        if let Some(open) = listed {
            self.list(open);
        }
        self.make_room();
        id
    }

    /// Adds a job in flight to the host of this offer.
    pub(crate) fn claim(&mut self, offer: OfferKey, job: JobKey, load: Load) {
        let Some(open) = self.offers.get_mut(&offer) else {
            return;
        };
        open.in_flight = open.in_flight.saturating_add(1);
        self.deadlines.remove(&(open.waits_until, offer));
        let id = open.host;
        let listed = open.listed.is_some();
        self.unlist(offer);
        if let Some(host) = self.known.get_mut(id) {
            host.claim(job, load);
        }
        if listed && self.takes_more(offer) {
            self.list(offer);
        }
    }

    /// Settles a claim. `committed`: the host has the job.
    pub(crate) fn settle(
        &mut self,
        offer: OfferKey,
        id: HostId,
        job: (u64, JobKey),
        load: Load,
        committed: bool,
    ) {
        if let Some(open) = self.offers.get_mut(&offer) {
            open.in_flight = open.in_flight.saturating_sub(1);
            if committed {
                open.committed.push(job);
            }
            if open.in_flight == 0 {
                self.deadlines.insert((open.waits_until, offer));
            }
        }
        let Some(host) = self.known.get_mut(id) else {
            return;
        };
        if !committed {
            self.leave(id, job.1, load);
            return;
        }
        let claim = host.claimed.iter_mut().find(|claimed| claimed.job == job.1);
        if let Some(claimed) = claim {
            claimed.in_flight = false;
        }
    }

    /// Removes a job from its host.
    pub(crate) fn leave(&mut self, id: HostId, job: JobKey, load: Load) {
        let Some(host) = self.known.get_mut(id) else {
            return;
        };
        let open = host.open;
        let offer = open.and_then(|open| self.offers.get_mut(&open));
        let listed = offer.is_some_and(|offer| {
            offer.before.retain(|before| *before != job);
            offer.listed.is_some()
        });
        if let Some(open) = open.filter(|_| listed) {
            self.unlist(open);
        }
        if let Some(host) = self.known.get_mut(id) {
            host.leave(job, load);
        }
        if self
            .known
            .get(id)
            .is_some_and(|host| host.left && host.runs.is_empty())
        {
            self.forget(id);
        }
        if let Some(open) = open.filter(|_| listed) {
            self.list(open);
        }
    }

    /// Removes an offer: it is answered, or its host hung up.
    pub(crate) fn close(&mut self, key: OfferKey) -> Option<OpenOffer> {
        self.unlist(key);
        let offer = self.offers.swap_remove(&key)?;
        self.deadlines.remove(&(offer.waits_until, key));
        if let Some(host) = self
            .known
            .get_mut(offer.host)
            .filter(|host| host.open == Some(key))
        {
            host.open = None;
        }
        Some(offer)
    }

    /// Returns the host of an open offer.
    pub(crate) fn host_of(&self, key: OfferKey) -> Option<(HostId, &Host)> {
        let id = self.offers.get(&key)?.host;
        Some((id, self.known.get(id)?))
    }

    /// Returns recently seen hosts that hold a cache directory, a bounded number of them.
    pub(crate) fn recent_holders<'a>(
        &'a self,
        dir: &str,
        now: u64,
    ) -> impl Iterator<Item = &'a Host> + 'a {
        let ids = self
            .holders
            .get(dir)
            .into_iter()
            .flatten()
            .take(HOLDERS_LOOKED_AT);
        ids.filter_map(|id| self.known.get(*id))
            .filter(move |host| host.last_seen.saturating_add(RECENT_MS) >= now)
    }

    /// Returns the hosts that are not gone.
    pub(crate) fn present(&self) -> impl Iterator<Item = (HostId, &Host)> {
        self.known.iter().filter(|(_, host)| !host.left)
    }

    /// Removes a host that is gone.
    pub(crate) fn forget(&mut self, id: HostId) {
        self.forget_caches(id);
        self.count_keys(id, false);
        let Some(host) = self.known.get_mut(id) else {
            return;
        };
        if host.runs.is_empty() {
            if let Some(noted) = host.noted {
                self.seen.remove(&(noted, id));
            }
            self.by_name.remove(&host.name);
            self.known.remove(id);
        } else {
            host.left = true;
            host.about = None;
            host.view.caches = Box::default();
            host.view.keys = Box::default();
            host.under = None;
        }
    }

    fn forget_caches(&mut self, id: HostId) {
        let Some(host) = self.known.get(id) else {
            return;
        };
        for dir in &host.view.caches {
            let Some(holders) = self.holders.get_mut(dir) else {
                continue;
            };
            holders.remove(&id);
            if holders.is_empty() {
                self.holders.remove(dir);
            }
        }
    }

    fn make_room(&mut self) {
        if self.known.len() <= HOSTS_MAX {
            return;
        }
        let idle = |(_, id): &&(u64, HostId)| {
            self.known
                .get(*id)
                .is_some_and(|host| host.open.is_none() && host.runs.is_empty())
        };
        if let Some((_, id)) = self.seen.iter().find(idle).copied() {
            self.forget(id);
        }
    }

    /// Panics if an index disagrees with the hosts. For tests and simulation.
    pub(crate) fn sanity_check(&self) {
        let mut under_keys = 0;
        let mut under_dirs = 0;
        let mut listed = 0;
        for (key, offer) in &self.offers {
            let host = self.known.get(offer.host);
            let Some((group, slot)) = &offer.listed else {
                continue;
            };
            listed += 1;
            let Some(host) = host else {
                panic!("a listed offer without a host")
            };
            assert_eq!(
                (slot.free_mb, slot.key, slot.recency),
                (Reverse(host.view.free_mb), *key, host.recency),
                "listed with old free memory"
            );
            assert!(group.elastic_mb == 0 || group.elastic_mb == host.view.free_mb);
            assert_eq!(group.crowd, host.crowd(), "listed with an old load");
            let view = &host.view;
            assert_eq!(
                (group.free_cpus, group.hw_open, group.shared_open),
                (view.free_cpus, view.hw_open, view.shared_open)
            );
            under_keys += host.view.keys.len();
            under_dirs += host.view.caches.len();
            for name in &host.view.keys {
                assert!(
                    self.waiting
                        .get(name)
                        .and_then(|groups| groups.get(group))
                        .is_some_and(|s| s.contains(slot))
                );
            }
        }
        assert_eq!(listed, self.listed);
        let slots = self
            .waiting
            .values()
            .flat_map(BTreeMap::values)
            .map(BTreeSet::len)
            .sum::<usize>();
        assert_eq!(slots, under_keys, "slots that no offer has");
        assert_eq!(
            self.waiting_with.values().map(BTreeSet::len).sum::<usize>(),
            under_dirs
        );
        self.check_calm();
        assert_eq!(self.seen.len(), self.known.len());
        assert_eq!(self.by_name.len(), self.known.len());
        for (id, host) in &self.known {
            assert_eq!(self.id(&host.name), Some(id));
            let is_noted = |at| at <= host.last_seen && self.seen.contains(&(at, id));
            assert!(host.noted.is_some_and(is_noted), "{} is noted", host.name);
            assert_eq!(host.view.hw_open, host.runs.is_empty());
        }
    }
}
