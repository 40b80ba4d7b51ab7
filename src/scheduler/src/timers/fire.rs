//! Starts the runs of due timers.
//!
//! Each second a replica asks the store for the timers of the next seconds. Rendezvous hashing gives each timer an
//! order of replicas. The first one starts the run, and the others check a little later. Timers that are due together
//! are handled together: a batch is two writes of documents and one of jobs.

use std::{collections::BTreeMap, sync::Arc};

use fairlead_job::{JobId, Overlap, Shards, Stage};
use fairlead_store::{
    DocKind, DocWrite, DueDoc, Expect, ItemError, JobState, StoreError, StoredJob, Version,
};
use futures_util::{StreamExt, stream};

use crate::{
    submission::built_jobs::{BuiltJobs, Ids},
    timers::TimerFlow,
};
use fairlead_base::errors::Refusal;
use fairlead_known::{
    controllers::{AHEAD_MS, TIMERS},
    timers::{Known, Run, Stored, Timer, id_of},
};
use fairlead_lifecycle::attempt::{cancelled, to_be_stopped};

/// Most timers of one look at the store: those of some seconds, and those that it still shows as they were.
const LOOK_MAX: u32 = 10_000;
/// Jobs that are stopped side by side.
const STOPS_ABREAST: usize = 32;

/// A timer of a batch whose run is to be made.
pub(super) struct Begun {
    version: Version,
    pub(super) timer: Timer,
    pub(super) run: Run,
}

impl TimerFlow {
    /// Asks the store which timers are due in the next seconds: only which and when, for each is read by the one
    /// replica that begins its run.
    pub(crate) async fn read_timers(&self) -> Result<(), StoreError> {
        let now_ms = self.ctx.clock.wall_ms();
        self.known.sweep(now_ms);
        let before_ms = now_ms.saturating_add(AHEAD_MS);
        let due = self.ctx.store.due_docs(DocKind::Timer, before_ms, LOOK_MAX);
        for due in due.await? {
            if !self.known.was_seen_to(&due.id, due.version) {
                self.see_timer(due, now_ms);
            }
        }
        Ok(())
    }

    /// A search showed a timer that is soon due: remembers it. What is due already may be in the hands of another
    /// replica, which gets the same time for it as if it were due now.
    fn see_timer(&self, due: DueDoc, now_ms: u64) {
        let turn = self.timer_turn(&due.id);
        let at_ms = match turn {
            0 => due.at_ms,
            _ => due.at_ms.max(now_ms).saturating_add(TIMERS.later_ms(turn)),
        };
        let known = Known::Seen {
            id: due.id.clone(),
            version: due.version,
            is_first: turn == 0,
        };
        self.known.book.set(due.id, due.version, at_ms, known);
    }

    /// How many replicas come before this one for a timer.
    fn timer_turn(&self, id: &str) -> usize {
        let hash = blake3::hash(id.as_bytes());
        let (number, _) = hash
            .as_bytes()
            .split_first_chunk()
            .unwrap_or((&[0; 8], &[]));
        let key = JobId::new(u64::from_le_bytes(*number));
        self.ctx.turn_for(key)
    }

    /// Looks at it once more, a little later: whatever has become of it, or only if it is still the same.
    fn retry_timer(&self, stored: &Stored, is_first: bool) {
        self.retry_known(Known::Seen {
            id: stored.timer.id(),
            version: stored.version,
            is_first,
        });
    }

    fn retry_known(&self, known: Known) {
        let at_ms = self.ctx.clock.wall_ms().saturating_add(TIMERS.again_ms);
        let (id, version) = (known.id(), known.version());
        self.known.book.set(id, version, at_ms, known);
    }

    /// This machine's clock was set back, or it may have been: timers that would wait for a time by the old clock are due
    /// by the new one.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) async fn follow_clock(self: &Arc<Self>, is_step: bool) -> Result<(), StoreError> {
        let now_ms = self.ctx.clock.wall_ms();
        if is_step {
            // What was begun just before must be in the list. Clocks step seldom.
            self.ctx.store.refresh().await?;
        }
        let docs = self.ctx.store.list_docs(DocKind::Timer).await?;
        // A run that was begun must not wait until its old time comes again.
        let is_begun = |stored: &Stored| {
            let pending = stored.timer.pending;
            pending.is_some_and(|run| run.due_ms > now_ms)
        };
        let (begun, others): (Vec<Stored>, Vec<Stored>) = docs
            .into_iter()
            .filter_map(Stored::of)
            .partition(|stored| is_begun(stored));
        if !begun.is_empty() {
            let same = begun.iter().map(|stored| stored.timer.clone()).collect();
            let begun = self.begin(begun, same).await;
            self.run_begun(begun).await;
        }
        let follows = others.into_iter().filter_map(|stored| {
            let schedule = stored.timer.schedule().ok()?;
            let timer = stored.timer.follow(&schedule, now_ms, is_step)?;
            Some((stored.version, timer))
        });
        let follows: Vec<(Version, Timer)> = follows.collect();
        for batch in follows.chunks(TIMERS.batch) {
            let writes = batch.iter();
            let writes = writes.map(|(version, timer)| timer.to_write(Expect::Version(*version)));
            let outcomes = self.write_timers(writes.collect()).await;
            for ((known, timer), outcome) in batch.iter().zip(outcomes) {
                match outcome {
                    Ok(version) => self.timer_written(version, timer.clone()),
                    // Somebody else changed it, by its own clock, and may have begun a run.
                    Err(error) => {
                        tracing::debug!(timer = timer.id(), %error, "a timer is looked at again");
                        let (version, timer) = (*known, timer.clone());
                        self.retry_timer(&Stored { version, timer }, true);
                    }
                }
            }
        }
        Ok(())
    }

    /// Does what there is to do about timers that are due. What fails is looked at again, each timer by itself.
    pub(crate) async fn look_at_timers(
        self: Arc<Self>,
        due: Vec<(String, Known)>,
    ) -> Result<(), Refusal> {
        let now_ms = self.ctx.clock.wall_ms();
        for (id, known) in &due {
            self.known.see_to(id, known.version(), now_ms);
        }
        self.fire(due.into_iter().map(|(_, known)| known).collect())
            .await;
        Ok(())
    }

    /// Begins the runs of timers that are due.
    pub(super) async fn fire(self: &Arc<Self>, due: Vec<Known>) {
        let now_ms = self.ctx.clock.wall_ms();
        let (mut batch, mut seen) = (Vec::new(), Vec::new());
        for known in due {
            match known {
                Known::Written(stored) => batch.push(*stored),
                Known::Seen { .. } => seen.push(known),
            }
        }
        batch.extend(self.read_seen(seen).await);
        batch.retain(|stored| stored.timer.is_due(now_ms));
        if batch.is_empty() {
            return;
        }
        for stored in &batch {
            self.known
                .see_to(&stored.timer.id(), stored.version, now_ms);
        }
        let ended = async {
            self.peers.sure_of_number().await?;
            Box::pin(self.ended_runs(&batch)).await
        };
        let ended = ended.await.unwrap_or_else(|error| {
            tracing::warn!(%error, "due timers could not be handled; they are tried again");
            None
        });
        let Some(ended) = ended else {
            for stored in batch {
                self.retry_timer(&stored, true);
            }
            return;
        };
        let next = |stored: &Stored| self.next_of(&stored.timer, &ended, now_ms);
        let next: Vec<Timer> = batch.iter().map(next).collect();
        let begun = self.begin(batch, next).await;
        if !begun.is_empty() {
            self.run_begun(begun).await;
        }
    }

    /// Reads timers that a search showed. What has changed since then is left to those who changed it: it is seen
    /// again if they cannot end their work.
    async fn read_seen(&self, seen: Vec<Known>) -> Vec<Stored> {
        let read = async {
            let (first, later): (Vec<&Known>, Vec<&Known>) =
                seen.iter().partition(|known| known.is_first());
            let mut ids: Vec<String> = first.into_iter().map(Known::id).collect();
            let others: Vec<String> = later.iter().map(|known| known.id()).collect();
            if !others.is_empty() {
                let versions = self.ctx.store.doc_versions(DocKind::Timer, &others).await?;
                let same = later.iter().zip(others).zip(versions);
                let same = same.filter(|((known, _), version)| *version == Some(known.version()));
                ids.extend(same.map(|((_, id), _)| id));
            }
            if ids.is_empty() {
                return Ok(Vec::new());
            }
            self.ctx.store.get_docs(DocKind::Timer, &ids).await
        };
        match read.await {
            Ok(docs) => docs.into_iter().flatten().filter_map(Stored::of).collect(),
            Err(error) => {
                tracing::warn!(%error, "due timers could not be handled; they are tried again");
                for known in seen {
                    self.retry_known(known);
                }
                Vec::new()
            }
        }
    }

    /// Which of the runs that these timers know have ended. `None`: an end that was read is not the store's any more.
    async fn ended_runs(
        self: &Arc<Self>,
        batch: &[Stored],
    ) -> Result<Option<BTreeMap<JobId, bool>>, Refusal> {
        let open = batch.iter().flat_map(|stored| &stored.timer.open);
        let ids: Vec<JobId> = open.copied().collect();
        if ids.is_empty() {
            return Ok(Some(BTreeMap::new()));
        }
        let found = self.ctx.store.get(&ids).await?;
        let is_over = |job: &StoredJob| job.state.stage.is_terminal();
        // One that is not there any more is over.
        let ended: BTreeMap<JobId, bool> = ids
            .into_iter()
            .zip(found.iter().map(|job| job.as_ref().is_none_or(is_over)))
            .collect();
        let over = found.into_iter().flatten().filter(is_over).collect();
        Ok(self.jobs.are_proven(over).await?.then_some(ended))
    }

    /// What becomes of a timer now.
    pub(super) fn next_of(
        &self,
        timer: &Timer,
        ended: &BTreeMap<JobId, bool>,
        now_ms: u64,
    ) -> Timer {
        let open = timer.open.iter().copied();
        let open = open.filter(|id| !ended.get(id).copied().unwrap_or(false));
        match timer.schedule() {
            Ok(schedule) => {
                let (open, id) = (open.collect(), self.peers.next_ids(Shards::ids(&timer.job)));
                timer.clone().advance(&schedule, open, now_ms, id)
            }
            // It was checked when it was submitted: perhaps by another release.
            Err(error) => Timer {
                next_ms: 0,
                why: error.to_string(),
                ..timer.clone()
            },
        }
    }

    /// The first write: each run gets its id. A run whose id was read, and not written by this replica, is written
    /// once more, too: what is only read may vanish.
    pub(super) async fn begin(&self, batch: Vec<Stored>, next: Vec<Timer>) -> Vec<Begun> {
        let now_ms = self.ctx.clock.wall_ms();
        let expected = batch.iter().zip(&next);
        let writes = expected.map(|(stored, next)| next.to_write(Expect::Version(stored.version)));
        let outcomes = self.write_timers(writes.collect()).await;
        let mut begun = Vec::new();
        for ((stored, timer), outcome) in batch.into_iter().zip(next).zip(outcomes) {
            match (outcome, timer.pending) {
                (Ok(version), Some(run)) => {
                    // It stays due until its job is there, and this replica is at it.
                    self.known.see_to(&timer.id(), version, now_ms);
                    begun.push(Begun {
                        version,
                        timer,
                        run,
                    });
                }
                (Ok(version), None) => self.timer_written(version, timer),
                // Somebody was faster, and is at it.
                (Err(ItemError::Conflict { .. }), _) => self.retry_timer(&stored, false),
                (Err(error), _) => {
                    tracing::debug!(timer = timer.id(), %error, "a timer that is due is looked at again");
                    self.retry_timer(&stored, true);
                }
            }
        }
        begun
    }

    /// Makes the jobs, and writes that they are there.
    pub(super) async fn run_begun(self: &Arc<Self>, begun: Vec<Begun>) {
        self.stop_replaced(&begun).await;
        let job_of = |begun: &Begun| self.submission.job_of_run(&begun.timer, begun.run);
        let mut made: Vec<_> = begun.iter().map(job_of).collect();
        if let Err(refusal) = self.submission.check_inputs(&mut made, false).await {
            tracing::warn!(error = %refusal, "the inputs of timers could not be looked up");
            made.iter_mut()
                .filter(|made| made.as_ref().is_ok_and(|job| !job.state.inputs.is_empty()))
                .for_each(|made| *made = Err(refusal.clone()));
        }
        if let Err(error) = self.submission.check_machines(&mut made).await {
            tracing::warn!(%error, "jobs that name machines could not be looked up");
        }
        let jobs = made.iter_mut().flatten().collect();
        self.reuse.take_results(jobs, None).await;
        let built = BuiltJobs::from(made);
        let outcomes = self.submission.create(built, Ids::WrittenDown).await;
        let mut done = Vec::new();
        for (begun, outcome) in begun.into_iter().zip(outcomes) {
            let Begun {
                version,
                timer,
                run,
            } = begun;
            match outcome {
                Ok(_) => {
                    let late_ms = self.ctx.clock.wall_ms().saturating_sub(run.due_ms);
                    self.ctx.metrics.timer_ran(late_ms);
                    done.push((version, timer.started()));
                }
                Err(refusal) if refusal.may_pass() => {
                    tracing::warn!(
                        timer = timer.id(),
                        error = %refusal,
                        "a timer could not start its run; it tries again"
                    );
                    self.retry_timer(&Stored { version, timer }, true);
                }
                Err(refusal) => {
                    let why = refusal.to_string();
                    tracing::info!(
                        timer = timer.id(),
                        why,
                        "the submit refused a run of this timer"
                    );
                    done.push((version, timer.turned_down(&why)));
                }
            }
        }
        let writes = done.iter();
        let writes = writes.map(|(version, timer)| timer.to_write(Expect::Version(*version)));
        let outcomes = self.write_timers(writes.collect()).await;
        for ((version, timer), outcome) in done.into_iter().zip(outcomes) {
            match outcome {
                Ok(version) => self.timer_written(version, timer),
                // Somebody else wrote the same, or changed it: then its run is still to be noted.
                Err(_) => self.retry_timer(&Stored { version, timer }, true),
            }
        }
    }

    async fn write_timers(&self, writes: Vec<DocWrite>) -> Vec<Result<Version, ItemError>> {
        if writes.is_empty() {
            return Vec::new();
        }
        self.ctx.store.put_docs(DocKind::Timer, writes).await
    }

    /// This replica wrote a timer: it comes first for it, for the others may not have seen it yet.
    pub(super) fn timer_written(&self, version: Version, mut timer: Timer) {
        timer.at_ms = timer.pending.map_or(timer.next_ms, |run| run.due_ms);
        let (id, at_ms) = (timer.id(), timer.at_ms);
        let soon_ms = self.ctx.clock.wall_ms().saturating_add(AHEAD_MS);
        if (1..soon_ms).contains(&at_ms) {
            let known = Known::Written(Box::new(Stored { version, timer }));
            self.known.book.set(id, version, at_ms, known);
        } else {
            self.known.book.forget(&id, version);
        }
    }

    /// Stops the runs that a new one replaces. What cannot be stopped now is waited for all the same.
    async fn stop_replaced(self: &Arc<Self>, begun: &[Begun]) {
        let replaces = |begun: &&Begun| {
            let schedule = begun.timer.schedule();
            schedule.is_ok_and(|schedule| schedule.overlap == Overlap::Replace)
        };
        let replaced = begun.iter().filter(replaces).flat_map(|begun| {
            let (id, open) = (
                id_of(&begun.timer.account, &begun.timer.name),
                &begun.timer.open,
            );
            open.iter()
                .map(move |job| (*job, id.clone(), begun.run.job_id))
        });
        let replaced: Vec<_> = replaced.collect();
        let stops = stream::iter(replaced).map(|(job, timer, by)| {
            let reason = format!("replaced by job {by}, the next run of timer {timer}");
            self.stop_run(job, reason)
        });
        stops.buffer_unordered(STOPS_ABREAST).collect::<()>().await;
    }

    async fn stop_run(self: &Arc<Self>, id: JobId, reason: String) {
        let now_ms = self.ctx.clock.wall_ms();
        let stop = |state: &JobState| {
            Ok(match state.stage {
                Stage::Submit => Some(cancelled(state, now_ms, &reason)),
                stage if stage.is_held() => to_be_stopped(state, now_ms, &reason),
                _ => None,
            })
        };
        match self.jobs.change(id, stop).await {
            Ok(changed) if changed.after.state.stage.is_held() => {
                self.jobs.tell_to_stop(&changed.after.state);
            }
            Ok(_) => {}
            Err(refusal) => {
                tracing::warn!(job_id = %id, error = %refusal, "the old run could not be stopped; the timer waits for its end");
            }
        }
    }
}
