//! What other replicas did: read from the store by sequence number each second, or told by a peer.
//!
//! Both ways end in [`Core::observe`], which takes a state that is newer than what is known and gives it its
//! effects here. What a peer forgot to tell is found by the next look at the store; what a look missed is
//! found by the next counts, or when a lease that nobody renews is looked at.

use std::sync::Arc;

use fairlead_dispatch::{Event, JobFacts, JobKey, Millis};
use fairlead_job::{Health, JobId, Stage};
use fairlead_store::{ChangeMark, ChangePage, Changes, StoreError, StoredJob, Version};

use crate::{
    core::Core,
    jobs::change::Changed,
    known::seen_versions::Noted,
    lifecycle::engine_facts::{engine_version, facts, running},
};

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
/// How long a hinted job is left to a replica that comes before this one, ms for each: time for it to claim
/// the job and to tell so.
const RANK_MS: u64 = 30;
/// For how long after its start a replica takes no hints of jobs that wait, ms: longer than a hint is under way.
const YOUNG_MS: u64 = 10_000;
/// An end that is older than this was seen, or is not charged here, ms.
const UNSEEN_MS: u64 = 10_000;

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

    /// A state that was read from the store or told by a peer: if it is newer than what is known, it has
    /// its effects here.
    pub(crate) fn observe(&self, stored: &StoredJob) {
        self.observe_from(stored, Millis(0));
    }

    /// A peer tells of a state at once. A job that waits is new to all replicas at the same moment: first comes
    /// who told of it, which knew it before, then the others in their order for this job, each a moment after
    /// the one before, so that claims seldom meet.
    ///
    /// A job that ended before this replica began is never told of again, so a late hint that it waits would be
    /// believed for ever: a young replica learns what waits from the store alone.
    pub(crate) fn observe_hinted(&self, stored: &StoredJob) {
        if stored.state.stage == Stage::Submit && self.clock.age_ms() < YOUNG_MS {
            return;
        }
        let now = self.clock.now();
        let rank = self.replicas.rank(stored.state.job_id, &self.run, now);
        let before = u64::try_from(rank).unwrap_or(u64::MAX).saturating_add(1);
        let wait_ms = RANK_MS.saturating_mul(before);
        let from = Millis(now.0.saturating_add(wait_ms));
        self.observe_from(stored, from);
    }

    fn observe_from(&self, stored: &StoredJob, not_before: Millis) {
        let id = stored.state.job_id;
        self.weigh(id, stored.version);
        match self.live.get(id) {
            Some(live) if live.stored.version >= stored.version => {}
            Some(live) => self.changed(&Changed {
                before: Arc::unwrap_or_clone(live.stored),
                after: stored.clone(),
            }),
            None => self.observe_unheld(stored, not_before),
        }
    }

    /// A job was read at this version; says whether that is as new as what was seen.
    pub(crate) fn weigh(&self, id: JobId, version: Version) -> bool {
        let newest = self.newest(id);
        if let Some(newest) = newest {
            self.vanished_writes
                .weigh(id, version, newest, self.clock.now());
        }
        newest <= Some(version)
    }

    /// The newest version of a job that was seen lately.
    fn newest(&self, id: JobId) -> Option<Version> {
        let held = self.live.get(id).map(|live| live.stored.version);
        held.max(self.seen.newest(id))
    }

    /// The same for a job that no testbox holds, as far as is known.
    fn observe_unheld(&self, stored: &StoredJob, not_before: Millis) {
        let state = &stored.state;
        let id = state.job_id;
        let noted = self.seen.note(stored, self.clock.now());
        if noted == Noted::Old {
            return;
        }
        if state.stage.is_held() {
            self.engine.tell(Event::JobHeld(Box::new(running(stored))));
            self.live.put(stored.clone(), self.sight());
        } else if state.stage == Stage::Submit && state.ready {
            let facts = JobFacts {
                not_before,
                ..facts(stored)
            };
            self.engine.tell(Event::JobsLearned(vec![facts]));
        } else {
            let version = engine_version(stored.version);
            self.engine.tell(Event::JobGone(JobKey(id.get()), version));
            if noted == Noted::News {
                self.charge_unseen(stored);
            }
            self.dependants.add(state);
            self.sequences.seen(state);
        }
        self.set_alarm(stored);
        self.changes.announce(id);
    }

    /// A job that began and ended elsewhere between two looks is charged all the same, once.
    pub(crate) fn charge_unseen(&self, stored: &StoredJob) {
        let state = &stored.state;
        let ran = state.stage == Stage::Finish && state.dispatch_ms > 0;
        if !ran || state.replica == self.config.replica {
            return;
        }
        let at = self.on_own_clock(state.end_ms);
        if self.clock.now().0.saturating_sub(at.0) > UNSEEN_MS {
            return;
        }
        self.engine.tell(Event::JobHeld(Box::new(running(stored))));
        self.engine.tell(Event::JobEnded {
            job: JobKey(state.job_id.get()),
            ran: matches!(state.health, Health::Success | Health::Fail),
            at,
        });
    }
}

fn behind(since: &ChangeMark, waiting: bool) -> Changes {
    Changes {
        since: since.clone(),
        waiting,
        limit: PAGE,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fairlead_store::JobState;

    use super::*;
    use crate::{
        known::{feasibility::REMEMBER_MS, seen_versions::Seen},
        testing::{core, state},
    };

    fn at(seq_no: u64, stage: Stage) -> StoredJob {
        StoredJob {
            state: JobState {
                stage,
                host: "h".to_owned(),
                claim_token: "t".to_owned(),
                ..state(7)
            },
            version: Version {
                primary_term: 1,
                seq_no,
            },
        }
    }

    #[test]
    fn only_newer_versions_are_news_over_generations() {
        let seen = Seen::default();
        let note = |seq_no, stage, now| seen.note(&at(seq_no, stage), Millis(now));
        let running = Stage::Running;
        assert_eq!(note(5, running, 0), Noted::News);
        assert_eq!(note(5, running, 1), Noted::Old);
        assert_eq!(note(4, running, REMEMBER_MS + 1), Noted::Old);
        assert_eq!(note(6, Stage::Finish, REMEMBER_MS + 2), Noted::News);
        assert_eq!(note(6, Stage::Finish, 2 * REMEMBER_MS), Noted::Old);
        assert_eq!(note(7, Stage::Finish, 3 * REMEMBER_MS), Noted::AfterTheEnd);
    }

    #[tokio::test]
    async fn a_job_whose_end_is_written_twice_is_charged_once() {
        let (_data, core) = core().await;
        let ended = |seq_no| {
            let mut job = at(seq_no, Stage::Finish);
            job.state.health = Health::Success;
            job.state.dispatch_ms = core.clock.wall_ms() - 5_000;
            job.state.end_ms = core.clock.wall_ms();
            job
        };
        core.observe(&ended(6));
        let told = core.engine.take().len();
        core.observe(&ended(7));
        assert_eq!((told, core.engine.take().len()), (3, 1));
    }

    #[tokio::test]
    async fn a_search_that_lags_never_brings_an_ended_job_back() {
        let (_data, core) = core().await;
        core.observe(&at(5, Stage::Running));
        assert_eq!(core.live.len(), 1);
        core.observe(&at(6, Stage::Finish));
        assert_eq!(core.live.len(), 0);
        core.observe(&at(5, Stage::Running));
        assert_eq!(core.live.len(), 0, "version 6 was seen");
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_hint_to_a_young_replica_does_not_bring_an_ended_job_back() {
        let (_data, core) = core().await;
        let hints = [at(5, Stage::Submit), at(6, Stage::Submit)];
        core.observe_hinted(&hints[0]);
        assert!(core.engine.take().is_empty());
        tokio::time::advance(Duration::from_millis(YOUNG_MS)).await;
        core.observe_hinted(&hints[1]);
        assert_eq!(core.engine.take().len(), 1);
    }

    #[tokio::test]
    async fn a_job_that_went_to_another_host_between_two_looks_is_that_hosts() {
        let (_data, core) = core().await;
        core.observe(&at(5, Stage::Running));
        let mut again = at(9, Stage::Dispatch);
        again.state.host = "other".to_owned();
        again.state.claim_token = "u".to_owned();
        core.observe(&again);
        assert!(core.live.of_host("h").is_empty());
        assert_eq!(core.live.of_host("other").len(), 1);
    }
}
