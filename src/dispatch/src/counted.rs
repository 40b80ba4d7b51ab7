//! The store's last counts, by name.
//!
//! Anybody can invent names, so the counts are bounded: at most [`NAMES_MAX`] accounts and queues each, and the host
//! keys that were asked for. This bounds the work of each count.

use crate::event::{Dimension, DimensionCounts};
use crate::interner::Fixed;
use indexmap::IndexMap;
use std::collections::HashSet;

/// Maximum number of accounts, of queues, and of pairs of both that the store counts. Beyond it, finds take turns
/// through the rest.
pub const NAMES_MAX: u32 = 4_096;

/// Names in order, with their counts.
pub(crate) type Names = IndexMap<String, Counted, Fixed>;

/// Count of one name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    /// Jobs that wait in the store.
    pub jobs: u64,
    /// Count at its last pull.
    pub pulled_at: Option<u64>,
}

/// A counted dimension. Ordered as [`Dimension`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Of<'a> {
    Account(&'a str),
    Queue(&'a str),
    HostKey(&'a str),
}

impl<'a> Of<'a> {
    /// Returns the counted dimension. `None`: the dimension is everything.
    pub(crate) fn new(dimension: &'a Dimension) -> Option<Self> {
        Some(match dimension {
            Dimension::All => return None,
            Dimension::Account(name) => Self::Account(name),
            Dimension::Queue(name) => Self::Queue(name),
            Dimension::HostKey(name) => Self::HostKey(name),
        })
    }

    pub(crate) fn dimension(self) -> Dimension {
        match self {
            Self::Account(name) => Dimension::Account(name.to_owned()),
            Self::Queue(name) => Dimension::Queue(name.to_owned()),
            Self::HostKey(name) => Dimension::HostKey(name.to_owned()),
        }
    }
}

/// The last counts.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub accounts: Names,
    pub queues: Names,
    pub keys: Names,
    /// Host keys that were asked for; `None`: all.
    asked: Option<HashSet<String, Fixed>>,
    /// True if there are more pairs of accounts and queues than were counted.
    pub is_partial: bool,
}

impl Counts {
    pub(crate) fn new(counts: DimensionCounts, before: &Self) -> Self {
        let mut new = Self {
            is_partial: counts.partial,
            asked: counts.host_keys.map(|keys| keys.into_iter().collect()),
            ..Self::default()
        };
        for (dimension, jobs) in counts.by {
            let (names, before, name) = match dimension {
                Dimension::All => continue,
                Dimension::Account(name) => (&mut new.accounts, &before.accounts, name),
                Dimension::Queue(name) => (&mut new.queues, &before.queues, name),
                Dimension::HostKey(name) => (&mut new.keys, &before.keys, name),
            };
            if jobs == 0 {
                continue;
            }
            let pulled_at = before.get(&name).and_then(|counted| counted.pulled_at);
            names.insert(name, Counted { jobs, pulled_at });
        }
        for names in [&mut new.accounts, &mut new.queues, &mut new.keys] {
            if !names.keys().is_sorted() {
                names.sort_unstable_keys();
            }
        }
        new
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.accounts.is_empty() && self.queues.is_empty() && self.keys.is_empty()
    }

    fn names_of(&mut self, of: Of<'_>) -> Option<&mut Counted> {
        match of {
            Of::Account(name) => self.accounts.get_mut(name),
            Of::Queue(name) => self.queues.get_mut(name),
            Of::HostKey(name) => self.keys.get_mut(name),
        }
    }

    /// Notes the present count of a dimension whose pull begins.
    pub(crate) fn pull_begins(&mut self, dimension: &Dimension) {
        let counted = Of::new(dimension).and_then(|of| self.names_of(of));
        if let Some(counted) = counted {
            counted.pulled_at = Some(counted.jobs);
        }
    }

    /// Forgets the pull of a dimension, because the store could not be asked.
    pub(crate) fn pull_failed(&mut self, dimension: &Dimension) {
        let counted = Of::new(dimension).and_then(|of| self.names_of(of));
        if let Some(counted) = counted {
            counted.pulled_at = None;
        }
    }

    /// Forgets all pulls, as if none had begun.
    pub(crate) fn forget_pulls(&mut self) {
        for names in [&mut self.accounts, &mut self.queues, &mut self.keys] {
            for counted in names.values_mut() {
                counted.pulled_at = None;
            }
        }
    }

    /// Returns all counts, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Of<'_>, Counted)> {
        let accounts = self.accounts.iter();
        let accounts = accounts.map(|(name, counted)| (Of::Account(name), *counted));
        let queues = self.queues.iter();
        let queues = queues.map(|(name, counted)| (Of::Queue(name), *counted));
        let keys = self.keys.iter();
        let keys = keys.map(|(name, counted)| (Of::HostKey(name), *counted));
        accounts.chain(queues).chain(keys)
    }

    /// Returns the count under a host key.
    pub(crate) fn under(&self, key: &str) -> u64 {
        self.keys.get(key).map_or(0, |counted| counted.jobs)
    }

    /// Returns true if jobs may wait under a host key: some were counted, or the key was not asked for.
    pub(crate) fn may_wait_under(&self, key: &str) -> bool {
        let asked = || self.asked.as_ref().is_none_or(|asked| asked.contains(key));
        self.is_empty() || self.keys.contains_key(key) || !asked()
    }
}
