//! Applies the effects of a job's change to this replica: its memory, the engine, waiting requests and jobs, hints.
//!
//! A change made here ends in [`Core::changed`]. A change by another replica ends in [`Core::observe`]. Each version of
//! a job has its effects once.

use std::sync::Arc;

use fairlead_dispatch::{Event, JobFacts, JobKey, Millis};
use fairlead_job::{Health, JobId, Stage};
use fairlead_store::{JobState, StoredJob, Version};

use crate::{
    core::Core,
    known::{live_jobs::Sight, seen_versions::Noted},
    lifecycle::{
        changed::Changed,
        engine_facts::{engine_version, facts, running},
    },
};

/// How long a hinted job is left to a replica that comes before this one, ms for each: time for it to claim
/// the job and to tell so.
const RANK_MS: u64 = 30;
/// For how long after its start a replica takes no hints of jobs that wait, ms: longer than a hint is under way.
const YOUNG_MS: u64 = 10_000;
/// An end that is older than this was seen, or is not charged here, ms.
const UNSEEN_MS: u64 = 10_000;

impl Core {
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
        let rank = self
            .others
            .replicas
            .rank(stored.state.job_id, &self.others.run, now);
        let before = u64::try_from(rank).unwrap_or(u64::MAX).saturating_add(1);
        let wait_ms = RANK_MS.saturating_mul(before);
        let from = Millis(now.0.saturating_add(wait_ms));
        self.observe_from(stored, from);
    }

    fn observe_from(&self, stored: &StoredJob, not_before: Millis) {
        let id = stored.state.job_id;
        self.weigh(id, stored.version);
        match self.jobs.live.get(id) {
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
            self.jobs
                .vanished_writes
                .weigh(id, version, newest, self.clock.now());
        }
        newest <= Some(version)
    }

    /// The newest version of a job that was seen lately.
    pub(super) fn newest(&self, id: JobId) -> Option<Version> {
        let held = self.jobs.live.get(id).map(|live| live.stored.version);
        held.max(self.jobs.seen.newest(id))
    }

    /// The same for a job that no testbox holds, as far as is known.
    fn observe_unheld(&self, stored: &StoredJob, not_before: Millis) {
        let state = &stored.state;
        let id = state.job_id;
        let noted = self.jobs.seen.note(stored, self.clock.now());
        if noted == Noted::Old {
            return;
        }
        if state.stage.is_held() {
            self.engine.tell(Event::JobHeld(Box::new(running(stored))));
            self.jobs.live.put(stored.clone(), self.sight());
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
            self.waiting.dependants.add(state);
            self.waiting.sequences.seen(state);
        }
        self.set_alarm(stored);
        self.jobs.changes.announce(id);
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

    /// What follows here from an acknowledged change of a state. What the engine is told depends on what it
    /// knows, which may be older than what was changed.
    pub(crate) fn changed(&self, changed: &Changed) {
        let (before, after) = (&changed.before.state, &changed.after.state);
        let id = after.job_id;
        if self.jobs.seen.note(&changed.after, self.clock.now()) == Noted::Old {
            // The answer to the write came late: what was seen since has had its effects.
            self.jobs.changes.announce(id);
            return;
        }
        let known = self.jobs.live.get(id).map(|live| live.stored);
        let is_held = after.stage.is_held();
        if is_held {
            self.jobs.live.put(changed.after.clone(), self.sight());
        } else {
            self.jobs.live.remove(id);
        }
        let is_same = |known: &Arc<StoredJob>| known.state.claim_token == after.claim_token;
        let stays = is_held && known.as_ref().is_some_and(is_same);
        let waits = after.stage == Stage::Submit && after.ready;
        if waits {
            // Before its end: else its host gets another one while nobody knows that this one waits again.
            self.engine
                .tell(Event::JobsLearned(vec![facts(&changed.after)]));
        }
        if known.is_some() && !stays {
            self.tell_ended(after);
        }
        if is_held && !stays {
            self.engine
                .tell(Event::JobHeld(Box::new(running(&changed.after))));
        }
        if after.stage == Stage::Submit && !waits {
            self.waiting.dependants.add(after);
            self.waiting.sequences.seen(after);
        }
        self.set_alarm(&changed.after);
        if !waits && !is_held {
            // Also one that was held: it may have waited in between, and have been read as it did.
            let version = engine_version(changed.after.version);
            self.engine.tell(Event::JobGone(JobKey(id.get()), version));
            if known.is_none() && before.stage.is_held() {
                self.charge_unseen(&changed.after);
            }
        }
        self.jobs.changes.announce(id);
        self.count_host_failure(changed);
    }

    /// Counts an attempt that this replica's own write ended.
    pub(super) fn count_end(&self, changed: &Changed) {
        if let Some(health) = changed.attempt_ended() {
            self.metrics.attempt_ended(health.cause());
        }
    }

    fn tell_ended(&self, after: &JobState) {
        let is_over = after.stage.is_terminal();
        let at = if is_over {
            self.on_own_clock(after.end_ms)
        } else {
            self.clock.now()
        };
        self.engine.tell(Event::JobEnded {
            job: JobKey(after.job_id.get()),
            ran: matches!(after.health, Health::Success | Health::Fail)
                && after.stage == Stage::Finish,
            at,
        });
    }

    /// Now, for a job that is heard of.
    pub(crate) fn sight(&self) -> Sight {
        let now = self.clock.now();
        Sight {
            now,
            stage_since: now,
            ahead_ms: self.clock.ahead_ms(),
        }
    }

    /// A time of a document, which perhaps another machine wrote, on this replica's own clock: never later
    /// than now.
    pub(crate) fn on_own_clock(&self, wall_ms: u64) -> Millis {
        let ago = self.clock.wall_ms().saturating_sub(wall_ms);
        Millis(self.clock.now().0.saturating_sub(ago))
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
        assert_eq!(core.jobs.live.len(), 1);
        core.observe(&at(6, Stage::Finish));
        assert_eq!(core.jobs.live.len(), 0);
        core.observe(&at(5, Stage::Running));
        assert_eq!(core.jobs.live.len(), 0, "version 6 was seen");
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
        assert!(core.jobs.live.of_host("h").is_empty());
        assert_eq!(core.jobs.live.of_host("other").len(), 1);
    }
}
