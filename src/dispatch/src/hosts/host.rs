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
    /// Its time in `Hosts::seen`: when it was last seen, at most `NOTE_MS` ago.
    pub noted: Option<u64>,
    /// Time of the last look for jobs that do not fit only because other jobs use the memory.
    pub looked_for_large: u64,
    pub open: Option<OfferKey>,
    /// True if it is gone while jobs of it have not ended yet.
    pub left: bool,
    /// Jobs in flight to it and running on it.
    pub runs: BTreeSet<JobKey>,
    /// Properties that it reported; `None`: none yet, or it left.
    pub about: Option<Arc<About>>,
    /// Its keys that jobs waited under, and the value of `keys_made` at that look-up.
    pub under: Option<(u64, Arc<[KeyId]>)>,
    /// State in which no shape fitted the host, if the last look found none.
    pub nothing: Option<Nothing>,
    /// Free memory as its open offer said.
    pub offered_mb: u32,
    /// Free CPUs as its open offer said.
    pub offered_cpus: u32,
    /// Jobs that its open offer does not count, because the host did not know them: in flight then, or claimed since.
    pub claimed: Vec<Claimed>,
    /// Resources of jobs that ended since its open offer. That offer still counts them as used; the next one will
    /// not.
    pub freed: Taken,
    /// Resources that vm and dc jobs in flight and running take, as far as is known here.
    pub used: Taken,
    pub hw_jobs: u32,
    /// Last time at which it stopped asking or a job on it ended: it asks again soon.
    pub heard: u64,
    /// Load in its last report; `None`: it reports none.
    pub load: Option<HostLoad>,
    /// End of its last job, as in its open offer.
    pub recency: Recency,
}

/// A job that its host's open offer does not count.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claimed {
    pub job: JobKey,
    pub shared: Taken,
    /// True while its claim is not settled.
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

    /// Returns its place among hosts that could run the same job. The reported CPU pressure of an idle pool machine
    /// comes from its last job. So that pressure does not count.
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

    /// Returns its room after the next offer, which will count the jobs that ended since this one.
    pub(crate) fn view_soon(&self) -> View {
        let mut soon = self.view.clone();
        (soon.free_mb, soon.free_cpus) = self.free(self.freed);
        soon
    }

    /// Returns free memory and CPUs, with `more` added to the offer.
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

    /// Adds a job in flight to it.
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
