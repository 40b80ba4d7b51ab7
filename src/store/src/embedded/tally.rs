//! Counts of waiting jobs, kept in memory beside the database, so that reading them is cheap at any size.
//!
//! Invariant: after each commit they equal a count of the tables. After a commit with an unknown outcome they are
//! dropped and counted again.

use std::{
    borrow::Borrow,
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use rusqlite::Connection;

use super::{numbers::unsigned, waiting::WaitRow};
use crate::{CountOf, Counts};

/// Counts by name, without zeros.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tally {
    total: u64,
    accounts: BTreeMap<String, u64>,
    queues: BTreeMap<String, u64>,
    /// By queue and account.
    pairs: BTreeMap<(String, String), u64>,
    host_keys: BTreeMap<String, u64>,
}

/// Change of one waiting job.
#[derive(Debug)]
pub(super) enum Change {
    /// The job waits now.
    Came(WaitRow),
    /// The job waits no longer.
    Left(WaitRow),
}

impl Tally {
    /// Counts the tables: some 100 ms a million waiting jobs.
    pub(super) fn count(conn: &Connection) -> rusqlite::Result<Self> {
        let mut tally = Self {
            host_keys: conn
                .prepare("SELECT host_key, COUNT(*) FROM wait_keys GROUP BY host_key")?
                .query_map([], |row| Ok((row.get(0)?, unsigned(row, 1)?)))?
                .collect::<rusqlite::Result<_>>()?,
            ..Self::default()
        };
        for pairs in [
            "SELECT account, account, COUNT(*) FROM jobs INDEXED BY wait_own
                WHERE waiting = 1 AND queue = account GROUP BY account",
            "SELECT queue, account, COUNT(*) FROM jobs INDEXED BY wait_queue
                WHERE waiting = 1 AND queue <> account GROUP BY queue, account",
        ] {
            let mut pairs = conn.prepare(pairs)?;
            let mut rows = pairs.query([])?;
            while let Some(row) = rows.next()? {
                let (queue, account, n) = (row.get(0)?, row.get(1)?, unsigned(row, 2)?);
                tally.add(queue, account, n);
            }
        }
        Ok(tally)
    }

    fn add(&mut self, queue: String, account: String, n: u64) {
        self.total += n;
        *self.accounts.entry(account.clone()).or_default() += n;
        *self.queues.entry(queue.clone()).or_default() += n;
        *self.pairs.entry((queue, account)).or_default() += n;
    }

    /// Applies the changes of one transaction.
    pub(super) fn apply(&mut self, changes: &[Change]) {
        for change in changes {
            match change {
                Change::Came(row) => self.came(row),
                Change::Left(row) => self.left(row),
            }
        }
    }

    fn came(&mut self, row: &WaitRow) {
        self.add(row.queue.clone(), row.account.clone(), 1);
        for key in &row.host_keys {
            *self.host_keys.entry(key.clone()).or_default() += 1;
        }
    }

    fn left(&mut self, row: &WaitRow) {
        self.total = self.total.saturating_sub(1);
        lower(&mut self.accounts, &row.account);
        lower(&mut self.queues, &row.queue);
        lower(&mut self.pairs, &(row.queue.clone(), row.account.clone()));
        for key in &row.host_keys {
            lower(&mut self.host_keys, key);
        }
    }

    /// Returns the counts in the form of the trait.
    pub(super) fn to_counts(&self, of: &CountOf) -> Counts {
        let names_max = of.names_max.unwrap_or(usize::MAX);
        let partial = self.pairs.len() > names_max;
        let pairs = if partial { None } else { Some(&self.pairs) };
        let pairs = pairs.into_iter().flatten();
        let host_keys = match &of.host_keys {
            None => largest(&self.host_keys, usize::MAX),
            Some(keys) => {
                let keys: BTreeSet<&String> = keys.iter().collect();
                let counted = |key: &String| Some((key.clone(), *self.host_keys.get(key)?));
                keys.into_iter().filter_map(counted).collect()
            }
        };
        Counts {
            total: self.total,
            accounts: largest(&self.accounts, names_max),
            queues: largest(&self.queues, names_max),
            pairs: pairs
                .map(|((queue, account), n)| (queue.clone(), account.clone(), *n))
                .collect(),
            host_keys,
            partial,
        }
    }
}

/// Returns the names with most jobs, sorted by name.
fn largest(tally: &BTreeMap<String, u64>, most: usize) -> Vec<(String, u64)> {
    let mut all: Vec<(&String, u64)> = tally.iter().map(|(name, n)| (name, *n)).collect();
    if all.len() > most {
        all.select_nth_unstable_by_key(most, |(_, n)| Reverse(*n));
        all.truncate(most);
        all.sort_unstable();
    }
    all.into_iter().map(|(name, n)| (name.clone(), n)).collect()
}

fn lower<K: Ord + Borrow<Q>, Q: Ord + ?Sized>(map: &mut BTreeMap<K, u64>, name: &Q) {
    if let Some(n) = map.get_mut(name) {
        *n -= 1;
        if *n == 0 {
            map.remove(name);
        }
    }
}
