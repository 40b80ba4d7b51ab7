//! Calm hosts, by the keys that they offer, and the order of hosts by what goes on there. Part of [`Hosts`].
//!
//! A calm host is one that is not loaded. Where a calm host could run a job, no loaded one gets it.

use crate::event::HostLoad;
use crate::hosts::Host;
use crate::hosts::table::{Hosts, RECENT_MS};
use crate::ids::HostId;
use crate::interner::Atom;
use crate::shape::Shape;

/// Pressures within so many percent are taken for the same: else hosts that are alike would not be found together.
const PRESSURE_STEP: u8 = 10;

/// Whom a job goes to first, of hosts that say how loaded they are: the least. All others are alike.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Crowd {
    loaded: bool,
    /// Of a loaded host, memory in use, percent.
    used_percent: u8,
    jobs: u32,
    /// In steps of [`PRESSURE_STEP`].
    pressure: u8,
}

impl Host {
    pub(crate) fn is_loaded(&self) -> bool {
        self.load.is_some_and(|load| load.loaded)
    }

    /// Its place among hosts that could have the same job.
    pub(crate) fn crowd(&self) -> Crowd {
        let Some(load) = self.load else {
            return Crowd::default();
        };
        Crowd {
            loaded: load.loaded,
            used_percent: if load.loaded {
                load.memory_used_percent
            } else {
                0
            },
            jobs: u32::try_from(self.runs.len()).unwrap_or(u32::MAX),
            pressure: load.cpu_pressure_percent / PRESSURE_STEP,
        }
    }

    /// Until when it may ask again, as far as is known: it asks, has jobs, or did so lately. None: it is gone.
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
    /// How loaded a host is now. Its open offer is listed anew.
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

    /// A host is there among the calm ones, or no more; a loaded one never is.
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

    /// Until when a calm host that could run jobs of this shape, if nothing else ran there, may ask again. None: there is
    /// none.
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
