//! Coverage of an engine: pages that were read, and what a find could add. Part of [`Engine`].

use crate::coverage::{Begun, Unknown, just_before};
use crate::engine::Engine;
use crate::event::{Dimension, PulledPage, Reached};
use crate::hosts::Host;
use crate::ids::{OfferKey, Owner};
use crate::index::KeyCells;
use crate::shape::Shape;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Maximum number of pairs of one page whose extent is noted. Finds serve the other pairs.
const REACHED_MAX: usize = 1_024;

/// The best job of a pair for a host.
enum Best {
    /// The job is in memory and needs this much memory, MB; 0 if there is none.
    Known(u32),
    Unknown,
}

impl Engine {
    /// Takes over a pulled page: its jobs are in memory, and its extent is known.
    pub(crate) fn take_page(
        &mut self,
        dimension: &Dimension,
        begun: Option<Begun>,
        page: PulledPage,
    ) {
        let is_of_use = match (dimension, begun) {
            (Dimension::Account(name), Some(begun)) => {
                self.coverage.read(name, begun, &page, self.now)
            }
            _ => false,
        };
        let PulledPage { jobs, reached, .. } = page;
        for facts in jobs {
            self.learn(facts);
        }
        if !is_of_use {
            return;
        }
        for Reached {
            queue,
            account,
            priority,
            key,
        } in reached.into_iter().take(REACHED_MAX)
        {
            let whose = (queue.as_str(), account.as_str());
            let owner = self.ledger.owner_of(&mut self.atoms, whose, self.now);
            if self
                .ledger
                .members
                .get(owner.member)
                .is_some_and(|member| member.tally.is_idle())
            {
                self.ledger.list_idle(owner);
            }
            let mut place = (Reverse(priority), key);
            if let Some(evicted) = begun.and_then(|begun| begun.evicted) {
                let before = just_before(evicted);
                place = place.min((Reverse(before.priority), before.key));
            }
            self.coverage.reached(owner.member, place);
        }
    }

    /// Returns the accounts of which a find for this offer could return better jobs than those in memory.
    pub(crate) fn unknown_to(&self, offer: OfferKey) -> Unknown {
        let mut unknown = Unknown::default();
        let Some((_, host)) = self.hosts.host_of(offer) else {
            return unknown;
        };
        if self.cache.pairs.is_empty() || !self.coverage.hears_news(self.now) {
            return unknown;
        }
        let keys = host.view.keys.iter();
        let cells: Vec<&KeyCells> = keys.filter_map(|key| self.index.under(key)).collect();
        let mut accounts = BTreeSet::new();
        for (queue, account, jobs) in &self.cache.pairs {
            if !host.view.env.serves(account) {
                continue;
            }
            if self.coverage.is_whole(account) {
                continue;
            }
            match self.best_known((queue, account), *jobs, host, &cells) {
                Best::Known(needs_mb) => unknown.needs_mb = unknown.needs_mb.max(needs_mb),
                Best::Unknown => {
                    accounts.insert(account.clone());
                }
            }
        }
        unknown.accounts = Some(accounts);
        unknown
    }

    /// Returns the best job of a pair for a host. The store counted `jobs` jobs of the pair.
    fn best_known(
        &self,
        (queue, account): (&str, &str),
        jobs: u64,
        host: &Host,
        cells: &[&KeyCells],
    ) -> Best {
        let Some(owner) = self.ledger.known_owner(queue, account) else {
            return Best::Unknown;
        };
        let Owner { member, .. } = owner;
        let tally = self.ledger.members.get(member).map(|member| member.tally);
        let here = tally.map_or(0, |tally| tally.waiting.saturating_add(tally.in_flight));
        if here >= jobs || !self.ledger.may_begin(owner) {
            return Best::Known(0);
        }
        // A find does not look at what else a host does, and who keeps a job back.
        let fits = |shape: &Shape| {
            let required = shape.requirements(Some(account));
            required
                .first_unmet_by(&host.view.now(shape.kind))
                .is_none()
        };
        let cells = cells.iter().filter_map(|cells| cells.cells.get(&member));
        let heads = cells.flat_map(|cell| cell.heads.iter());
        let mut known = heads.filter(|head| self.coverage.covers(member, head.place));
        let best = known.find(|head| {
            let shape = self.index.buckets.get(head.bucket);
            let shape = shape.and_then(|bucket| self.index.shapes.get(bucket.shape));
            shape.is_some_and(|entry| fits(&entry.shape))
        });
        best.map_or(Best::Unknown, |head| Best::Known(head.memory_mb))
    }
}
