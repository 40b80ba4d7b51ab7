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

/// After this long an account is pulled from its beginning again, when its count changes, ms.
const ANEW_MS: u64 = 30_000;

/// What was known is worth nothing while no news was read for this long, ms: a look at the store is due each second.
const NEWS_MS: u64 = 5_000;

/// Accounts that are named in one find; of more it asks for all.
const NAMED_MAX: usize = 1_000;

/// How far an account was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reach {
    /// The last job that was read.
    pub last: Cursor,
    /// Whether the store had more behind it.
    pub more: bool,
    /// When it was read from its beginning.
    since: u64,
}

/// A pull under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Begun {
    /// Behind which job.
    after: Option<Cursor>,
    /// How often everything had been forgotten.
    forgotten: u64,
    /// The best job of what is pulled that was evicted meanwhile: it may be in the page, or one that the store does not
    /// show yet.
    pub evicted: Option<Cursor>,
}

impl Begun {
    /// A job of what is pulled is evicted.
    pub(crate) fn loses(&mut self, job: Cursor) {
        let best = self.evicted.filter(|best| rank(*best) <= rank(job));
        self.evicted = Some(best.unwrap_or(job));
    }

    /// How far what it brought is here, of a page that went so far.
    fn up_to(&self, last: Option<Cursor>) -> Option<Cursor> {
        let evicted = self
            .evicted
            .filter(|evicted| last.is_none_or(|last| rank(*evicted) <= rank(last)));
        evicted.map(just_before).or(last)
    }
}

/// What is known of the accounts.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    /// How far each account was read, by name.
    reach: IndexMap<String, Reach, Fixed>,
    /// Of each account in a queue: all that waits before this place is here.
    bounds: SecondaryMap<MemberId, Place>,
    forgotten: u64,
    /// When the news were read last.
    news_read: u64,
    /// All that waits was here, and nothing was evicted since.
    all_here: bool,
}

impl Coverage {
    /// Changes were missed: nothing is known any more.
    pub(crate) fn forget(&mut self) {
        self.reach.clear();
        self.bounds.clear();
        self.all_here = false;
        self.forgotten = self.forgotten.saturating_add(1);
    }

    /// All changes until now were told of.
    pub(crate) fn news_read(&mut self, now: u64) {
        self.news_read = now;
    }

    pub(crate) fn hears_news(&self, now: u64) -> bool {
        self.news_read.saturating_add(NEWS_MS) > now
    }

    /// How far an account was read, unless that began so long ago that it is to be read anew.
    pub(crate) fn fresh_reach(&self, account: &str, now: u64) -> Option<Reach> {
        let reach = self.reach.get(account)?;
        (reach.since.saturating_add(ANEW_MS) > now).then_some(*reach)
    }

    /// Whether all that waits of an account is here.
    pub(crate) fn is_whole(&self, account: &str) -> bool {
        self.reach.get(account).is_some_and(|reach| !reach.more)
    }

    /// A pull begins.
    pub(crate) fn begin(&self, after: Option<Cursor>) -> Begun {
        Begun {
            after,
            forgotten: self.forgotten,
            evicted: None,
        }
    }

    /// A page of this account was pulled at `now`. Whether that is of use: nothing was forgotten meanwhile.
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
            // What was read before goes further.
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

    /// All of a pair is here up to and with this place.
    pub(crate) fn reached(&mut self, member: MemberId, (priority, key): Place) {
        let bound = (priority, JobKey(key.0.saturating_add(1)));
        let known = self.bounds.get(member).copied();
        let bound = known.map_or(bound, |known| known.max(bound));
        self.bounds.insert(member, bound);
    }

    /// Everything was pulled.
    pub(crate) fn all_here(&mut self, begun: Option<Begun>) {
        self.all_here = begun.is_some_and(|begun| begun.forgotten == self.forgotten);
    }

    /// Whether all that waits is here, as far as news tell.
    pub(crate) fn is_all_here(&self, now: u64) -> bool {
        self.all_here && self.hears_news(now)
    }

    /// A job that waits is not here any more.
    pub(crate) fn evicted(&mut self, member: MemberId, account: &str, job: Cursor) {
        self.all_here = false;
        let place = (Reverse(job.priority), job.key);
        if let Some(bound) = self.bounds.get_mut(member) {
            *bound = place.min(*bound);
        }
        // It is the first one that is read next. Of what was read behind it nothing is here: the deepest go first.
        let Some(reach) = self.reach.get_mut(account) else {
            return;
        };
        reach.more = true;
        if rank(job) <= rank(reach.last) {
            reach.last = just_before(job);
        }
    }

    /// Whether everything before this place is here.
    pub(crate) fn covers(&self, member: MemberId, place: Place) -> bool {
        self.bounds.get(member).is_some_and(|bound| place < *bound)
    }

    /// Forgets what is of no use any more.
    pub(crate) fn tidy(
        &mut self,
        is_counted: impl Fn(&str) -> bool,
        is_known: impl Fn(MemberId) -> bool,
    ) {
        self.reach.retain(|account, _| is_counted(account));
        self.bounds.retain(|member, _| is_known(member));
    }
}

/// The place before a job.
pub(crate) fn just_before(job: Cursor) -> Cursor {
    let key = JobKey(job.key.0.saturating_sub(1));
    Cursor { key, ..job }
}

/// In the order of pages.
pub(crate) fn rank(job: Cursor) -> (Reverse<u8>, Reverse<i16>, JobKey) {
    (Reverse(job.class), Reverse(job.priority), job.key)
}

/// What a find would be for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Unknown {
    /// Accounts of which it could bring something better than what is here; none given: all.
    pub accounts: Option<BTreeSet<String>>,
    /// The most memory that the best known job of another account needs, MB.
    pub needs_mb: u32,
}

impl Unknown {
    /// Whether a find could bring nothing better.
    pub(crate) fn is_nothing(&self) -> bool {
        self.accounts.as_ref().is_some_and(BTreeSet::is_empty)
    }

    /// As a find names them: nobody for all.
    pub(crate) fn names(self) -> Vec<String> {
        let accounts = self.accounts.filter(|names| names.len() <= NAMED_MAX);
        accounts.unwrap_or_default().into_iter().collect()
    }
}
