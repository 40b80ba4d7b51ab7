//! Accounts over all queues: the number of their waiting jobs, and the idle ones.

use crate::ids::{AccountId, Owner};
use crate::interner::{Atom, Fixed};
use slotmap::SlotMap;
use std::collections::{HashMap, VecDeque};

/// Numbers of waiting jobs in memory by account, over all queues.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    pub accounts: SlotMap<AccountId, Account>,
    pub by_name: HashMap<Atom, AccountId, Fixed>,
    /// Number of accounts with waiting jobs.
    pub count: usize,
}

/// One account over all queues.
#[derive(Debug)]
pub(crate) struct Account {
    pub waiting: u64,
    /// Number of queues in which it is known.
    pub queues: u32,
}

impl Waiting {
    /// Adds an account that is new in a queue.
    pub(crate) fn join(&mut self, name: &Atom) -> AccountId {
        let accounts = &mut self.accounts;
        let new = || {
            accounts.insert(Account {
                waiting: 0,
                queues: 0,
            })
        };
        let id = *self.by_name.entry(Atom::clone(name)).or_insert_with(new);
        if let Some(account) = self.accounts.get_mut(id) {
            account.queues = account.queues.saturating_add(1);
        }
        id
    }

    /// Removes an account that is forgotten in a queue.
    pub(crate) fn leave(&mut self, name: &Atom, id: AccountId) {
        let Some(account) = self.accounts.get_mut(id) else {
            return;
        };
        account.queues = account.queues.saturating_sub(1);
        if account.queues == 0 {
            self.accounts.remove(id);
            self.by_name.remove(name);
        }
    }

    /// Counts more or fewer waiting jobs of an account in one of its queues.
    pub(crate) fn count(&mut self, id: AccountId, before: u64, after: u64) {
        let Some(account) = self.accounts.get_mut(id).filter(|_| before != after) else {
            return;
        };
        let waited = account.waiting > 0;
        account.waiting = account.waiting.saturating_add(after).saturating_sub(before);
        let waits = account.waiting > 0;
        self.count = (self.count + usize::from(waits)).saturating_sub(usize::from(waited));
    }

    /// Returns the number of waiting jobs of this account in memory.
    pub(crate) fn of(&self, name: &str) -> u64 {
        let id = self.by_name.get(name);
        id.map_or(0, |id| self.of_id(*id))
    }

    /// Same as [`Self::of`], by id.
    pub(crate) fn of_id(&self, id: AccountId) -> u64 {
        self.accounts.get(id).map_or(0, |account| account.waiting)
    }

    /// Returns the number of known accounts.
    pub(crate) fn len(&self) -> usize {
        self.accounts.len()
    }
}

/// Accounts in queues that had no jobs waiting or on hosts when they were listed, longest idle first.
pub(crate) type Idle = VecDeque<Owner>;
