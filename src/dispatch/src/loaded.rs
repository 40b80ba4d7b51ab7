//! Loaded hosts: what the engine hears of them, and what they did not get. Part of [`Engine`]; `kept_off` has the rule.

use crate::engine::Engine;
use crate::event::HostLoad;
use crate::explain::Reason;
use crate::hosts::Host;
use crate::ids::{BucketId, Millis};
use crate::kept_off::Waits;
use std::collections::BTreeSet;

impl Host {
    /// Why it does not get a job, if it is loaded.
    pub(crate) fn why_loaded(&self) -> Option<Reason> {
        let load = self.load.filter(|load| load.loaded)?;
        Some(Reason::Loaded {
            memory_used_percent: load.memory_used_percent,
        })
    }
}

impl Engine {
    /// What a job waits for that only loaded hosts could run.
    pub(crate) fn all_loaded(&self, job: Waits<'_>, now: u64) -> Option<Reason> {
        let until = self.hosts.kept_off(job, now).map(Millis)?;
        let required = job.shape.requirements(Some(job.account));
        let could = |host: &Host| required.first_unmet_by(&host.view.idle()).is_none();
        let mut loaded = self.hosts.present().filter(|(_, host)| host.is_loaded());
        let is_calm = self.hosts.calm_until(job.account, job.shape, now).is_some();
        let all_loaded = !is_calm && loaded.any(|(_, host)| could(host));
        all_loaded.then_some(Reason::AllLoaded { until })
    }

    /// Jobs that loaded hosts did not get, and whose time has come, are compared with waiting offers again.
    pub(crate) fn look_at_kept_off(&mut self) {
        while let Some(bucket) = self.kept_off.due(self.now) {
            self.freshen(bucket);
        }
    }

    /// There are fewer calm hosts: what loaded ones did not get is compared with them at once.
    pub(crate) fn release_kept_off(&mut self) {
        for bucket in self.kept_off.take() {
            self.freshen(bucket);
        }
    }

    /// A loaded host did not get these.
    pub(crate) fn note_kept_off(&mut self, kept: impl IntoIterator<Item = (BucketId, u64)>) {
        for (bucket, at) in kept {
            self.kept_off.note(bucket, at);
        }
    }

    /// These hosts are closed, and no others.
    pub(crate) fn hosts_closed(&mut self, hosts: BTreeSet<String>) {
        self.hosts.closed = hosts;
        self.release_kept_off();
    }

    /// A host said between two offers how loaded it is. One that recovers while it asks says what it has by the request
    /// that follows: the open one offers what only a loaded host does.
    pub(crate) fn host_load(&mut self, host: &str, load: HostLoad) {
        let Some(id) = self.hosts.id(host) else {
            return;
        };
        let recovers = |host: &Host| host.open.is_some() && host.is_loaded() && !load.loaded;
        if self.hosts.known.get(id).is_some_and(recovers) {
            return;
        }
        self.hosts.set_load(id, Some(load));
        if load.loaded {
            self.release_kept_off();
        }
    }
}
