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

/// Cells that were refreshed this long ago are fresh enough to serve from, ms (C3).
pub(crate) const FRESH_MS: u64 = 1_000;

/// An offer whose find does not come to its turn is served from what there is after this, ms (C2).
pub(crate) const PATIENCE_MS: u64 = 1_000;

/// A find that brought nothing is not repeated for this long, if counts do not change: equal counts can hide
/// news.
const IN_VAIN_MS: u64 = 10_000;

/// Time over which begun finds are counted, ms.
pub(crate) const FINDS_WINDOW_MS: u64 = 1_000;

/// A find for a host with as much free memory, but for one part in so many, is as good.
const ABOUT: u32 = 8;

/// Jobs that one find brings, of few accounts several each; of many at least the best of each.
const FIND_JOBS: u32 = 64;

/// Pairs of queue and account of which one find brings jobs, where there are more than are counted: finds take turns
/// through all of them.
const FIND_PAIRS: u32 = 1_024;

/// Sets of host keys whose finds take turns through accounts; of more, some begin at the first account again.
const TURNS_MAX: usize = 1_024;

/// An account of which one part in so many of what there is room for is left is pulled before the next count.
const LOW_PART: u32 = 4;

/// Fewest jobs that a pull asks for.
const PAGE_MIN: u32 = 4;

/// What a find asks for: offers that agree in it share one.
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
    /// Whether a find for this, which brought jobs that need `needs_mb` at most, is good enough to serve the other
    /// from memory: what is best for a host is best for one with less memory and as
    /// many free CPUs, too, if it fits there. An offer for
    /// which that brings nothing has a find of its own.
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
    /// Who else waits for it.
    pub followers: Vec<OfferKey>,
    /// The most that the best jobs of accounts that it leaves out need, MB.
    pub needs_mb: u32,
    /// What was counted under each of its keys when it began: it may not have seen what was counted after that.
    pub counted: Vec<u64>,
}

/// A find that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ended {
    pub at: u64,
    /// The most that a job that it brought needs, MB.
    pub needs_mb: u32,
    /// What was counted under each of its keys when it began.
    pub counted: Vec<u64>,
    /// Whether it left out accounts that the next ones are to look at.
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
    /// Jobs that wait in the store and not here, as far as is known. 0: everything is here.
    pub missing: u64,
    /// Evicted since the last pull of everything began.
    pub evicted: u64,
    /// How many counts in a row were not what is here although all is here.
    pub differed: u32,
    /// What had come and gone at the last count.
    pub at_count: (u64, usize),
    /// What the store counted last.
    pub counts: Counts,
    /// The same by queue and account.
    pub pairs: Vec<(String, String, u64)>,
    /// The last dimension that was pulled for its news alone: the next ones follow it.
    pub news_pulled: Option<Dimension>,
    pub pulling: BTreeMap<Dimension, Begun>,
    /// Accounts in queues of which little is left here.
    pub low: BTreeSet<MemberId>,
    /// To be pulled, and how many jobs: those that are empty here first.
    pub to_pull: BTreeMap<(bool, Dimension), u32>,
    /// How many jobs of a dimension are pulled when its count has changed.
    pub page: u32,
    /// The same for a dimension of which less than a page is here: as many as there is room for if all have as many.
    pub fill: u32,
    /// Finds under way.
    pub finding: BTreeMap<OfferKey, Finding>,
    /// Offers that wait for a find to begin, longest waiting first.
    pub to_find: BTreeSet<(u64, OfferKey)>,
    /// Where finds that take turns through the accounts go on, by the host keys that they are for.
    pub turns: BTreeMap<Box<[Atom]>, FindPlace>,
    /// Whom to evict.
    pub plan: Plan,
    /// Finds that ended, by what was wanted.
    pub found: BTreeMap<Wanted, Ended>,
    /// Of these the ones that brought their offers nothing; they are remembered for longer.
    pub in_vain: BTreeMap<Wanted, Ended>,
    /// Offers that are not served before a find ends, or takes too long.
    pub gated: BTreeSet<(u64, OfferKey)>,
    /// When the finds of the last second began.
    pub begun: VecDeque<u64>,
}

impl Cache {
    /// Whether every waiting job is in memory, as far as is known.
    pub(crate) fn is_complete(&self) -> bool {
        self.missing == 0
    }

    /// New counts; `held` jobs of theirs are here.
    pub(crate) fn count(&mut self, mut counts: DimensionCounts, held: u64, cache_jobs_max: u32) {
        self.missing = counts.total.saturating_sub(held);
        self.pairs = std::mem::take(&mut counts.pairs);
        self.counts = Counts::new(counts, &self.counts);
        self.plan.wake();
        // Each job is one of an account, of a queue and of a host key: what is here of the ones is here of the others.
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

    /// How many jobs to pull of a dimension of which so many are here.
    pub(crate) fn pull_limit(&self, cached: u64) -> u32 {
        if cached < u64::from(self.page) {
            self.fill
        } else {
            self.page
        }
    }

    /// How many jobs of an account to pull behind those that are here, while there is room for so many: not all
    /// accounts are low at the same time.
    pub(crate) fn refill_limit(&self, cached: u64, room: usize) -> u32 {
        let cached = u32::try_from(cached).unwrap_or(u32::MAX);
        let room = u32::try_from(room).unwrap_or(u32::MAX);
        let most = self.fill.saturating_mul(2).saturating_sub(cached);
        let least = self.fill.saturating_sub(cached).max(PAGE_MIN);
        room.clamp(least, most.max(least))
    }

    /// How few jobs of an account in a queue are so few that more are pulled at once.
    pub(crate) fn low_mark(&self) -> u64 {
        u64::from(self.fill / LOW_PART)
    }

    /// Whether jobs of this account wait in the store.
    pub(crate) fn is_counted(&self, account: &str) -> bool {
        self.counts.accounts.contains_key(account)
    }

    /// How many jobs of each account in a queue a find asks for.
    pub(crate) fn find_limit(&self) -> u32 {
        (FIND_JOBS / self.cells().max(1)).max(1)
    }

    /// About how many jobs one find brings at most.
    pub(crate) fn find_jobs(&self) -> u32 {
        self.cells().max(FIND_JOBS).min(self.find_pairs())
    }

    /// Of how many accounts in queues a find brings jobs at most.
    pub(crate) fn find_pairs(&self) -> u32 {
        if self.counts.is_partial {
            FIND_PAIRS
        } else {
            NAMES_MAX
        }
    }

    /// A find has ended, and the next one for these keys goes on there; none: it saw all.
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

    /// About how many accounts wait in queues.
    fn cells(&self) -> u32 {
        let cells = self.counts.accounts.len().max(self.counts.queues.len());
        u32::try_from(cells).unwrap_or(u32::MAX)
    }

    /// What the store counted under a host key.
    pub(crate) fn under_key(&self, key: &Atom) -> u64 {
        self.counts.under(key)
    }

    /// What the store counted under each of these keys.
    pub(crate) fn under_keys(&self, wanted: &Wanted) -> Vec<u64> {
        wanted.keys.iter().map(|key| self.under_key(key)).collect()
    }

    /// Whether a find that is good enough for this ended so lately that what it brought is still fresh: a host's
    /// free memory changes with each job, and each find takes its turn.
    pub(crate) fn is_served(&self, wanted: &Wanted, now: u64) -> bool {
        let mut fresh = self.found.iter().filter(|(_, ended)| ended.is_fresh(now));
        fresh.any(|(found, ended)| found.serves(wanted, ended.needs_mb))
    }

    /// The find for this very one, if it ended so lately.
    pub(crate) fn fresh(&self, wanted: &Wanted, now: u64) -> Option<&Ended> {
        self.found.get(wanted).filter(|ended| ended.is_fresh(now))
    }

    /// What was pulled and found is as good as never asked for.
    pub(crate) fn forget_finds(&mut self) {
        self.in_vain.clear();
        self.counts.forget_pulls();
    }

    /// Forgets finds that are of no use any more.
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

/// How much each may have at most, so that together they have what there is, and who wants less has all it wants.
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
