//! Calm hosts, by the keys that they offer. Part of [`Hosts`].
//!
//! A calm host is one that is not loaded. Where a calm host could run a job, no loaded one gets it.

use crate::event::HostLoad;
use crate::hosts::host::Host;
use crate::hosts::table::{Hosts, RECENT_MS};
use crate::ids::HostId;
use crate::interner::Atom;
use crate::shape::Shape;

impl Host {
    /// Returns the time until which the host may ask again, as far as is known. A host that asks, has jobs, or did so
    /// lately may ask. `None`: the host is gone.
    fn alive_until(&self, now: u64) -> Option<u64> {
        let until = if self.open.is_some() || !self.runs.is_empty() {
            u64::MAX
        } else {
            self.last_seen.max(self.heard).saturating_add(RECENT_MS)
        };
        (!self.left && until >= now).then_some(until)
    }
}

impl Hosts {
    /// Sets the load of a host.
    pub(crate) fn set_load(&mut self, id: HostId, load: Option<HostLoad>) {
        let Some(host) = self.known.get(id).filter(|host| host.load != load) else {
            return;
        };
        let listed = host.open.filter(|open| self.is_listed(*open));
        if let Some(open) = listed {
            self.unlist(open);
        }
        self.count_calm(id, false);
        if let Some(host) = self.known.get_mut(id) {
            host.load = load;
        }
        self.count_calm(id, true);
        if let Some(open) = listed {
            self.list(open);
        }
    }

    /// Adds a host to the calm hosts, or removes it. A loaded host is never among them.
    pub(crate) fn count_calm(&mut self, id: HostId, is_there: bool) {
        let Some(host) = self.known.get(id).filter(|host| !host.is_loaded()) else {
            return;
        };
        for key in &host.view.keys {
            if is_there {
                self.calm.entry(Atom::clone(key)).or_default().insert(id);
                continue;
            }
            let Some(hosts) = self.calm.get_mut(key) else {
                continue;
            };
            hosts.remove(&id);
            if hosts.is_empty() {
                self.calm.remove(key);
            }
        }
    }

    /// Returns the time until which a calm host may ask again that could run jobs of this shape on its own. `None`:
    /// there is no such host.
    pub(crate) fn calm_until(&self, account: &str, shape: &Shape, now: u64) -> Option<u64> {
        let required = shape.requirements(Some(account));
        let ids = shape.keys.iter().filter_map(|key| self.calm.get(key));
        let mut hosts = ids.flatten().filter_map(|id| self.known.get(*id));
        hosts.find_map(|host| {
            let until = host.alive_until(now)?;
            let could = !self.closed.contains(&*host.name)
                && required.first_unmet_by(&host.view.idle()).is_none();
            could.then_some(until)
        })
    }

    /// Panics if the index of calm hosts disagrees with the hosts. For tests and simulation.
    pub(crate) fn check_calm(&self) {
        let mut listed = 0;
        for (id, host) in &self.known {
            for key in host.view.keys.iter().filter(|_| !host.is_loaded()) {
                let is_there = self.calm.get(key).is_some_and(|hosts| hosts.contains(&id));
                assert!(is_there, "{} is calm under {key}", host.name);
                listed += 1;
            }
        }
        let all = self.calm.values().map(std::collections::BTreeSet::len);
        assert_eq!(all.sum::<usize>(), listed, "calm hosts that are not");
    }
}
