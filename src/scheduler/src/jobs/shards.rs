//! Notes what is heard of parents and their shards, and tells how far they are.

use std::collections::BTreeMap;

use fairlead_api::ShardCounts;
use fairlead_job::{Health, JobId, SHARDS_MAX, Stage};
use fairlead_store::{JobState, StoredJob};

use crate::jobs::JobFlow;
use fairlead_base::errors::{JobError, Refusal};
use fairlead_lifecycle::parent::is_released;

impl JobFlow {
    /// A parent or a shard was seen in this state.
    pub(crate) fn note_shards(&self, state: &JobState) {
        let (now, parents) = (self.ctx.clock.now(), &self.parents);
        if state.shards.is_some() {
            parents.seen(state, self.ctx.turn_for(state.job_id), now);
        }
        if let Some(place) = state.shard
            && parents.shard_seen(state, self.ctx.turn_for(place.of), now)
        {
            for listener in &self.listeners {
                listener.failing(place.of);
            }
        }
    }

    /// A parent and its shards, in real time; before its tests are packed, the job that lists them. Of a group that is not
    /// counted, the shards up to the last one that has joined it.
    pub(crate) async fn read_shards(
        &self,
        id: JobId,
        count: u16,
    ) -> Result<(StoredJob, Vec<Option<StoredJob>>), Refusal> {
        let ids: Vec<JobId> = (0..=count).map(|n| id.behind(n)).collect();
        let mut found = self.ctx.store.get(&ids).await?;
        let parent = found.first_mut().and_then(Option::take);
        let parent = parent.ok_or(JobError::Unknown(id))?;
        let sharding = parent.state.shards.as_deref().cloned().unwrap_or_default();
        if sharding.is_unplanned() {
            let lister = self.ctx.store.get(&[id.behind(sharding.lister)]).await?;
            return Ok((parent, lister));
        }
        let is_counted = !sharding.is_uncounted();
        let has = if is_counted {
            sharding.count
        } else {
            SHARDS_MAX
        };
        let mut shards = found.split_off(1);
        if has > count {
            let ids: Vec<JobId> = (count + 1..=has).map(|n| id.behind(n)).collect();
            shards.extend(self.ctx.store.get(&ids).await?);
        }
        shards.truncate(usize::from(has));
        // An id of the block may be of another job, if the parent was stored by nobody who knew that it has shards.
        for shard in &mut shards {
            let is_its = |job: &StoredJob| job.state.shard.is_some_and(|place| place.of == id);
            if shard.as_ref().is_some_and(|job| !is_its(job)) {
                *shard = None;
            }
        }
        if !is_counted {
            let last = shards.iter().rposition(Option::is_some);
            shards.truncate(last.map_or(0, |last| last + 1));
        }
        Ok((parent, shards))
    }

    /// This replica wrote a parent or a shard: a parent that goes on is looked at now.
    pub(crate) fn parent_written(&self, stored: &StoredJob) {
        if stored.state.shards.is_some() && stored.state.stage == Stage::Submit {
            let now = self.ctx.clock.now();
            self.parents.stirred(stored, false, now);
        }
        self.shards_acknowledged(stored);
    }

    /// The store acknowledged this state of a parent or a shard.
    pub(crate) fn shards_acknowledged(&self, stored: &StoredJob) {
        if stored.state.shards.is_some() && stored.state.stage.is_terminal() {
            self.parents.forget(stored.state.job_id);
        }
        self.parents.shard_sure(stored);
    }

    /// How many shards of each parent testboxes have, as far as is known here.
    pub(crate) fn running_shards(&self) -> BTreeMap<JobId, u16> {
        let mut running: BTreeMap<JobId, u16> = BTreeMap::new();
        for id in self.live.ids() {
            let live = self.live.get(id);
            if let Some(place) = live.and_then(|live| live.stored.state.shard) {
                let same = running.entry(place.of).or_default();
                *same = same.saturating_add(1);
            }
        }
        running
    }

    /// How far the shards of a job are, as far as is known here; `None`: it is no parent.
    pub(crate) fn shard_counts(
        &self,
        state: &JobState,
        running: &BTreeMap<JobId, u16>,
    ) -> Option<ShardCounts> {
        let sharding = state.shards.as_ref()?;
        let mut counts = ShardCounts {
            count: sharding.count,
            ..ShardCounts::default()
        };
        if state.stage.is_terminal() {
            let bad = sharding.ends.iter();
            let bad = bad.filter(|(health, _)| **health != Health::Success);
            counts.failed = bad.map(|(_, many)| *many).sum();
            counts.over = sharding.ends.values().sum();
        } else if let Some(known) = self.parents.progress(state.job_id) {
            counts.running = running.get(&state.job_id).copied().unwrap_or(0);
            (counts.over, counts.failed) = (known.over, known.failed);
        }
        Some(counts)
    }

    /// A job as people see it: a parent runs while its shards do.
    pub(crate) fn as_shown(&self, mut state: JobState) -> JobState {
        if is_released(&state) && state.stage == Stage::Submit {
            let counts = self.shard_counts(&state, &self.running_shards());
            let has_begun = counts.is_some_and(|counts| counts.has_begun());
            if has_begun {
                state.stage = Stage::Running;
            }
        }
        state
    }
}
