//! Observes the writes of other replicas: hints of peers, and changes that nobody told, read from the store each second.
//!
//! Both end in [`JobFlow::observe`], which takes a state that is newer than the known one and applies its effects here.
//! `known/feed` tells by the numbers of changes which of them nobody told. The next counts find changes that a read
//! missed, and so does the check of a lease that nobody renews.

use fairlead_dispatch::{Event, Millis};
use fairlead_store::{ChangeMark, ChangePage, ChangeRanges, Changes, StoreError};

use crate::jobs::JobFlow;

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

impl JobFlow {
    /// Reads the changes that nobody told, as far as searches see them. True: there were too many new jobs to read them
    /// all.
    pub(crate) async fn catch_up(&self) -> Result<bool, StoreError> {
        let began = self.ctx.clock.now();
        let visible = self.ctx.store.change_mark().await?;
        let now = self.ctx.clock.now();
        let within = self.feed.due(&visible, now);
        let missed = if within.is_empty() {
            false
        } else {
            self.read_missing(&within, now).await?
        };
        self.ctx.engine.tell(if missed {
            Event::NewsMissed
        } else {
            Event::NewsRead
        });
        if !missed {
            self.feed.caught_up(began);
        }
        Ok(missed)
    }

    /// Reads the missing changes: while they fit in a page, all in one request.
    async fn read_missing(&self, within: &ChangeRanges, now: Millis) -> Result<bool, StoreError> {
        let begin = ChangeMark::default();
        let asked = [false, true].map(|waiting| behind(&begin, within, waiting));
        let mut pages = self.ctx.store.changes(&asked).await?.into_iter();
        let others = pages.next().unwrap_or_default();
        let waiting = pages.next().unwrap_or_default();
        let others = self.read_on(others, within).await?;
        let waiting = self.read_waiting(waiting, within).await?;
        let ends = others.more.then_some(&others.mark);
        self.feed.was_read(now, ends);
        Ok(waiting.more)
    }

    /// Takes in new jobs, but not a flood of others': counts and pulls choose among them. Answers the last page: there
    /// is more if not all was read.
    async fn read_waiting(
        &self,
        mut page: ChangePage,
        within: &ChangeRanges,
    ) -> Result<ChangePage, StoreError> {
        let mut news = self.take_in(&page).await?;
        for _ in 1..WAITING_PAGES_MAX {
            if !page.more || news >= NEWS_MAX {
                break;
            }
            let next = Changes {
                limit: LONG_PAGE,
                ..behind(&page.mark, within, true)
            };
            let next = self.ctx.store.changes(&[next]).await?;
            page = next.into_iter().next().unwrap_or_default();
            news += self.take_in(&page).await?;
        }
        Ok(page)
    }

    /// Takes in a page of changes and those behind it. Answers the last page: the next round reads on behind it.
    async fn read_on(
        &self,
        mut page: ChangePage,
        within: &ChangeRanges,
    ) -> Result<ChangePage, StoreError> {
        self.take_in(&page).await?;
        for _ in 1..PAGES_MAX {
            if !page.more {
                break;
            }
            let next = self
                .ctx
                .store
                .changes(&[behind(&page.mark, within, false)])
                .await?;
            page = next.into_iter().next().unwrap_or_default();
            self.take_in(&page).await?;
        }
        Ok(page)
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
        for job in self.ctx.store.get_readable(&news).await? {
            self.observe(&job);
        }
        Ok(news.len())
    }
}

fn behind(since: &ChangeMark, within: &ChangeRanges, waiting: bool) -> Changes {
    Changes {
        since: since.clone(),
        within: within.clone(),
        waiting,
        limit: PAGE,
    }
}
