//! Bookkeeping of jobs that are not in memory: counts, and pulls and finds under way.
//!
//! `fetch` decides when to pull, find and evict. Counts steer and never decide: a job in memory is dispatched, whatever
//! was counted.

use crate::counted::{Counts, NAMES_MAX, Names};
use crate::coverage::Begun;
use crate::event::{Dimension, DimensionCounts, FindPlace};
use crate::evict_plan::Plan;
use crate::ids::{MemberId, OfferKey};
use crate::interner::Atom;
use crate::shape::Env;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Age up to which pulled or found jobs are fresh enough to serve from, ms (C3).
pub(crate) const FRESH_MS: u64 = 1_000;

/// Time after which an offer is served from memory if its find has not begun, ms (C2).
pub(crate) const PATIENCE_MS: u64 = 1_000;

/// Time before an empty find is repeated if the counts do not change, ms. Equal counts can hide changes.
const IN_VAIN_MS: u64 = 10_000;

/// Time over which begun finds are counted, ms.
pub(crate) const FINDS_WINDOW_MS: u64 = 1_000;

/// Tolerance of free memory: a find serves another host whose free memory differs by at most 1/`ABOUT`.
const ABOUT: u32 = 8;

/// Jobs that one find returns: several of each account if there are few accounts, else the best job of each.
const FIND_JOBS: u32 = 64;

/// Pairs of queue and account whose jobs one find returns if there are more pairs than are counted. Finds then take
/// turns through all pairs.
const FIND_PAIRS: u32 = 1_024;

/// Maximum number of sets of host keys whose finds take turns through accounts. Beyond it, a set begins at the first
/// account again.
const TURNS_MAX: usize = 1_024;

/// Mark for an early pull: an account is pulled before the next count if 1/`LOW_PART` of its room is left.
const LOW_PART: u32 = 4;

/// Fewest jobs that a pull asks for.
const PAGE_MIN: u32 = 4;

/// Query of a find. Offers with equal queries share one find.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wanted {
    /// The host's keys under which jobs wait in the store.
    pub keys: Box<[Atom]>,
    pub env: Arc<Env>,
    pub free_mb: u32,
    pub total_mb: u32,
    pub free_cpus: u32,
    pub total_cpus: u32,
}

impl Wanted {
    /// Returns true if a find for `self` is good enough to serve `other` from memory. `needs_mb` is the largest
    /// memory that a found job needs. Jobs that are best for a host are also best for one with less memory and as
    /// many free CPUs, if they fit there. An offer for which this find returns nothing gets its own find.
    pub(crate) fn serves(&self, other: &Self, needs_mb: u32) -> bool {
        let is_about = self.free_mb.abs_diff(other.free_mb) <= other.free_mb / ABOUT;
        let same = |of: &Self| (of.total_mb, of.total_cpus, of.free_cpus);
        (&self.keys, &self.env, same(self)) == (&other.keys, &other.env, same(other))
            && (is_about || (needs_mb..self.free_mb).contains(&other.free_mb))
    }
}

/// A find that is under way.
#[derive(Debug)]
pub(crate) struct Finding {
    pub wanted: Wanted,
    /// Other offers that wait for it.
    pub followers: Vec<OfferKey>,
    /// Largest memory that the best jobs of the left-out accounts need, MB.
    pub needs_mb: u32,
    /// Counts under each of its keys when it began. It may not have seen jobs that were counted later.
    pub counted: Vec<u64>,
}

/// A find that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ended {
    pub at: u64,
    /// Largest memory that one of its jobs needs, MB.
    pub needs_mb: u32,
    /// Counts under each of its keys when it began.
    pub counted: Vec<u64>,
    /// True if it left out accounts that the next ones are to look at.
    pub goes_on: bool,
}

impl Ended {
    fn is_fresh(&self, now: u64) -> bool {
        self.at.saturating_add(FRESH_MS) >= now
    }
}

/// The state of the partial cache.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    /// Jobs that wait in the store and not in memory, as far as is known. 0: all are in memory.
    pub missing: u64,
    /// Evicted since the last pull of everything began.
    pub evicted: u64,
    /// Consecutive counts that differed from memory although all jobs were in memory.
    pub differed: u32,
    /// Activity (see `Engine::activity`) at the last count.
    pub at_count: (u64, usize),
    /// Last counts of the store.
    pub counts: Counts,
    /// Last counts by queue and account.
    pub pairs: Vec<(String, String, u64)>,
    /// Last dimension that was pulled only for its changes. The next pulls continue behind it.
    pub news_pulled: Option<Dimension>,
    pub pulling: BTreeMap<Dimension, Begun>,
    /// Accounts in queues that have few jobs left in memory.
    pub low: BTreeSet<MemberId>,
    /// Dimensions to pull with the number of jobs, those without jobs in memory first.
    pub to_pull: BTreeMap<(bool, Dimension), u32>,
    /// Jobs to pull of a dimension when its count has changed.
    pub page: u32,
    /// Jobs to pull of a dimension with less than a page in memory: its even share of the room.
    pub fill: u32,
    /// Finds under way.
    pub finding: BTreeMap<OfferKey, Finding>,
    /// Offers that wait for a find to begin, longest waiting first.
    pub to_find: BTreeSet<(u64, OfferKey)>,
    /// Positions where finds that take turns through accounts continue, by host keys.
    pub turns: BTreeMap<Box<[Atom]>, FindPlace>,
    /// Plan of the next evictions.
    pub plan: Plan,
    /// Finds that ended, by what was wanted.
    pub found: BTreeMap<Wanted, Ended>,
    /// Finds that ended and returned nothing for their offers. They are remembered for longer.
    pub in_vain: BTreeMap<Wanted, Ended>,
    /// Offers that are not served before a find ends, or takes too long.
    pub gated: BTreeSet<(u64, OfferKey)>,
    /// Times at which the finds of the last second began.
    pub begun: VecDeque<u64>,
}

impl Cache {
    /// Returns true if every waiting job is in memory, as far as is known.
    pub(crate) fn is_complete(&self) -> bool {
        self.missing == 0
    }

    /// Takes over new counts. `held`: number of counted jobs that are in memory.
    pub(crate) fn count(&mut self, mut counts: DimensionCounts, held: u64, cache_jobs_max: u32) {
        self.missing = counts.total.saturating_sub(held);
        self.pairs = std::mem::take(&mut counts.pairs);
        self.counts = Counts::new(counts, &self.counts);
        self.plan.wake();
        // Each job belongs to one account, one queue and one host key. So the jobs in memory are the same for each.
        let of = |names: &Names| names.values().map(|counted| counted.jobs).collect();
        let kinds: [Vec<u64>; 3] = [
            of(&self.counts.accounts),
            of(&self.counts.queues),
            of(&self.counts.keys),
        ];
        let most = kinds.iter().map(Vec::len).max().unwrap_or(0).max(1);
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        self.page = (cache_jobs_max / most.saturating_mul(2)).max(PAGE_MIN);
        let levels = kinds.into_iter().map(|kind| level(kind, cache_jobs_max));
        self.fill = levels.min().unwrap_or(0).max(self.page);
    }

    /// Returns the number of jobs to pull of a dimension that has `cached` jobs in memory.
    pub(crate) fn pull_limit(&self, cached: u64) -> u32 {
        if cached < u64::from(self.page) {
            self.fill
        } else {
            self.page
        }
    }

    /// Returns the number of jobs to pull of an account behind the `cached` ones, given free room. It exceeds the
    /// even share, because not all accounts are low at the same time.
    pub(crate) fn refill_limit(&self, cached: u64, room: usize) -> u32 {
        let cached = u32::try_from(cached).unwrap_or(u32::MAX);
        let room = u32::try_from(room).unwrap_or(u32::MAX);
        let most = self.fill.saturating_mul(2).saturating_sub(cached);
        let least = self.fill.saturating_sub(cached).max(PAGE_MIN);
        room.clamp(least, most.max(least))
    }

    /// Returns the number of jobs of an account in a queue at or below which more are pulled at once.
    pub(crate) fn low_mark(&self) -> u64 {
        u64::from(self.fill / LOW_PART)
    }

    /// Returns true if jobs of this account wait in the store.
    pub(crate) fn is_counted(&self, account: &str) -> bool {
        self.counts.accounts.contains_key(account)
    }

    /// Returns the number of jobs of each account in a queue that a find asks for.
    pub(crate) fn find_limit(&self) -> u32 {
        (FIND_JOBS / self.cells().max(1)).max(1)
    }

    /// Returns the approximate maximum number of jobs of one find.
    pub(crate) fn find_jobs(&self) -> u32 {
        self.cells().max(FIND_JOBS).min(self.find_pairs())
    }

    /// Returns the maximum number of (queue, account) pairs whose jobs one find returns.
    pub(crate) fn find_pairs(&self) -> u32 {
        if self.counts.is_partial {
            FIND_PAIRS
        } else {
            NAMES_MAX
        }
    }

    /// Notes where the next find for these keys continues. `None`: the ended find saw all accounts.
    pub(crate) fn turn_ended(&mut self, wanted: &Wanted, next: Option<FindPlace>) {
        let Some(next) = next else {
            self.turns.remove(&wanted.keys);
            return;
        };
        self.turns.insert(wanted.keys.clone(), next);
        if self.turns.len() > TURNS_MAX {
            self.turns.pop_first();
        }
    }

    /// Returns the approximate number of pairs of queue and account with waiting jobs.
    fn cells(&self) -> u32 {
        let cells = self.counts.accounts.len().max(self.counts.queues.len());
        u32::try_from(cells).unwrap_or(u32::MAX)
    }

    /// Returns the store's count under a host key.
    pub(crate) fn under_key(&self, key: &Atom) -> u64 {
        self.counts.under(key)
    }

    /// Returns the store's counts under each key of `wanted`.
    pub(crate) fn under_keys(&self, wanted: &Wanted) -> Vec<u64> {
        wanted.keys.iter().map(|key| self.under_key(key)).collect()
    }

    /// Returns true if a good enough find ended so recently that its jobs are still fresh. A host's free memory
    /// changes with each job, so an exact match would need a find each time.
    pub(crate) fn is_served(&self, wanted: &Wanted, now: u64) -> bool {
        let mut fresh = self.found.iter().filter(|(_, ended)| ended.is_fresh(now));
        fresh.any(|(found, ended)| found.serves(wanted, ended.needs_mb))
    }

    /// Returns the find for exactly this query if its result is still fresh.
    pub(crate) fn fresh(&self, wanted: &Wanted, now: u64) -> Option<&Ended> {
        self.found.get(wanted).filter(|ended| ended.is_fresh(now))
    }

    /// Forgets all finds and pulls, so that they are repeated.
    pub(crate) fn forget_finds(&mut self) {
        self.in_vain.clear();
        self.counts.forget_pulls();
    }

    /// Forgets finds that are no longer used.
    pub(crate) fn tidy(&mut self, now: u64) {
        self.found.retain(|_, ended| ended.is_fresh(now));
        let Self {
            in_vain, counts, ..
        } = self;
        in_vain.retain(|wanted, ended| {
            ended.at.saturating_add(IN_VAIN_MS) >= now
                && wanted
                    .keys
                    .iter()
                    .map(|key| counts.under(key))
                    .eq(ended.counted.iter().copied())
        });
    }
}

/// Returns the largest share that each may have so that all fit in the room. A smaller wish is met in full.
fn level(mut more: Vec<u64>, room: u32) -> u32 {
    let mut room = u64::from(room);
    loop {
        let level = room / (more.len() as u64).max(1);
        let before = more.len();
        more.retain(|wanted| {
            let is_more = *wanted > level;
            room = room.saturating_sub(if is_more { 0 } else { *wanted });
            is_more
        });
        if more.len() == before || more.is_empty() {
            return u32::try_from(level).unwrap_or(u32::MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_wants_less_leaves_the_rest_to_the_others() {
        let of = |wanted: &[u64], room| level(wanted.to_vec(), room);
        assert_eq!(of(&[100, 100], 50), 25);
        assert_eq!(of(&[100, 100, 10, 1], 51), 20);
        assert_eq!(of(&[10, 5], 50), 25, "there is room for all");
        assert_eq!(of(&[], 50), 50);
        assert_eq!(of(&[7; 100], 50), 0);
    }
}
