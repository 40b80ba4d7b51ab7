//! Offers that wait under each host key, and the keys that hosts offer. Part of [`Hosts`].
//!
//! A waiting offer is listed under each of its keys. Offers are grouped by properties that most hosts share, with the
//! most free memory first. So the host for a new job is found without a look at every host. Machines of pools come with the
//! last used first.

use crate::hosts::offer::{Group, Slot};
use crate::hosts::table::Hosts;
use crate::ids::{HostId, Millis, OfferKey};
use crate::interner::Atom;
use std::cmp::Reverse;
use std::sync::Arc;

impl Hosts {
    /// Lists an offer as waiting: new jobs may be given to it.
    pub(crate) fn list(&mut self, key: OfferKey) {
        let Some(offer) = self
            .offers
            .get_mut(&key)
            .filter(|offer| offer.listed.is_none())
        else {
            return;
        };
        let Some(host) = self.known.get(offer.host) else {
            return;
        };
        let view = &host.view;
        let group = Group {
            env: Arc::clone(&view.env),
            free_cpus: view.free_cpus,
            hw_open: view.hw_open,
            shared_open: view.shared_open,
            crowd: host.crowd(),
            elastic_mb: if host.recency.is_elastic() {
                view.free_mb
            } else {
                0
            },
        };
        let slot = Slot {
            free_mb: Reverse(view.free_mb),
            recency: host.recency,
            since: offer.since,
            key,
        };
        for name in &view.keys {
            self.waiting
                .entry(Atom::clone(name))
                .or_default()
                .entry(group.clone())
                .or_default()
                .insert(slot);
        }
        for dir in &view.caches {
            self.waiting_with
                .entry(Atom::clone(dir))
                .or_default()
                .insert(slot);
        }
        offer.listed = Some((group, slot));
        self.listed = self.listed.saturating_add(1);
    }

    /// Returns true if an offer has room for another job.
    pub(crate) fn takes_more(&self, key: OfferKey) -> bool {
        let offer = self.offers.get(&key).filter(|offer| offer.room() > 0);
        let host = offer.and_then(|offer| self.known.get(offer.host));
        host.is_some_and(|host| host.view.hw_open || host.view.shared_open)
    }

    /// Unlists an offer: it takes no new jobs.
    pub(crate) fn unlist(&mut self, key: OfferKey) {
        let Some(offer) = self.offers.get_mut(&key) else {
            return;
        };
        let Some((group, slot)) = offer.listed.take() else {
            return;
        };
        self.listed = self.listed.saturating_sub(1);
        let Some(host) = self.known.get(offer.host) else {
            return;
        };
        for name in &host.view.keys {
            let Some(groups) = self.waiting.get_mut(name) else {
                continue;
            };
            if let Some(slots) = groups.get_mut(&group) {
                slots.remove(&slot);
                if slots.is_empty() {
                    groups.remove(&group);
                }
            }
            if groups.is_empty() {
                self.waiting.remove(name);
            }
        }
        for dir in &host.view.caches {
            let Some(slots) = self.waiting_with.get_mut(dir) else {
                continue;
            };
            slots.remove(&slot);
            if slots.is_empty() {
                self.waiting_with.remove(dir);
            }
        }
    }

    /// Returns true if an offer is listed.
    pub(crate) fn is_listed(&self, key: OfferKey) -> bool {
        self.offers
            .get(&key)
            .is_some_and(|offer| offer.listed.is_some())
    }

    /// Returns true if a known host offers this key.
    pub(crate) fn offers_key(&self, key: &Atom) -> bool {
        self.offered.contains_key(key)
    }

    /// Counts the keys of a host as offered once more, or once less.
    pub(crate) fn count_keys(&mut self, id: HostId, once_more: bool) {
        self.count_calm(id, once_more);
        let Some(host) = self.known.get(id) else {
            return;
        };
        for key in &host.view.keys {
            let by = self.offered.entry(Atom::clone(key)).or_default();
            if once_more {
                *by = by.saturating_add(1);
            } else {
                *by = by.saturating_sub(1);
            }
            if *by == 0 {
                self.offered.remove(key);
            }
        }
    }

    /// Returns the deadline of the next offer.
    pub(crate) fn next_deadline(&self) -> Option<Millis> {
        self.deadlines.first().map(|(at, _)| Millis(*at))
    }
}
