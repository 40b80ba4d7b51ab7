//! Which waiting jobs may go to hosts at all: by pauses, and by limits of accounts and queues.

use crate::engine::Engine;
use crate::labels::place_of;
use crate::policy::{Allowance, Policy};
use std::collections::BTreeMap;

/// Copy of the pauses and limits that an engine knows, made at one moment. An admitted job counts for the jobs behind
/// it. The default admits all.
#[derive(Debug, Clone, Default)]
pub struct Admission {
    policy: Policy,
    /// Jobs in flight and on hosts, of accounts with limits.
    accounts: BTreeMap<String, u64>,
    /// Jobs in flight and on hosts, of queues with limits.
    queues: BTreeMap<String, u64>,
}

impl Engine {
    /// Returns a copy of the pauses and limits. It tells which waiting jobs the engine would dispatch now if hosts
    /// were free.
    pub fn admission(&self) -> Admission {
        let ledger = &self.ledger;
        let accounts = ledger.limited.iter();
        let held = |queue: &String| {
            let known = ledger.by_name.get(queue.as_str());
            let known = known.and_then(|id| ledger.queues.get(*id));
            known.map_or(0, |queue| queue.tally.held())
        };
        let queues = ledger.policy.queue_limits.keys();
        Admission {
            policy: ledger.policy.clone(),
            accounts: accounts
                .map(|(name, limited)| (name.to_string(), limited.held))
                .collect(),
            queues: queues.map(|name| (name.clone(), held(name))).collect(),
        }
    }
}

impl Admission {
    /// Returns true if a job of this account could go to a host now. `queue`: its queue as stored, perhaps a label.
    pub fn admits(&self, queue: &str, account: &str) -> bool {
        let (queue, _) = place_of(queue, account);
        let Policy {
            account_limits,
            queue_limits,
            ..
        } = &self.policy;
        !self.policy.of_queue(queue).paused
            && has_room(account_limits, &self.accounts, account)
            && has_room(queue_limits, &self.queues, queue)
    }

    /// Same as [`Self::admits`]. An admitted job counts from now on.
    pub fn admit(&mut self, queue: &str, account: &str) -> bool {
        let is_admitted = self.admits(queue, account);
        if is_admitted {
            let (queue, _) = place_of(queue, account);
            let queue = self.queues.get_mut(queue);
            for held in self.accounts.get_mut(account).into_iter().chain(queue) {
                *held = held.saturating_add(1);
            }
        }
        is_admitted
    }
}

fn has_room(
    limits: &BTreeMap<String, Allowance>,
    held: &BTreeMap<String, u64>,
    name: &str,
) -> bool {
    let held = held.get(name).copied().unwrap_or(0);
    limits.get(name).is_none_or(|limit| limit.admits(held))
}
