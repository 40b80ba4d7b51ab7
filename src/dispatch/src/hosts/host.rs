//! A host's free room: what it reported, less later claims, and at most what its known jobs leave.

use crate::event::{About, HostLoad, Kind};
use crate::hosts::crowd::Crowd;
use crate::hosts::load::{Load, Taken};
use crate::hosts::offer::{Nothing, Recency};
use crate::ids::{JobKey, KeyId, OfferKey};
use crate::interner::Atom;
use crate::requirement::CPUS_UNCHECKED;
use crate::shape::View;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A host that has asked, or has jobs.
#[derive(Debug)]
pub(crate) struct Host {
    pub name: Atom,
    pub group: Atom,
    pub view: View,
    pub last_seen: u64,
    /// Where it stands in `Hosts::seen`: when it was last seen, at most `NOTE_MS` ago.
    pub noted: Option<u64>,
    /// When jobs that only others' memory keeps from it were looked for.
    pub looked_for_large: u64,
    pub open: Option<OfferKey>,
    /// It is gone, but jobs of it are not ended yet.
    pub left: bool,
    /// Jobs in flight to it and running on it.
    pub runs: BTreeSet<JobKey>,
    /// What it said of itself; none: nothing yet, or it left.
    pub about: Option<Arc<About>>,
    /// Those of its keys that something waited under, when so many keys had been made.
    pub under: Option<(u64, Arc<[KeyId]>)>,
    /// When nothing fitted, if that was so the last time.
    pub nothing: Option<Nothing>,
    /// Free memory as its open offer said.
    pub offered_mb: u32,
    /// Free CPUs as its open offer said.
    pub offered_cpus: u32,
    /// Taken from that by jobs the host did not know of when it offered: in flight then, or claimed since.
    pub claimed: Vec<Claimed>,
    /// Given back by jobs that ended since its open offer, which counts them: its next offer will have it.
    pub freed: Taken,
    /// What vm and dc jobs in flight and running take, as far as is known here.
    pub used: Taken,
    pub hw_jobs: u32,
    /// When it stopped asking or had a job end last: it asks again soon.
    pub heard: u64,
    /// How loaded it is, as it said last; none: it does not say.
    pub load: Option<HostLoad>,
    /// When its last job ended, as its open offer said.
    pub recency: Recency,
}

/// A job that its host's open offer does not count.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claimed {
    pub job: JobKey,
    pub shared: Taken,
    /// Its claim is not settled.
    pub in_flight: bool,
}

impl Host {
    pub(crate) fn new(name: Atom, group: Atom, view: View) -> Self {
        let (offered_mb, offered_cpus) = (view.free_mb, view.free_cpus);
        Self {
            name,
            group,
            view,
            last_seen: 0,
            noted: None,
            looked_for_large: 0,
            open: None,
            left: false,
            runs: BTreeSet::new(),
            about: None,
            under: None,
            nothing: None,
            offered_mb,
            offered_cpus,
            claimed: Vec::new(),
            freed: Taken::default(),
            used: Taken::default(),
            hw_jobs: 0,
            heard: 0,
            load: None,
            recency: Recency::default(),
        }
    }

    pub(crate) fn is_loaded(&self) -> bool {
        self.load.is_some_and(|load| load.loaded)
    }

    /// Its place among hosts that could have the same job. What an idle machine of a pool tells of its CPUs its last job has
    /// left: that does not keep the next one off.
    pub(crate) fn crowd(&self) -> Crowd {
        if self.recency.is_elastic() && self.runs.is_empty() && !self.is_loaded() {
            return Crowd::default();
        }
        let of = |load| Crowd::of(load, self.runs.len());
        self.load.map(of).unwrap_or_default()
    }

    pub(crate) fn refresh(&mut self) {
        (self.view.free_mb, self.view.free_cpus) = self.free(Taken::default());
        self.view.hw_open = self.runs.is_empty();
        self.view.shared_open = self.hw_jobs == 0;
    }

    /// Its room when it will have told that jobs ended since it offered.
    pub(crate) fn view_soon(&self) -> View {
        let mut soon = self.view.clone();
        (soon.free_mb, soon.free_cpus) = self.free(self.freed);
        soon
    }

    /// Free memory and CPUs with so much more than it offered.
    fn free(&self, more: Taken) -> (u32, u32) {
        let of = |memory_mb: u32, cpus: u32| Taken {
            memory_mb: memory_mb.into(),
            cpus: cpus.into(),
        };
        let claimed = self.claimed.iter().map(|claimed| claimed.shared);
        let claimed = claimed.fold(Taken::default(), Taken::plus);
        let offered = of(self.offered_mb, self.offered_cpus);
        let offered = offered.plus(more).minus(claimed);
        let total_cpus = self.view.total_cpus;
        let left = of(self.view.total_mb, total_cpus).minus(self.used);
        let less = |a: u64, b: u64| u32::try_from(a.min(b)).unwrap_or(u32::MAX);
        let cpus = match total_cpus {
            CPUS_UNCHECKED => CPUS_UNCHECKED,
            _ => less(offered.cpus, left.cpus),
        };
        (less(offered.memory_mb, left.memory_mb), cpus)
    }

    /// A job is in flight to it.
    pub(crate) fn claim(&mut self, job: JobKey, load: Load) {
        self.runs.insert(job);
        self.claimed.push(Claimed {
            job,
            shared: load.shared(),
            in_flight: true,
        });
        self.enter(load);
    }

    pub(crate) fn enter(&mut self, load: Load) {
        self.used = self.used.plus(load.shared());
        self.hw_jobs = self
            .hw_jobs
            .saturating_add(u32::from(load.kind == Kind::Hw));
        self.refresh();
    }

    pub(crate) fn leave(&mut self, job: JobKey, load: Load) {
        self.runs.remove(&job);
        let claims = self.claimed.len();
        self.claimed.retain(|claimed| claimed.job != job);
        if self.claimed.len() == claims {
            self.freed = self.freed.plus(load.shared());
        }
        self.used = self.used.minus(load.shared());
        self.hw_jobs = self
            .hw_jobs
            .saturating_sub(u32::from(load.kind == Kind::Hw));
        self.refresh();
    }
}
