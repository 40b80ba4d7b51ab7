//! Memory budget of requests: their bodies, and the objects built from them.
//!
//! A charge grows with the memory that is really used, and is returned when it is dropped. Unidentified senders share a
//! small part of the budget. Testboxes and replicas have a reserve, so a flood of submits costs no lease.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use fairlead_api::{ErrorBody, ErrorCode};
use fairlead_job::file::limits::NODES_MAX;
use serde_json::Value;

use crate::Limits;

/// What one value of JSON takes in memory beside its text, bytes: the value, and its share of what holds it.
const VALUE_BYTES: u64 = size_of::<Value>() as u64 + 64;
/// What one key or value of YAML takes with its place, bytes, while a job file is read.
const NODE_BYTES: u64 = 150;
/// What is built is held twice at worst: as it was read, and as it is stored.
const COPIES: u64 = 2;

/// Whose request it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purse {
    /// Nobody was identified.
    Stranger,
    /// Somebody was identified, or the lab is open.
    Known,
    /// A testbox that asks or reports, or another replica.
    Agent,
}

/// The memory that requests use together.
#[derive(Debug)]
pub(crate) struct Budget {
    all_max: u64,
    reserve: u64,
    strangers_max: u64,
    used: AtomicU64,
    strangers: AtomicU64,
}

impl Budget {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            all_max: limits.request_memory_max,
            reserve: limits.request_memory_reserve,
            strangers_max: limits.strangers_memory_max,
            used: AtomicU64::new(0),
            strangers: AtomicU64::new(0),
        }
    }

    /// A charge of nothing yet.
    pub(crate) fn charge(self: &Arc<Self>, purse: Purse) -> Charge {
        Charge {
            budget: Arc::clone(self),
            purse,
            bytes: 0,
        }
    }

    /// The most that all may use when one of this purse asks.
    fn max(&self, purse: Purse) -> u64 {
        match purse {
            Purse::Stranger | Purse::Known => self.all_max.saturating_sub(self.reserve),
            Purse::Agent => self.all_max,
        }
    }
}

/// What one request uses.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Arc<Budget>,
    purse: Purse,
    bytes: u64,
}

impl Charge {
    /// A charge of the same purse, of nothing yet.
    pub(crate) fn another(&self) -> Self {
        self.budget.charge(self.purse)
    }

    /// From now on it is another's.
    pub(crate) fn belongs_to(&mut self, purse: Purse) {
        let strangers = &self.budget.strangers;
        match (self.purse, purse) {
            (Purse::Stranger, Purse::Stranger) => {}
            (Purse::Stranger, _) => {
                strangers.fetch_sub(self.bytes, Ordering::Relaxed);
            }
            (_, Purse::Stranger) => {
                strangers.fetch_add(self.bytes, Ordering::Relaxed);
            }
            _ => {}
        }
        self.purse = purse;
    }

    /// Uses so many bytes more, if there is room.
    pub(crate) fn grow(&mut self, bytes: u64) -> Result<(), ErrorBody> {
        let max = self.budget.max(self.purse);
        let own = self.bytes.saturating_add(bytes);
        if own > max {
            return Err(ErrorBody::new(
                ErrorCode::TooLarge,
                format!(
                    "the request needs {own} bytes of memory; all requests together may use {max}"
                ),
                "split it",
            ));
        }
        if !take(&self.budget.used, bytes, max) {
            return Err(busy(max, "all requests together"));
        }
        let strangers_max = self.budget.strangers_max;
        if self.purse == Purse::Stranger && !take(&self.budget.strangers, bytes, strangers_max) {
            self.budget.used.fetch_sub(bytes, Ordering::Relaxed);
            return Err(busy(strangers_max, "requests without a token"));
        }
        self.bytes = own;
        Ok(())
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
        if self.purse == Purse::Stranger {
            self.budget
                .strangers
                .fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

/// Adds where the sum stays within `max`.
fn take(used: &AtomicU64, bytes: u64, max: u64) -> bool {
    let add = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= max);
    used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add)
        .is_ok()
}

fn busy(max: u64, whose: &str) -> ErrorBody {
    ErrorBody::new(
        ErrorCode::TooMany,
        format!("{whose} use the {max} bytes of memory that they may"),
        "try again in a few seconds",
    )
}

/// What JSON text takes once it is built, bytes, roughly and rather too much. Nothing is built for it.
pub(crate) fn built_bytes(text: &[u8]) -> u64 {
    let (mut values, mut in_text, mut escaped) = (1u64, false, false);
    for byte in text {
        if in_text {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_text = false,
                _ => {}
            }
        } else {
            match byte {
                b'"' => in_text = true,
                b',' | b'[' | b'{' => values += 1,
                _ => {}
            }
        }
    }
    let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
    copies(values.saturating_mul(VALUE_BYTES).saturating_add(length))
}

/// What so many bytes take once they are jobs.
pub(crate) fn copies(bytes: u64) -> u64 {
    bytes.saturating_mul(COPIES)
}

/// What YAML text takes while it is read, bytes, roughly.
pub(crate) fn yaml_bytes(text: &[u8]) -> u64 {
    let nodes = text.iter().filter(|byte| b",:\n[{-".contains(byte)).count();
    let nodes = nodes.min(2 * NODES_MAX);
    u64::try_from(nodes)
        .unwrap_or(u64::MAX)
        .saturating_mul(NODE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(all: u64, reserve: u64, strangers: u64) -> Arc<Budget> {
        Arc::new(Budget::new(&Limits {
            request_memory_max: all,
            request_memory_reserve: reserve,
            strangers_memory_max: strangers,
            ..Limits::default()
        }))
    }

    #[test]
    fn a_charge_is_given_back_and_testboxes_have_a_reserve() {
        let all = budget(100, 20, 30);
        let mut first = all.charge(Purse::Known);
        first.grow(50).unwrap();
        let mut second = all.charge(Purse::Known);
        assert_eq!(second.grow(40).unwrap_err().code, ErrorCode::TooMany);
        second.grow(30).unwrap();
        let mut agent = all.charge(Purse::Agent);
        agent.grow(20).unwrap();
        assert_eq!(agent.grow(1).unwrap_err().code, ErrorCode::TooMany);
        drop(first);
        second.grow(30).unwrap();
        assert_eq!(second.grow(60).unwrap_err().code, ErrorCode::TooLarge);
        drop((second, agent));
        assert_eq!(all.used.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn strangers_share_a_small_part_until_they_are_known() {
        let all = budget(100, 20, 30);
        let (mut one, mut other) = (all.charge(Purse::Stranger), all.charge(Purse::Stranger));
        one.grow(20).unwrap();
        let refused = other.grow(20).unwrap_err();
        assert!(refused.message.contains("without a token"), "{refused:?}");
        one.belongs_to(Purse::Known);
        other.grow(20).unwrap();
        one.grow(40).unwrap();
        drop((one, other));
        assert_eq!(all.used.load(Ordering::Relaxed), 0);
        assert_eq!(all.strangers.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn what_json_takes_is_seen_before_it_is_built() {
        let numbers = format!("[{}0]", "0,".repeat(999));
        assert!(built_bytes(numbers.as_bytes()) >= 1000 * VALUE_BYTES);
        let text = format!("{{\"script\": \"{}\\\",,,\"}}", "[,:{".repeat(1000));
        assert!(built_bytes(text.as_bytes()) < COPIES * (2 * VALUE_BYTES + 5000));
    }
}
