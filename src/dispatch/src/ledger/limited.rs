//! Accounts with limits, and their usage.

use crate::ids::Owner;
use crate::interner::Atom;
use crate::policy::Allowance;
use std::collections::{BTreeMap, BTreeSet};

/// An account that has limits.
#[derive(Debug, Default)]
pub(crate) struct LimitedAccount {
    pub allowance: Allowance,
    /// Its number of jobs in flight and on hosts.
    pub held: u64,
    /// Its places in queues.
    pub owners: BTreeSet<Owner>,
}

impl LimitedAccount {
    pub(crate) fn admits(&self) -> bool {
        self.allowance.admits(self.held)
    }

    pub(crate) fn is_behind(&self) -> bool {
        self.allowance.is_behind(self.held)
    }

    /// Removes an account that is forgotten in a queue.
    pub(crate) fn leave(&mut self, owner: Owner) {
        self.owners.remove(&owner);
    }
}

/// The accounts that have limits.
pub(crate) type LimitedAccounts = BTreeMap<Atom, LimitedAccount>;
