//! Looks at sharded jobs: makes the shards of a parent, stops them, and ends the parent when all are over.
//!
//! There is no leader. `lifecycle::shards` computes what is to be done from the states of the parent and its shards, read
//! in real time. Each step is a create of a known id or a compare-and-set, so it does no harm when two replicas do it.
//! The replica that writes the state of a parent looks at it at once. When all shards seem to be over, the first replica
//! by rendezvous hashing looks at it, and each other one two seconds later.

use std::sync::Arc;

use fairlead_dispatch::Millis;
use fairlead_job::{Health, JobId, Stage};
use fairlead_store::{JobState, StoredJob};
use futures_util::{StreamExt, stream};

use crate::shards::ShardFlow;
use fairlead_base::errors::{JobError, Refusal};
use fairlead_known::controllers::PARENTS;
use fairlead_lifecycle::{
    attempt::{NO_BODY, is_without_body},
    parent::is_released,
    shards::{Next, made, never_planned, next, next_of_list, stopped_shard},
};

/// How often one look begins anew because what it changed lets others change, too.
const LOOKS_MAX: usize = 8;
/// Shards that are stopped side by side.
const ABREAST: usize = 64;
/// How soon shards that were told to stop are looked at again, ms.
const STOPPING_MS: u64 = 5_000;

impl ShardFlow {
    /// Looks again at parents of which nothing was heard for long and that this replica comes first for.
    pub(crate) fn sweep_parents(&self) {
        let now = self.ctx.clock.now();
        for id in self.jobs.parents.take_silent(now) {
            if self.ctx.turn_for(id) == 0 {
                self.jobs.parents.look_at(id, now);
            }
        }
    }

    /// Does what there is to do about parents that are due.
    pub(crate) async fn look_at_parents(
        self: Arc<Self>,
        due: Vec<(JobId, ())>,
    ) -> Result<(), Refusal> {
        for (id, ()) in due {
            match self.jobs.parents.begin(id) {
                Some((_, Some(fresh))) => Box::pin(self.begin_shards(*fresh)).await?,
                Some((count, None)) => Box::pin(self.look_at_parent(id, Some(count))).await?,
                None => {}
            }
        }
        Ok(())
    }

    /// Makes the shards of a parent that was just created here. Reads nothing.
    async fn begin_shards(self: &Arc<Self>, parent: StoredJob) -> Result<(), Refusal> {
        let id = parent.state.job_id;
        let Some(sharding) = &parent.state.shards else {
            return Ok(());
        };
        if sharding.is_unplanned() {
            return self.make_shards(&parent.state, &[0]).await;
        }
        if sharding.is_open() {
            return Ok(());
        }
        let numbers: Vec<u16> = (1..=sharding.count).collect();
        self.make_shards(&parent.state, &numbers).await?;
        let noted = self
            .jobs
            .change_known(parent, |state| {
                let is_open = state.stage == Stage::Submit && is_released(state);
                Ok(is_open.then(|| made(state)))
            })
            .await?;
        if noted.after.state.stop_asked {
            Box::pin(self.look_at_parent(id, None)).await?;
        }
        Ok(())
    }

    /// Does what there is to do about a parent. `count`: how many shards it has, if that is known.
    pub(crate) async fn look_at_parent(
        self: &Arc<Self>,
        id: JobId,
        count: Option<u16>,
    ) -> Result<(), Refusal> {
        let mut count = count.unwrap_or(0);
        for _ in 0..LOOKS_MAX {
            self.ctx.metrics.shard_looks.inc();
            let (parent, shards) = self.jobs.read_shards(id, count).await?;
            count = u16::try_from(shards.len()).unwrap_or(u16::MAX);
            self.jobs.parents.shards_read(&shards);
            let now_ms = self.ctx.clock.wall_ms();
            let read = parent.state.clone();
            match next_step(&read, &shards, now_ms) {
                Next::Over => {
                    self.jobs.parents.seems_over(id, self.ctx.clock.now());
                    return Ok(());
                }
                Next::Wait(until_ms) => {
                    self.wait_for_shards(&parent.state, until_ms, now_ms);
                    return Ok(());
                }
                Next::Make(numbers) => {
                    // What was only read may vanish, and what is made of it would stay.
                    let (parent, is_same) = self.jobs.confirm(parent).await?;
                    if is_same {
                        Box::pin(self.make_missing(parent, &numbers, now_ms)).await?;
                    }
                }
                Next::Stop(numbers) => self.stop_shards(&parent.state, shards, &numbers).await?,
                Next::Note(wanted) => self.set_parent(parent, *wanted).await?,
                Next::Plan => {
                    if !self.plan_tests(parent, shards).await? {
                        let again_ms = now_ms.saturating_add(PARENTS.again_ms);
                        self.wait_for_shards(&read, Some(again_ms), now_ms);
                        return Ok(());
                    }
                }
                Next::End(wanted) => {
                    if self.are_sure(shards).await? {
                        self.set_parent(parent, *wanted).await?;
                    }
                }
            }
        }
        // Others change it all the time.
        let again = self.ctx.clock.now().0.saturating_add(PARENTS.again_ms);
        self.jobs.parents.look_at(id, Millis(again));
        Ok(())
    }

    /// Makes these shards of a parent, which is the store's for sure. One without a body ends.
    async fn make_missing(
        self: &Arc<Self>,
        parent: StoredJob,
        numbers: &[u16],
        now_ms: u64,
    ) -> Result<(), Refusal> {
        match self.make_shards(&parent.state, numbers).await {
            Err(Refusal::Job(JobError::Unknown(_))) if is_without_body(&parent.state, now_ms) => {
                let end = never_planned(&parent.state, Health::AbortInvalid, now_ms, NO_BODY);
                self.set_parent(parent, end).await
            }
            made => made,
        }
    }

    /// Looks again when time alone changes something.
    fn wait_for_shards(&self, parent: &JobState, until_ms: Option<u64>, now_ms: u64) {
        let after_ms = match until_ms {
            Some(until_ms) => until_ms.saturating_sub(now_ms),
            None if parent.stop_asked => STOPPING_MS,
            None => return,
        };
        let rank = self.ctx.turn_for(parent.job_id);
        let after_ms = after_ms.saturating_add(PARENTS.later_ms(rank));
        let at = self.ctx.clock.now().0.saturating_add(after_ms);
        self.jobs.parents.look_at(parent.job_id, Millis(at));
    }

    async fn stop_shards(
        self: &Arc<Self>,
        parent: &JobState,
        shards: Vec<Option<StoredJob>>,
        numbers: &[u16],
    ) -> Result<(), Refusal> {
        let now_ms = self.ctx.clock.wall_ms();
        let is_meant = |shard: &StoredJob| {
            let place = shard.state.shard;
            place.is_some_and(|place| numbers.contains(&place.n))
        };
        let meant = shards.into_iter().flatten().filter(is_meant);
        let stopping = stream::iter(meant).map(|shard| async move {
            let stopped = self
                .jobs
                .change_known(shard, |state| Ok(stopped_shard(parent, state, now_ms)))
                .await?;
            let state = &stopped.after.state;
            if state.stop_asked && state.stage.is_held() {
                self.jobs.tell_to_stop(state);
            }
            Ok::<(), Refusal>(())
        });
        let stopped: Vec<Result<(), Refusal>> = stopping.buffer_unordered(ABREAST).collect().await;
        stopped.into_iter().collect()
    }
}

/// What is to be done about a parent, from what was read of it.
fn next_step(parent: &JobState, shards: &[Option<StoredJob>], now_ms: u64) -> Next {
    let sharding = parent.shards.as_ref();
    if sharding.is_none_or(|sharding| !sharding.is_unplanned()) {
        return next(parent, shards, now_ms);
    }
    let lister = shards.first().and_then(Option::as_ref);
    next_of_list(parent, lister.map(|job| &job.state), now_ms)
}
