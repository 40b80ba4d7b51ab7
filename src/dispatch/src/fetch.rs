//! The partial cache: decides when to find (C2, C3).
//!
//! It has no effect while all jobs are in memory. Otherwise an offer is served after a find for its keys. The find is
//! skipped if the offer's best jobs are known, or if it takes too long.

use crate::cache::{Ended, FINDS_WINDOW_MS, Finding, PATIENCE_MS, Wanted};
use crate::engine::Engine;
use crate::event::{Decision, FindPlace};
use crate::hosts::{OpenOffer, Standing};
use crate::ids::OfferKey;
use std::sync::Arc;

impl Engine {
    /// Serves the offers that waited for finds, because all jobs are in memory.
    pub(crate) fn release_all(&mut self) {
        self.cache.to_find.clear();
        let mut gated = std::mem::take(&mut self.cache.gated);
        self.dirty.append(&mut gated);
    }

    /// Returns the query of a find for this offer; `None`: the store has nothing under its keys.
    fn wanted(&self, offer: OfferKey) -> Option<Wanted> {
        let view = &self.hosts.host_of(offer)?.1.view;
        let keys = view
            .keys
            .iter()
            .filter(|key| self.cache.counts.may_wait_under(key));
        let keys: Box<[_]> = keys.cloned().collect();
        (!keys.is_empty()).then_some(Wanted {
            keys,
            env: Arc::clone(&view.env),
            free_mb: view.free_mb,
            total_mb: view.total_mb,
            free_cpus: view.free_cpus,
            total_cpus: view.total_cpus,
        })
    }

    /// Returns true if an offer may be served from what is in memory. If not, a find is queued.
    pub(crate) fn may_serve(&mut self, offer: OfferKey) -> bool {
        if self.cache.is_complete() {
            return true;
        }
        let Some(open) = self.hosts.offers.get(&offer) else {
            return true;
        };
        if !open.is_untouched() {
            // A claim of it was refused: the next one is tried at once.
            return true;
        }
        let since = open.since;
        let waited_enough =
            self.now >= since.saturating_add(PATIENCE_MS) || self.now >= open.waits_until;
        let Some(wanted) = self.wanted(offer) else {
            return true;
        };
        if self.cache.is_served(&wanted, self.now) || self.found_nothing(&wanted) {
            return true;
        }
        let under_way = self
            .cache
            .finding
            .values_mut()
            .find(|finding| finding.wanted.serves(&wanted, 0));
        if let Some(finding) = under_way {
            if !finding.followers.contains(&offer) {
                finding.followers.push(offer);
            }
        } else {
            self.cache.to_find.insert((since, offer));
        }
        if waited_enough {
            self.cache.gated.remove(&(since, offer));
        } else {
            self.cache.gated.insert((since, offer));
            self.hosts.unlist(offer);
        }
        waited_enough
    }

    /// Handles an offer that was served, and notes if there was nothing for it.
    pub(crate) fn served(&mut self, offer: OfferKey) {
        let Some(open) = self.hosts.offers.get(&offer) else {
            return;
        };
        let (place, untouched) = ((open.since, offer), open.is_untouched());
        self.cache.gated.remove(&place);
        if !untouched {
            self.cache.to_find.remove(&place);
            return;
        }
        if self.cache.is_complete() {
            return;
        }
        let Some(wanted) = self.wanted(offer) else {
            return;
        };
        if let Some(ended) = self.cache.fresh(&wanted, self.now) {
            if ended.goes_on {
                // It looked at some of many accounts: the next ones are looked at now.
                self.cache.found.remove(&wanted);
                self.cache.to_find.insert(place);
                return;
            }
            let in_vain = ended.clone();
            self.cache.in_vain.insert(wanted, in_vain);
        } else if self.cache.is_served(&wanted, self.now) && !self.found_nothing(&wanted) {
            // Another's find brought nothing that fits.
            self.cache.to_find.insert(place);
        }
    }

    /// Removes an offer.
    pub(crate) fn drop_offer(&mut self, offer: OfferKey) -> Option<OpenOffer> {
        let open = self.hosts.close(offer)?;
        if let Some(host) = self.hosts.known.get_mut(open.host) {
            host.heard = self.now;
        }
        self.cache.gated.remove(&(open.since, offer));
        self.cache.to_find.remove(&(open.since, offer));
        Some(open)
    }

    /// Returns true if the last find of this query returned nothing that fits, and the counts have not changed since.
    fn found_nothing(&self, wanted: &Wanted) -> bool {
        self.cache
            .in_vain
            .get(wanted)
            .is_some_and(|ended| ended.counted == self.cache.under_keys(wanted))
    }

    /// Begins the finds that may begin now, longest waiting offers first.
    pub(crate) fn begin_finds(&mut self, decisions: &mut Vec<Decision>) {
        while self
            .cache
            .begun
            .front()
            .is_some_and(|at| at.saturating_add(FINDS_WINDOW_MS) <= self.now)
        {
            self.cache.begun.pop_front();
        }
        while self.finds_left() > 0 {
            let Some((since, offer)) = self.cache.to_find.pop_first() else {
                return;
            };
            let Some(wanted) = self.wanted(offer) else {
                self.dirty.insert((since, offer));
                continue;
            };
            if self.cache.fresh(&wanted, self.now).is_some() {
                self.dirty.insert((since, offer));
            } else if let Some(finding) = self
                .cache
                .finding
                .values_mut()
                .find(|finding| finding.wanted == wanted)
            {
                finding.followers.push(offer);
            } else {
                self.begin_find((since, offer), wanted, decisions);
            }
        }
    }

    /// Asks the store for jobs that may be better than those in memory, if there can be any.
    fn begin_find(
        &mut self,
        (since, offer): (u64, OfferKey),
        wanted: Wanted,
        decisions: &mut Vec<Decision>,
    ) {
        let unknown = self.unknown_to(offer);
        let (at, needs_mb) = (self.now, unknown.needs_mb);
        let counted = self.cache.under_keys(&wanted);
        if unknown.is_nothing() {
            let ended = Ended {
                at,
                needs_mb,
                counted,
                goes_on: false,
            };
            self.cache.found.insert(wanted, ended);
            self.dirty.insert((since, offer));
            return;
        }
        self.cache.begun.push_back(at);
        let followers = Vec::new();
        let after = self.cache.turns.get(&wanted.keys).cloned();
        let finding = Finding {
            wanted,
            followers,
            needs_mb,
            counted,
        };
        self.cache.finding.insert(offer, finding);
        decisions.push(Decision::Find {
            offer,
            limit: self.cache.find_limit(),
            accounts: unknown.names(),
            pairs_max: self.cache.find_pairs(),
            after,
        });
    }

    fn finds_left(&self) -> usize {
        let most = usize::try_from(self.config.finds_per_second_max).unwrap_or(usize::MAX);
        most.saturating_sub(self.cache.begun.len())
    }

    /// Ends a find and serves the offers that waited for it.
    pub(crate) fn find_ended(&mut self, leader: OfferKey, needs_mb: u32, next: Option<FindPlace>) {
        let Some(finding) = self.cache.finding.remove(&leader) else {
            return;
        };
        let Finding {
            wanted,
            followers,
            needs_mb: left_out_mb,
            counted,
        } = finding;
        let ended = Ended {
            at: self.now,
            needs_mb: needs_mb.max(left_out_mb),
            counted,
            goes_on: next.is_some(),
        };
        self.cache.turn_ended(&wanted, next);
        self.cache.found.insert(wanted.clone(), ended);
        self.cache.in_vain.remove(&wanted);
        for offer in std::iter::once(leader).chain(followers) {
            let Some(open) = self.hosts.offers.get(&offer) else {
                continue;
            };
            if open.standing == Standing::Open && open.is_untouched() {
                self.dirty.insert((open.since, offer));
            }
        }
    }

    /// Queues finds for waiting offers if the store has jobs under their keys and no find was asked for yet.
    pub(crate) fn find_for_the_idle(&mut self) {
        let waiting = self
            .hosts
            .offers
            .iter()
            .filter(|(_, open)| open.listed.is_some());
        let waiting: Vec<(u64, OfferKey)> = waiting.map(|(key, open)| (open.since, *key)).collect();
        for (since, offer) in waiting {
            let Some(wanted) = self.wanted(offer) else {
                continue;
            };
            if !self.found_nothing(&wanted)
                && !self
                    .cache
                    .finding
                    .values()
                    .any(|finding| finding.wanted == wanted)
            {
                self.cache.to_find.insert((since, offer));
            }
        }
    }

    /// Serves offers from memory that waited long enough for a find, or can wait no longer.
    pub(crate) fn serve_impatient(&mut self) {
        let impatient =
            |(since, _): &&(u64, OfferKey)| since.saturating_add(PATIENCE_MS) <= self.now;
        let mut due: Vec<(u64, OfferKey)> = self
            .cache
            .gated
            .iter()
            .take_while(impatient)
            .copied()
            .collect();
        if !self.cache.gated.is_empty() {
            let late = self
                .hosts
                .deadlines
                .iter()
                .take_while(|(at, _)| *at <= self.now);
            let late = late.filter_map(|(_, key)| Some((self.hosts.offers.get(key)?.since, *key)));
            due.extend(late.filter(|place| self.cache.gated.contains(place)));
        }
        self.dirty.extend(due);
    }

    /// Returns the time of the next due action here.
    pub(crate) fn next_fetch(&self) -> Option<u64> {
        let patience = self
            .cache
            .gated
            .first()
            .map(|(since, _)| since.saturating_add(PATIENCE_MS));
        let blocked = !self.cache.to_find.is_empty() && self.finds_left() == 0;
        let begun = self.cache.begun.front().filter(|_| blocked);
        let turn = begun.map(|at| at.saturating_add(FINDS_WINDOW_MS));
        patience
            .into_iter()
            .chain(turn)
            .filter(|at| *at > self.now)
            .min()
    }
}
