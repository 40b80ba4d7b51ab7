//! A host's free room: what it reported, less later claims, and at most what its known jobs leave.

use crate::event::{About, Kind};
use crate::hosts::load::Load;
use crate::hosts::offer::Nothing;
use crate::ids::{JobKey, KeyId, OfferKey};
use crate::interner::Atom;
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
    /// Taken from that by jobs the host did not know of when it offered: in flight then, or claimed since.
    pub claimed: Vec<Claimed>,
    /// Memory of vm and dc jobs in flight and running, as far as is known here.
    pub used_mb: u64,
    pub hw_jobs: u32,
}

/// A job that its host's open offer does not count.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claimed {
    pub job: JobKey,
    pub shared_mb: u64,
    /// Its claim is not settled.
    pub in_flight: bool,
}

impl Host {
    pub(crate) fn new(name: Atom, group: Atom, view: View) -> Self {
        let offered_mb = view.free_mb;
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
            claimed: Vec::new(),
            used_mb: 0,
            hw_jobs: 0,
        }
    }

    pub(crate) fn refresh(&mut self) {
        let left = |of: u32, taken: u64| u64::from(of).saturating_sub(taken);
        let claimed_mb = self.claimed.iter().map(|claimed| claimed.shared_mb).sum();
        let free = left(self.offered_mb, claimed_mb).min(left(self.view.total_mb, self.used_mb));
        self.view.free_mb = u32::try_from(free).unwrap_or(u32::MAX);
        self.view.hw_open = self.runs.is_empty();
        self.view.shared_open = self.hw_jobs == 0;
    }

    /// A job is in flight to it.
    pub(crate) fn claim(&mut self, job: JobKey, load: Load) {
        self.runs.insert(job);
        self.claimed.push(Claimed {
            job,
            shared_mb: load.shared_mb(),
            in_flight: true,
        });
        self.enter(load);
    }

    pub(crate) fn enter(&mut self, load: Load) {
        self.used_mb = self.used_mb.saturating_add(load.shared_mb());
        self.hw_jobs = self
            .hw_jobs
            .saturating_add(u32::from(load.kind == Kind::Hw));
        self.refresh();
    }

    pub(crate) fn leave(&mut self, job: JobKey, load: Load) {
        self.runs.remove(&job);
        self.claimed.retain(|claimed| claimed.job != job);
        self.used_mb = self.used_mb.saturating_sub(load.shared_mb());
        self.hw_jobs = self
            .hw_jobs
            .saturating_sub(u32::from(load.kind == Kind::Hw));
        self.refresh();
    }
}
