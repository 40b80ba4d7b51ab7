//! Loaded hosts: what the engine hears of them, and what they did not get. Part of [`Engine`]; `kept_off` has the rule.

use crate::engine::Engine;
use crate::event::HostLoad;
use crate::explain::Reason;
use crate::hosts::Host;
use crate::ids::{BucketId, Millis};
use crate::kept_off::Waits;
use std::collections::BTreeSet;

impl Host {
    /// Returns the reason why it does not get a job, if it is loaded.
    pub(crate) fn why_loaded(&self) -> Option<Reason> {
        let load = self.load.filter(|load| load.loaded)?;
        Some(Reason::Loaded {
            memory_used_percent: load.memory_used_percent,
        })
    }
}

impl Engine {
    /// Returns the reason for the wait of a job that only loaded hosts could run.
    pub(crate) fn all_loaded(&self, job: Waits<'_>, now: u64) -> Option<Reason> {
        let until = self.hosts.kept_off(job, now).map(Millis)?;
        let required = job.shape.requirements(Some(job.account));
        let could = |host: &Host| required.first_unmet_by(&host.view.idle()).is_none();
        let mut loaded = self.hosts.present().filter(|(_, host)| host.is_loaded());
        let is_calm = self.hosts.calm_until(job.account, job.shape, now).is_some();
        let all_loaded = !is_calm && loaded.any(|(_, host)| could(host));
        all_loaded.then_some(Reason::AllLoaded { until })
    }

    /// Compares jobs kept off loaded hosts with waiting offers again when their time has come.
    pub(crate) fn look_at_kept_off(&mut self) {
        while let Some(bucket) = self.kept_off.due(self.now) {
            self.freshen(bucket);
        }
    }

    /// Compares all jobs kept off loaded hosts with them at once, because there are fewer calm hosts.
    pub(crate) fn release_kept_off(&mut self) {
        for bucket in self.kept_off.take() {
            self.freshen(bucket);
        }
    }

    /// Notes jobs that a loaded host did not get.
    pub(crate) fn note_kept_off(&mut self, kept: impl IntoIterator<Item = (BucketId, u64)>) {
        for (bucket, at) in kept {
            self.kept_off.note(bucket, at);
        }
    }

    /// Closes exactly these hosts.
    pub(crate) fn hosts_closed(&mut self, hosts: BTreeSet<String>) {
        self.hosts.closed = hosts;
        self.release_kept_off();
    }

    /// Takes over the load that a host reports between two offers. A host that recovers while it asks is left as it
    /// is: its open offer holds only the room of a loaded host. The next request tells its full room.
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
