//! Coverage: how many of each account's best jobs are certainly in memory.
//!
//! A million jobs may wait in the store, and at most 30,000 of them are in memory by default. The best job in memory
//! for a host need not be the best in the store. To be sure, the engine can ask the store for jobs that fit this very
//! host (a *find*). But a find is a search, and the host waits for it. A thousand hosts that ask at once would need a
//! thousand finds, and only 20 may begin each second.
//!
//! Most finds bring nothing new, and coverage tells which. A pull brings the best jobs of an account, in order. From
//! then on the replica hears of each change of waiting jobs, so a new job in that range reaches memory, too. The range
//! stays complete until one of its jobs is evicted or a change is missed. For example, Ann has 50,000 waiting jobs. A
//! pull brought the first 200, and then job 120 was evicted:
//!
//! ```text
//! Ann's jobs   1 ............ 119 | 120 ............ 200 | 201 ............ 50,000
//!              certainly here     | read again next      | not read yet
//! ```
//!
//! Job 7 is the first of them that fits a host. It is in the complete range, so no job of Ann in the store is better,
//! and the find leaves Ann out. If only job 150 fits, a better one may be in the store, and the find names Ann. A find
//! that would name nobody is not begun.
//!
//! Limits:
//!
//! - A known range counts only while news is read. After five seconds without news nothing counts as known.
//! - A missed change ends everything that is known. A page whose pull began before that is not counted.
//! - After 30 seconds an account whose count changes is pulled from its first job again.
//! - A find names 1,000 accounts at most. Beyond that it asks for all.
//!
//! Coverage only spares finds. It never decides who gets a job.

use crate::event::{Cursor, PulledPage};
use crate::ids::{JobKey, MemberId, Place};
use crate::interner::Fixed;
use indexmap::IndexMap;
use slotmap::SecondaryMap;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Time after which an account is pulled from its beginning again when its count changes, ms.
const ANEW_MS: u64 = 30_000;

/// Time without news after which all knowledge is void, ms. A look at the store is due each second.
const NEWS_MS: u64 = 5_000;

/// Maximum number of accounts named in one find. Beyond it the find asks for all accounts.
const NAMED_MAX: usize = 1_000;

/// Position up to which an account was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reach {
    /// The last job that was read.
    pub last: Cursor,
    /// True if the store has more jobs behind it.
    pub more: bool,
    /// Time at which the account was read from its beginning.
    since: u64,
}

/// A pull under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Begun {
    /// Last job before the pulled page.
    after: Option<Cursor>,
    /// Number of times that everything had been forgotten when the pull began.
    forgotten: u64,
    /// Best job of the pulled account that was evicted meanwhile. It may be in the page, or the store may not show it
    /// yet.
    pub evicted: Option<Cursor>,
}

impl Begun {
    /// Notes the eviction of a job of the pulled account.
    pub(crate) fn loses(&mut self, job: Cursor) {
        let best = self.evicted.filter(|best| rank(*best) <= rank(job));
        self.evicted = Some(best.unwrap_or(job));
    }

    /// Returns the last position up to which every job of the fetched page is still in memory.
    fn up_to(&self, last: Option<Cursor>) -> Option<Cursor> {
        let evicted = self
            .evicted
            .filter(|evicted| last.is_none_or(|last| rank(*evicted) <= rank(last)));
        evicted.map(just_before).or(last)
    }
}

/// Known extents of the accounts.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    /// Positions up to which accounts were read, by name.
    reach: IndexMap<String, Reach, Fixed>,
    /// Places by pair of queue and account. All jobs that wait before the place are in memory.
    bounds: SecondaryMap<MemberId, Place>,
    forgotten: u64,
    /// Time at which the news were read last.
    news_read: u64,
    /// True if all waiting jobs were in memory and none was evicted since.
    all_here: bool,
}

impl Coverage {
    /// Forgets everything, because changes were missed.
    pub(crate) fn forget(&mut self) {
        self.reach.clear();
        self.bounds.clear();
        self.all_here = false;
        self.forgotten = self.forgotten.saturating_add(1);
    }

    /// Notes that all changes until `now` are known.
    pub(crate) fn news_read(&mut self, now: u64) {
        self.news_read = now;
    }

    pub(crate) fn hears_news(&self, now: u64) -> bool {
        self.news_read.saturating_add(NEWS_MS) > now
    }

    /// Returns the position up to which an account was read. `None`: it was read so long ago that it must be read
    /// anew.
    pub(crate) fn fresh_reach(&self, account: &str, now: u64) -> Option<Reach> {
        let reach = self.reach.get(account)?;
        (reach.since.saturating_add(ANEW_MS) > now).then_some(*reach)
    }

    /// Returns true if all waiting jobs of an account are in memory.
    pub(crate) fn is_whole(&self, account: &str) -> bool {
        self.reach.get(account).is_some_and(|reach| !reach.more)
    }

    /// Begins a pull.
    pub(crate) fn begin(&self, after: Option<Cursor>) -> Begun {
        Begun {
            after,
            forgotten: self.forgotten,
            evicted: None,
        }
    }

    /// Takes over a page of this account that was pulled at `now`. Returns true if it is of use: nothing was
    /// forgotten meanwhile.
    pub(crate) fn read(
        &mut self,
        account: &str,
        begun: Begun,
        page: &PulledPage,
        now: u64,
    ) -> bool {
        if begun.forgotten != self.forgotten {
            return false;
        }
        let up_to = begun.up_to(page.last);
        let goes_on = page.more || up_to != page.last;
        let before = self.reach.get(account).copied();
        if begun.after.is_some() && begun.after != before.map(|reach| reach.last) {
            return false;
        }
        let anew = begun.after.is_none();
        let since = before.filter(|_| !anew).map_or(now, |reach| reach.since);
        let (last, more) = match (before, up_to) {
            // The earlier read reached further.
            (Some(before), Some(last)) if anew && goes_on && rank(before.last) > rank(last) => {
                (Some(before.last), before.more)
            }
            (before, last) => (last.or(before.map(|reach| reach.last)), goes_on),
        };
        if let Some(last) = last {
            let reach = Reach { last, more, since };
            self.reach.insert(account.to_owned(), reach);
        }
        true
    }

    /// Notes that all jobs of a pair up to and including this place are in memory.
    pub(crate) fn reached(&mut self, member: MemberId, (priority, key): Place) {
        let bound = (priority, JobKey(key.0.saturating_add(1)));
        let known = self.bounds.get(member).copied();
        let bound = known.map_or(bound, |known| known.max(bound));
        self.bounds.insert(member, bound);
    }

    /// Notes that everything was pulled.
    pub(crate) fn all_here(&mut self, begun: Option<Begun>) {
        self.all_here = begun.is_some_and(|begun| begun.forgotten == self.forgotten);
    }

    /// Returns true if all waiting jobs are in memory, as far as the news tell.
    pub(crate) fn is_all_here(&self, now: u64) -> bool {
        self.all_here && self.hears_news(now)
    }

    /// Notes that a waiting job was evicted.
    pub(crate) fn evicted(&mut self, member: MemberId, account: &str, job: Cursor) {
        self.all_here = false;
        let place = (Reverse(job.priority), job.key);
        if let Some(bound) = self.bounds.get_mut(member) {
            *bound = place.min(*bound);
        }
        // The next read begins at the first job. No job behind it is in memory, because the deepest jobs are evicted
        // first.
        let Some(reach) = self.reach.get_mut(account) else {
            return;
        };
        reach.more = true;
        if rank(job) <= rank(reach.last) {
            reach.last = just_before(job);
        }
    }

    /// Returns true if all jobs before this place are in memory.
    pub(crate) fn covers(&self, member: MemberId, place: Place) -> bool {
        self.bounds.get(member).is_some_and(|bound| place < *bound)
    }

    /// Forgets accounts and members that are no longer used.
    pub(crate) fn tidy(
        &mut self,
        is_counted: impl Fn(&str) -> bool,
        is_known: impl Fn(MemberId) -> bool,
    ) {
        self.reach.retain(|account, _| is_counted(account));
        self.bounds.retain(|member, _| is_known(member));
    }
}

/// Returns the place just before a job.
pub(crate) fn just_before(job: Cursor) -> Cursor {
    let key = JobKey(job.key.0.saturating_sub(1));
    Cursor { key, ..job }
}

/// Returns the rank of a job in the order of pages.
pub(crate) fn rank(job: Cursor) -> (Reverse<u8>, Reverse<i16>, JobKey) {
    (Reverse(job.class), Reverse(job.priority), job.key)
}

/// Purpose of a find.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Unknown {
    /// Accounts that may have better jobs in the store than in memory. `None`: all accounts.
    pub accounts: Option<BTreeSet<String>>,
    /// Largest memory that the best known job of another account needs, MB.
    pub needs_mb: u32,
}

impl Unknown {
    /// Returns true if a find cannot return anything better.
    pub(crate) fn is_nothing(&self) -> bool {
        self.accounts.as_ref().is_some_and(BTreeSet::is_empty)
    }

    /// Returns the accounts as a find names them. An empty list stands for all.
    pub(crate) fn names(self) -> Vec<String> {
        let accounts = self.accounts.filter(|names| names.len() <= NAMED_MAX);
        accounts.unwrap_or_default().into_iter().collect()
    }
}
