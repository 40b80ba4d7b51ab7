//! Observes the writes of other replicas: changes read from the store each second, and hints of peers.
//!
//! Both end in [`Core::observe`], which takes a state that is newer than the known one and applies its effects here.
//! The next read of the store finds hints that were lost. The next counts find changes that a read missed, and so does
//! the check of a lease that nobody renews.

use fairlead_dispatch::Event;
use fairlead_store::{ChangeMark, ChangePage, Changes, StoreError};

use crate::core::Core;

/// Jobs of one page of changes.
const PAGE: u32 = 1_000;
/// Most pages of changes read in one round; what is left comes in the next.
const PAGES_MAX: usize = 20;
/// Jobs of each further page of new jobs.
const LONG_PAGE: u32 = 5_000;
/// Most pages of new jobs read in one round.
const WAITING_PAGES_MAX: usize = 5;
/// New jobs of others that are so many in one round are not all read.
const NEWS_MAX: usize = 1_000;

/// How far the changes were read: a change may become visible after a later one, so each round reads from
/// where the round before the last one ended.
#[derive(Debug, Default)]
pub(crate) struct Position {
    before_last: ChangeMark,
    last: ChangeMark,
}

impl Position {
    fn at(mark: &ChangeMark) -> Self {
        Self {
            before_last: mark.clone(),
            last: mark.clone(),
        }
    }

    fn moved_to(&mut self, mark: ChangeMark) {
        self.before_last = std::mem::replace(&mut self.last, mark);
    }
}

/// Where a replica stands in the changes.
#[derive(Debug, Default)]
pub(crate) struct Positions {
    pub(crate) waiting: Position,
    pub(crate) others: Position,
    /// Of the others, those that were read once more.
    pub(crate) again: Position,
}

impl Positions {
    /// Nothing before `mark` needs to be read.
    pub(crate) fn at(mark: &ChangeMark) -> Self {
        Self {
            waiting: Position::at(mark),
            others: Position::at(mark),
            again: Position::at(mark),
        }
    }
}

impl Core {
    /// Reads what changed since the last round: while that fits in a page, all in one request. True: there were
    /// too many new jobs to read them all.
    pub(crate) async fn catch_up(&self, at: &mut Positions) -> Result<bool, StoreError> {
        let asked = [
            behind(&at.others.before_last, false),
            behind(&at.waiting.before_last, true),
        ];
        let mut pages = self.store.changes(&asked).await?.into_iter();
        let others = pages.next().unwrap_or_default();
        let waiting = pages.next().unwrap_or_default();
        at.others.moved_to(self.read_on(others).await?);
        let waiting = self.read_waiting(waiting).await?;
        let missed = waiting.more;
        let mark = if missed {
            self.engine.tell(Event::NewsMissed);
            self.store.change_mark().await?
        } else {
            self.engine.tell(Event::NewsRead);
            waiting.mark
        };
        at.waiting.moved_to(mark);
        Ok(missed)
    }

    /// Takes in new jobs, but not a flood of others': counts and pulls choose among them. Those submitted here are
    /// known. Answers the last page: there is more if not all was read.
    async fn read_waiting(&self, mut page: ChangePage) -> Result<ChangePage, StoreError> {
        let mut news = self.take_in(&page).await?;
        for _ in 1..WAITING_PAGES_MAX {
            if !page.more || news >= NEWS_MAX {
                break;
            }
            let next = Changes {
                limit: LONG_PAGE,
                ..behind(&page.mark, true)
            };
            let next = self.store.changes(&[next]).await?;
            page = next.into_iter().next().unwrap_or_default();
            news += self.take_in(&page).await?;
        }
        Ok(page)
    }

    /// Reads once more what changed, from a mark that is many looks old: a write that nobody has acknowledged yet may be
    /// missing where a search looks, while later ones are there.
    pub(crate) async fn catch_up_again(&self, at: &mut Positions) -> Result<(), StoreError> {
        let asked = [behind(&at.again.before_last, false)];
        let page = self.store.changes(&asked).await?.into_iter().next();
        at.again
            .moved_to(self.read_on(page.unwrap_or_default()).await?);
        Ok(())
    }

    /// Takes in a page of changes and those behind it. Answers how far that went.
    async fn read_on(&self, mut page: ChangePage) -> Result<ChangeMark, StoreError> {
        self.take_in(&page).await?;
        for _ in 1..PAGES_MAX {
            if !page.more {
                break;
            }
            let next = self.store.changes(&[behind(&page.mark, false)]).await?;
            page = next.into_iter().next().unwrap_or_default();
            self.take_in(&page).await?;
        }
        Ok(page.mark)
    }

    /// Of what changed, reads what is newer than all that was seen: that is seldom much, since this replica knows its
    /// own writes and is told of those of others.
    /// Answers how much that was.
    async fn take_in(&self, page: &ChangePage) -> Result<usize, StoreError> {
        let mut news = Vec::new();
        for &(id, version) in &page.jobs {
            self.weigh(id, version);
            if self.newest(id) < Some(version) {
                news.push(id);
            }
        }
        if news.is_empty() {
            return Ok(0);
        }
        for job in self.store.get_readable(&news).await? {
            self.observe(&job);
        }
        Ok(news.len())
    }
}

fn behind(since: &ChangeMark, waiting: bool) -> Changes {
    Changes {
        since: since.clone(),
        waiting,
        limit: PAGE,
    }
}
