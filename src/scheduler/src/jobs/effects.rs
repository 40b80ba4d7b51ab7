//! Applies the effects of a job's new state to this replica: its memory, the engine, waiting requests and jobs, hints.
//!
//! States that this replica wrote come to [`JobFlow::changed`], [`JobFlow::created`] and [`JobFlow::claim_committed`]. States that
//! it read, or that a peer told, come to [`JobFlow::observe`]. Each version of a job has its effects once.

use std::{borrow::Borrow, collections::BTreeMap, sync::Arc};

use fairlead_dispatch::{Event, JobFacts, JobKey, Millis, OfferKey};
use fairlead_job::{Health, JobId, Stage};
use fairlead_store::{JobState, StoredJob, Version};

use crate::jobs::JobFlow;
use fairlead_base::mailbox::Mailbox;
use fairlead_known::{
    live_jobs::Sight,
    open_requests::KnownClaim,
    outbox::{BODIES_MAX, SUBMITTED_MAX, Written},
    seen_versions::Noted,
};
use fairlead_lifecycle::{
    changed::Changed,
    engine_facts::{engine_version, facts, running},
};

/// How long a hinted job is left to a replica that comes before this one, ms for each: time for it to claim
/// the job and to tell so.
const RANK_MS: u64 = 30;
/// For how long after its start a replica takes no hints of jobs that wait, ms: longer than a hint is under way.
const YOUNG_MS: u64 = 10_000;
/// An end that is older than this was seen, or is not charged here, ms.
const UNSEEN_MS: u64 = 10_000;

/// How a state came to be known.
enum Source<'a> {
    /// It was read, or told by a peer. If it waits, this replica leaves it to others until then.
    Seen(Millis),
    /// This replica created the job.
    Created,
    /// This replica changed this state.
    Changed(&'a JobState),
    /// This replica's engine claimed the job, and is told by whose offer.
    Claimed,
}

/// What the engine is told of jobs together.
#[derive(Default)]
struct EngineNews {
    waiting: Vec<JobFacts>,
    others: Vec<Event>,
}

impl EngineNews {
    /// First who waits, then whose attempt is over: else a host gets another job while nobody knows that its last one
    /// waits again.
    fn tell(self, engine: &Mailbox) {
        if !self.waiting.is_empty() {
            engine.tell(Event::JobsLearned(self.waiting));
        }
        for event in self.others {
            engine.tell(event);
        }
    }
}

impl JobFlow {
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
    /// False: it is not believed.
    pub(crate) fn observe_hinted(&self, stored: &StoredJob) -> bool {
        if stored.state.stage == Stage::Submit && self.ctx.clock.age_ms() < YOUNG_MS {
            return false;
        }
        let now = self.ctx.clock.now();
        let rank = self.ctx.turn_for(stored.state.job_id);
        let before = u64::try_from(rank).unwrap_or(u64::MAX).saturating_add(1);
        let wait_ms = RANK_MS.saturating_mul(before);
        let from = Millis(now.0.saturating_add(wait_ms));
        self.observe_from(stored, from);
        self.shards_acknowledged(stored);
        self.acknowledged(stored.state.job_id, stored.version);
        true
    }

    /// The store acknowledged this version, and its effects are known here: no round need read it, and it stays.
    pub(crate) fn acknowledged(&self, id: JobId, version: Version) {
        self.seen.prove(id, version);
        if let Some(place) = self.ctx.store.place_of(id) {
            self.feed.acknowledge(&place, version);
        }
    }

    fn observe_from(&self, stored: &StoredJob, not_before: Millis) {
        let id = stored.state.job_id;
        self.weigh(id, stored.version);
        let live = self.live.get(id);
        if live.is_some_and(|live| live.stored.version >= stored.version) {
            return;
        }
        let mut news = EngineNews::default();
        if self.apply(stored, &Source::Seen(not_before), &mut news) {
            news.tell(&self.ctx.engine);
            self.changes.announce(id);
        }
    }

    /// A job was read at this version; says whether that is as new as what was seen.
    pub(crate) fn weigh(&self, id: JobId, version: Version) -> bool {
        let newest = self.newest(id);
        if let Some(newest) = newest {
            self.vanished_writes
                .weigh(id, version, newest, self.ctx.clock.now());
        }
        newest <= Some(version)
    }

    /// The newest version of a job that was seen lately.
    pub(crate) fn newest(&self, id: JobId) -> Option<Version> {
        let held = self.live.get(id).map(|live| live.stored.version);
        held.max(self.seen.newest(id))
    }

    /// This replica changed a state, and the store acknowledged it.
    pub(crate) fn changed(&self, changed: &Changed) {
        let (before, after) = (&changed.before.state, &changed.after.state);
        self.count_change(before, after);
        let shared = Arc::new(changed.after.clone());
        let mut news = EngineNews::default();
        self.apply(&shared, &Source::Changed(before), &mut news);
        news.tell(&self.ctx.engine);
        self.changes.announce(after.job_id);
        if after.reused_from.is_some() && before.reused_from.is_none() {
            self.ctx.metrics.reused.inc();
        }
        for listener in &self.listeners {
            listener.changed(before, after);
        }
        self.parent_written(&changed.after);
        self.acknowledged(after.job_id, shared.version);
        self.ctx.outbox.job(&shared, Written::Changed);
    }

    /// This replica created jobs, and the store acknowledged them, and their bodies at these versions. Nobody waits for a
    /// change of a job whose id nobody knows.
    pub(crate) fn created(&self, jobs: &[&StoredJob], bodies: &BTreeMap<JobId, Version>) {
        let many = u64::try_from(jobs.len()).unwrap_or(u64::MAX);
        self.ctx.metrics.submitted.inc_by(many);
        // One that has moved on was told of when that was seen: another that was slow to be stored may have held it up.
        let is_newest = |job: &&&StoredJob| {
            let is_new = job.state.stage == Stage::Submit || job.state.reused_from.is_some();
            is_new && self.weigh(job.state.job_id, job.version)
        };
        let mut news = EngineNews::default();
        let told = if self.ctx.outbox.has_readers() {
            SUBMITTED_MAX
        } else {
            0
        };
        for (n, job) in jobs.iter().filter(is_newest).enumerate() {
            if n < told {
                let id = job.state.job_id;
                let text = (n < BODIES_MAX).then(|| self.ctx.store.body_at_hand(id));
                let body = text.flatten();
                self.ctx.outbox.job(job, Written::Created(body));
                if let Some(version) = bodies.get(&id) {
                    self.ctx.outbox.body(id, *version);
                }
            }
            self.apply(*job, &Source::Created, &mut news);
            if job.state.reused_from.is_some() {
                self.ctx.metrics.reused.inc();
                self.shards_acknowledged(job);
                self.changes.announce(job.state.job_id);
                continue;
            }
            for listener in &self.listeners {
                listener.created(&job.state);
            }
            if job.state.shards.is_some() {
                let now = self.ctx.clock.now();
                self.parents.stirred(job, true, now);
            }
        }
        for job in jobs {
            self.acknowledged(job.state.job_id, job.version);
        }
        for (id, version) in bodies {
            self.acknowledged(*id, *version);
        }
        news.tell(&self.ctx.engine);
    }

    /// The store acknowledged a claim for an offer. False: nobody waits for an answer to that offer any more.
    pub(crate) fn claim_committed(&self, offer: OfferKey, job: &Arc<StoredJob>) -> bool {
        let (state, version) = (&job.state, job.version);
        let id = state.job_id;
        self.count_claim(state);
        let is_news = self.apply(job, &Source::Claimed, &mut EngineNews::default());
        if !is_news && self.newest(id) == Some(version) {
            // It was read before this answer came, perhaps at this very moment. The request must find it held.
            self.live.put(Arc::clone(job), self.sight());
        }
        self.acknowledged(id, version);
        self.ctx.outbox.job(job, Written::Changed);
        self.changes.announce(id);
        // Noted before the engine is told: its answer takes the waiter away. One that hangs up from here on
        // finds the job among its claimed ones and puts it back itself.
        let waiter = self.waiters.get(offer);
        let waits = waiter.is_some();
        if let Some(waiter) = waiter {
            waiter.claimed.note(KnownClaim::of(state));
        }
        self.ctx.engine.tell(Event::ClaimCommitted {
            job: JobKey(id.get()),
            offer,
            version: engine_version(version),
        });
        waits
    }

    /// Applies a state that is newer than all that was seen of its job, and collects what the engine is to be told.
    /// False: it is not newer, and what was seen has had its effects.
    fn apply<J>(&self, job: &J, source: &Source<'_>, news: &mut EngineNews) -> bool
    where
        J: Borrow<StoredJob> + Into<Arc<StoredJob>> + Clone,
    {
        let after: &StoredJob = job.borrow();
        let state = &after.state;
        let noted = self.seen.note(after, self.ctx.clock.now());
        if noted == Noted::Old {
            return false;
        }
        let held = self.live.get(state.job_id).map(|live| live.stored);
        if state.stage.is_held() {
            self.live.put(job.clone(), self.sight());
        } else {
            self.live.remove(state.job_id);
        }
        let held = held.as_deref().map(|held| &held.state);
        if let Some(held) =
            held.filter(|held| held.claim_token != state.claim_token || !state.stage.is_held())
        {
            self.lab
                .pools
                .job_over(&held.host, self.ctx.clock.wall_ms());
        }
        let before = match source {
            Source::Changed(before) => Some(*before),
            Source::Seen(_) | Source::Created | Source::Claimed => held,
        };
        match source {
            Source::Seen(not_before) => {
                let not_before = self.with_others(state, None).max(*not_before);
                self.tell_of(after, held, not_before, news);
            }
            Source::Changed(before) => {
                let not_before = self.with_others(state, Some(before));
                self.tell_of(after, held, not_before, news);
            }
            Source::Created if state.ready => news.waiting.push(facts(after)),
            // The engine does not know the job, or claimed it.
            Source::Created | Source::Claimed => {}
        }
        let began_unseen = held.is_none() && before.is_none_or(|before| before.stage.is_held());
        if noted == Noted::News && began_unseen && self.ran_elsewhere(state) {
            news.others.push(Event::JobHeld(Box::new(running(after))));
            news.others.push(self.attempt_over(after));
        }
        for listener in &self.listeners {
            listener.seen(state);
        }
        self.set_alarm(after);
        self.note_shards(state);
        if let Some(before) = before {
            self.count_host_failure(before, state);
        }
        true
    }

    /// What the engine is told of a job depends on what it knows: who held the job, as far as was known here.
    fn tell_of(
        &self,
        after: &StoredJob,
        held: Option<&JobState>,
        not_before: Millis,
        news: &mut EngineNews,
    ) {
        let state = &after.state;
        let (is_held, waits) = (
            state.stage.is_held(),
            state.stage == Stage::Submit && state.ready,
        );
        let stays = is_held && held.is_some_and(|held| held.claim_token == state.claim_token);
        if waits {
            news.waiting.push(JobFacts {
                not_before,
                ..facts(after)
            });
        }
        if held.is_some() && !stays {
            news.others.push(self.attempt_over(after));
        }
        if is_held && !stays {
            news.others.push(Event::JobHeld(Box::new(running(after))));
        }
        if !is_held && !waits {
            // Also one that was held: it may have waited in between, and have been read as it did.
            let version = engine_version(after.version);
            let job = JobKey(state.job_id.get());
            news.others.push(Event::JobGone(job, version));
        }
    }

    /// Whether a job that ended began at another replica, not long ago: if nobody heard of it in between, it is charged
    /// all the same.
    fn ran_elsewhere(&self, state: &JobState) -> bool {
        let ran = state.stage == Stage::Finish && state.dispatch_ms > 0;
        let ago_ms = || {
            let end = self.on_own_clock(state.end_ms);
            self.ctx.clock.now().0.saturating_sub(end.0)
        };
        ran && state.replica != self.ctx.config.replica && ago_ms() <= UNSEEN_MS
    }

    fn attempt_over(&self, job: &StoredJob) -> Event {
        let after = &job.state;
        let is_over = after.stage.is_terminal();
        Event::JobEnded {
            job: JobKey(after.job_id.get()),
            version: engine_version(job.version),
            ran: matches!(after.health, Health::Success | Health::Fail)
                && after.stage == Stage::Finish,
            at: if is_over {
                self.on_own_clock(after.end_ms)
            } else {
                self.ctx.clock.now()
            },
        }
    }

    /// Now, for a job that is heard of.
    pub(crate) fn sight(&self) -> Sight {
        let now = self.ctx.clock.now();
        Sight {
            now,
            stage_since: now,
            ahead_ms: self.ctx.clock.ahead_ms(),
        }
    }

    /// A time of a document, which perhaps another machine wrote, on this replica's own clock: never later
    /// than now.
    pub(crate) fn on_own_clock(&self, wall_ms: u64) -> Millis {
        let ago = self.ctx.clock.wall_ms().saturating_sub(wall_ms);
        Millis(self.ctx.clock.now().0.saturating_sub(ago))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fairlead_store::JobState;

    use super::*;
    use crate::testing::{flows, state};
    use fairlead_known::{feasibility::REMEMBER_MS, seen_versions::Seen};

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
        let (_data, flows) = flows().await;
        let ended = |seq_no| {
            let mut job = at(seq_no, Stage::Finish);
            job.state.health = Health::Success;
            job.state.dispatch_ms = flows.ctx.clock.wall_ms() - 5_000;
            job.state.end_ms = flows.ctx.clock.wall_ms();
            job
        };
        flows.jobs.observe(&ended(6));
        let told = flows.ctx.engine.take().len();
        flows.jobs.observe(&ended(7));
        assert_eq!((told, flows.ctx.engine.take().len()), (3, 1));
    }

    #[tokio::test]
    async fn a_search_that_lags_never_brings_an_ended_job_back() {
        let (_data, flows) = flows().await;
        flows.jobs.observe(&at(5, Stage::Running));
        assert_eq!(flows.jobs.live.count(), 1);
        flows.jobs.observe(&at(6, Stage::Finish));
        assert_eq!(flows.jobs.live.count(), 0);
        flows.jobs.observe(&at(5, Stage::Running));
        assert_eq!(flows.jobs.live.count(), 0, "version 6 was seen");
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_hint_to_a_young_replica_does_not_bring_an_ended_job_back() {
        let (_data, flows) = flows().await;
        let hints = [at(5, Stage::Submit), at(6, Stage::Submit)];
        flows.jobs.observe_hinted(&hints[0]);
        assert!(flows.ctx.engine.take().is_empty());
        tokio::time::advance(Duration::from_millis(YOUNG_MS)).await;
        flows.jobs.observe_hinted(&hints[1]);
        assert_eq!(flows.ctx.engine.take().len(), 1);
    }

    #[tokio::test]
    async fn a_job_that_went_to_another_host_between_two_looks_is_that_hosts() {
        let (_data, flows) = flows().await;
        flows.jobs.observe(&at(5, Stage::Running));
        let mut again = at(9, Stage::Dispatch);
        again.state.host = "other".to_owned();
        again.state.claim_token = "u".to_owned();
        flows.jobs.observe(&again);
        assert!(flows.jobs.live.of_host("h").is_empty());
        assert_eq!(flows.jobs.live.of_host("other").len(), 1);
    }

    /// The answer to a claim may come after the end of its job was seen.
    #[tokio::test]
    async fn a_claim_that_is_heard_of_late_brings_no_ended_job_back() {
        let (_data, flows) = flows().await;
        flows.jobs.observe(&at(6, Stage::Finish));
        flows.ctx.engine.take();
        let waits = flows
            .jobs
            .claim_committed(OfferKey(1), &Arc::new(at(5, Stage::Dispatch)));
        assert!(!waits && flows.jobs.live.count() == 0);
        assert_eq!(flows.ctx.engine.take().len(), 1, "the engine waits for it");
    }

    #[tokio::test]
    async fn a_created_job_that_was_seen_before_is_told_once() {
        let (_data, flows) = flows().await;
        let jobs = [at(5, Stage::Submit), at(6, Stage::Submit)];
        flows.jobs.observe(&jobs[0]);
        flows.ctx.engine.take();
        flows.jobs.created(&[&jobs[0]], &BTreeMap::new());
        assert_eq!(flows.ctx.engine.take().len(), 0);
        flows.jobs.created(&[&jobs[1]], &BTreeMap::new());
        assert_eq!(flows.ctx.engine.take().len(), 1);
    }
}
