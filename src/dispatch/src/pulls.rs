//! The partial cache: decides what to pull (C1).
//!
//! It has no effect while all jobs are in memory. Otherwise counts cause pulls of queues that are empty here or have
//! news, and claims cause pulls of accounts with few jobs left.

use crate::counted::Of;
use crate::coverage::Reach;
use crate::engine::Engine;
use crate::event::{Cursor, Decision, Dimension, DimensionCounts, PulledPage};
use crate::ids::MemberId;
use crate::labels::queue_of;

/// Dimensions with enough jobs in memory that are pulled for their changes at one count, in turn.
const NEWS_AT_ONCE: usize = 32;

/// Consecutive counts that may differ from memory while jobs come and go. The number of pages of a full read takes
/// its place if it is larger, so that reading costs at most one page a count.
const DIFFERED_MIN: u32 = 5;

/// Maximum number of jobs in one page.
const PAGE_MAX: u32 = 10_000;

impl Engine {
    /// Takes over new counts of the store.
    pub(crate) fn counts_refreshed(
        &mut self,
        counts: DimensionCounts,
        decisions: &mut Vec<Decision>,
    ) {
        let total = counts.total;
        let held = (self.index.jobs.len() as u64).saturating_add(self.in_flight);
        self.cache.count(counts, held, self.config.cache_jobs_max);
        if total <= u64::from(self.config.cache_jobs_max) {
            self.cache.to_pull.clear();
            if total == held {
                self.cache.differed = 0;
            } else if self.differs_in_passing() {
                self.cache.missing = 0;
            } else if !self.cache.pulling.contains_key(&Dimension::All) {
                let limit = self.config.cache_jobs_max;
                self.cache.to_pull.insert((false, Dimension::All), limit);
            }
            self.cache.at_count = self.activity();
        } else {
            self.choose_pulls();
        }
        self.begin_pulls(decisions);
        if self.cache.is_complete() {
            self.release_all();
        } else {
            self.find_for_the_idle();
        }
    }

    /// Returns true if the counts differ from memory only because jobs come and go. All jobs were in memory, news of
    /// all changes came, and the difference is recent.
    fn differs_in_passing(&mut self) -> bool {
        let pages = self.index.jobs.len() / PAGE_MAX as usize;
        let pages = u32::try_from(pages).unwrap_or(u32::MAX);
        let is_passing = self.coverage.is_all_here(self.now)
            && self.cache.at_count != self.activity()
            && self.cache.differed < DIFFERED_MIN.max(pages);
        self.cache.differed = if is_passing {
            self.cache.differed + 1
        } else {
            0
        };
        is_passing
    }

    /// Returns a value that changes when jobs come or go.
    fn activity(&self) -> (u64, usize) {
        (self.serial, self.index.jobs.len())
    }

    /// Chooses the dimensions to pull: those with changes, and those without jobs in memory.
    fn choose_pulls(&mut self) {
        let low = u64::from(self.cache.fill.div_ceil(2));
        let mut accounts = self.cache.counts.accounts.keys();
        let all_known =
            accounts.all(|account| self.coverage.fresh_reach(account, self.now).is_some());
        // In order: what is empty here, and what is not.
        let (mut empty, mut other, mut news) = (Vec::new(), Vec::new(), Vec::new());
        for (of, counted) in self.cache.counts.iter() {
            let (count, cached) = (counted.jobs, self.cached_of(of));
            if self.is_twin(of, count, cached) {
                continue;
            }
            let is_news = counted.pulled_at != Some(count) && cached != count;
            let reach = self.reach_of(of);
            let goes_on = reach.is_some_and(|reach| reach.more);
            let limit = if goes_on {
                self.cache.refill_limit(cached, self.room())
            } else {
                self.cache.pull_limit(cached)
            };
            if cached == 0 {
                empty.push((of, limit));
            } else if goes_on {
                if cached <= self.cache.low_mark() {
                    other.push((of, limit));
                }
            } else if is_news && (reach.is_some() || !all_known) {
                // An account that was read to its end and counts another number now may have jobs of which no news
                // came. It takes its turn.
                if cached < low && reach.is_none() {
                    other.push((of, limit));
                } else {
                    news.push((of, limit));
                }
            }
        }
        // A dimension that changes all the time would be pulled all the time. Finds and changes bring its best and
        // new jobs.
        let last = self.cache.news_pulled.as_ref().and_then(Of::new);
        let after = news.partition_point(|(of, _)| Some(*of) <= last);
        news.rotate_left(after);
        news.truncate(NEWS_AT_ONCE);
        let news_pulled = news.last().map(|(of, _)| of.dimension());
        let to_pull =
            |is_here: bool| move |(of, limit): (Of<'_>, u32)| ((is_here, of.dimension()), limit);
        let empty = empty.into_iter().map(to_pull(false));
        let other = other.into_iter().chain(news).map(to_pull(true));
        let to_pull = empty.chain(other).collect();
        self.cache.to_pull = to_pull;
        self.cache.news_pulled = news_pulled;
    }

    /// Returns true for the queue of an account that has a queue of its own: both contain the same jobs.
    fn is_twin(&self, of: Of<'_>, count: u64, cached: u64) -> bool {
        let Of::Queue(name) = of else { return false };
        let name = queue_of(name);
        let account = self.cache.counts.accounts.get(name);
        account.is_some_and(|account| account.jobs == count)
            && self.cached_of(Of::Account(name)) == cached
    }

    fn reach_of(&self, of: Of<'_>) -> Option<Reach> {
        match of {
            Of::Account(name) => self.coverage.fresh_reach(name, self.now),
            Of::Queue(_) | Of::HostKey(_) => None,
        }
    }

    /// Returns the job behind which the next page of an account begins; `None`: its beginning.
    fn goes_on(&self, dimension: &Dimension) -> Option<Cursor> {
        let reach = self.reach_of(Of::new(dimension)?);
        reach.filter(|reach| reach.more).map(|reach| reach.last)
    }

    /// Returns the number of jobs of a dimension in memory.
    fn cached_of(&self, of: Of<'_>) -> u64 {
        match of {
            Of::Account(name) => self.ledger.waiting.of(name),
            Of::Queue(name) => self.ledger.waiting_in(name),
            Of::HostKey(key) => self.index.under(key).map_or(0, |cells| cells.jobs),
        }
    }

    /// Returns the number of jobs for which there is room.
    fn room(&self) -> usize {
        let most = usize::try_from(self.config.cache_jobs_max).unwrap_or(usize::MAX);
        most.saturating_sub(self.index.jobs.len())
    }

    /// Notes the claim of a job of this account in a queue: few may be left.
    pub(crate) fn note_low(&mut self, member: MemberId) {
        let waiting = self.ledger.members.get(member);
        let waiting = waiting.map_or(0, |member| member.tally.waiting);
        if !self.cache.is_complete() && waiting <= self.cache.low_mark() {
            self.cache.low.insert(member);
        }
    }

    /// Pulls more jobs of accounts that have few left in memory and whose place in the store is known.
    pub(crate) fn refill(&mut self, decisions: &mut Vec<Decision>) {
        if self.cache.low.is_empty() {
            return;
        }
        for member in std::mem::take(&mut self.cache.low) {
            let Some(member) = self.ledger.members.get(member) else {
                continue;
            };
            let dimension = Dimension::Account(member.account.to_string());
            let goes_on = self.goes_on(&dimension).is_some();
            if goes_on && !self.cache.pulling.contains_key(&dimension) {
                let limit = self.cache.refill_limit(member.tally.waiting, self.room());
                self.cache.to_pull.insert((true, dimension), limit);
            }
        }
        self.begin_pulls(decisions);
    }

    fn begin_pulls(&mut self, decisions: &mut Vec<Decision>) {
        let most = usize::try_from(self.config.pulls_in_flight_max.max(1)).unwrap_or(usize::MAX);
        let mut later = Vec::new();
        while self.cache.pulling.len() < most {
            let Some(((known, dimension), limit)) = self.cache.to_pull.pop_first() else {
                break;
            };
            if self.cache.pulling.contains_key(&dimension) {
                later.push(((known, dimension), limit));
                continue;
            }
            if dimension == Dimension::All {
                self.cache.evicted = 0;
            } else {
                self.cache.counts.pull_begins(&dimension);
            }
            let after = self.goes_on(&dimension);
            let begun = self.coverage.begin(after);
            self.cache.pulling.insert(dimension.clone(), begun);
            decisions.push(Decision::Pull {
                dimension,
                limit: limit.min(PAGE_MAX),
                after,
            });
        }
        self.cache.to_pull.extend(later);
    }

    /// Handles the end of a pull.
    pub(crate) fn pull_ended(
        &mut self,
        dimension: &Dimension,
        page: Option<PulledPage>,
        decisions: &mut Vec<Decision>,
    ) {
        let begun = self.cache.pulling.remove(dimension);
        if let Some(page) = page {
            let is_all = *dimension == Dimension::All;
            let (more, last) = (page.more, page.last);
            self.take_page(dimension, begun, page);
            if let (Some(begun), Some(last)) = (begun, last)
                && is_all
                && more
                && self.room() > 0
            {
                // It is one pull still: what is known at its end goes back to its beginning.
                self.cache.pulling.insert(Dimension::All, begun);
                decisions.push(Decision::Pull {
                    dimension: Dimension::All,
                    limit: PAGE_MAX,
                    after: Some(last),
                });
            } else if is_all && !more {
                self.cache.missing = self.cache.evicted;
                if self.cache.evicted == 0 {
                    self.coverage.all_here(begun);
                }
                if self.cache.is_complete() {
                    self.release_all();
                }
            }
        } else {
            self.cache.counts.pull_failed(dimension);
        }
        self.begin_pulls(decisions);
    }
}
