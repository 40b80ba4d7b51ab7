//! Current usage of the limits of accounts and queues.

use std::collections::BTreeMap;

use fairlead_dispatch::{Limited, Policy};
use parking_lot::Mutex;

/// Length of an hour, ms.
pub const HOUR_MS: u64 = 3_600_000;

/// Period over which hours are summed up, ms.
pub const DAY_MS: u64 = 24 * HOUR_MS;

/// Use by accounts and queues with limits, as last counted.
#[derive(Debug, Default)]
pub struct Usage(Mutex<Used>);

#[derive(Debug, Default)]
pub struct Used {
    pub waiting: BTreeMap<Whose, u64>,
    /// Testbox time of their jobs within a day, ms.
    pub spent_ms: BTreeMap<Whose, u64>,
    /// Bytes uploaded by kept jobs, by account.
    pub uploaded: BTreeMap<String, u64>,
    /// Policy that the engine got last.
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
