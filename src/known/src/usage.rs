//! Current usage of the limits of accounts and queues.

use std::collections::BTreeMap;

use fairlead_dispatch::{Limited, Policy};
use parking_lot::Mutex;

/// An hour, ms.
pub const HOUR_MS: u64 = 3_600_000;

/// Over this time hours are summed up, ms.
pub const DAY_MS: u64 = 24 * HOUR_MS;

/// What accounts and queues have, as last counted, of those that have limits.
#[derive(Debug, Default)]
pub struct Usage(Mutex<Used>);

#[derive(Debug, Default)]
pub struct Used {
    pub waiting: BTreeMap<Whose, u64>,
    /// How long testboxes had their jobs within a day, ms.
    pub spent_ms: BTreeMap<Whose, u64>,
    /// What kept jobs of accounts uploaded, bytes.
    pub uploaded: BTreeMap<String, u64>,
    /// What the engine was told last.
    pub told: Option<Policy>,
}

/// An account or a queue.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Whose {
    Account(String),
    Queue(String),
}

impl Whose {
    pub fn words(&self) -> String {
        match self {
            Self::Account(name) => format!("account '{name}'"),
            Self::Queue(name) => format!("queue '{name}'"),
        }
    }
}

impl From<&Limited> for Whose {
    fn from(of: &Limited) -> Self {
        match of {
            Limited::Account(name) => Self::Account(name.clone()),
            Limited::Queue(name) => Self::Queue(name.clone()),
        }
    }
}

impl Usage {
    pub fn with<R>(&self, work: impl FnOnce(&mut Used) -> R) -> R {
        work(&mut self.0.lock())
    }
}
