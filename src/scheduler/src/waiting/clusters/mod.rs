//! Clusters: jobs of one submit, one per node, that begin together or not at all.
//!
//! Each node is a normal job: it waits in the queues, is claimed, and ends by itself. `JobState::cluster` has its
//! relation to the others. `lifecycle::cluster` computes its next state from the states of all, and a compare-and-set
//! writes it. There is no leader and no memory. A cluster is checked in three cases:
//!
//! - a replica writes a state that matters to the other jobs;
//! - a testbox asks whether all nodes are there (`barrier`);
//! - periodically, by the first replica for it, while testboxes have one of its jobs.

use std::{collections::BTreeMap, sync::Arc};

use fairlead_job::{JobId, Stage};
use fairlead_store::{StoredJob, Version};

use crate::waiting::WaitingFlow;
use fairlead_base::errors::Refusal;
use fairlead_known::clusters::of;
use fairlead_lifecycle::cluster::{View, next_of};

mod barrier;

/// How often one look begins anew because what it changed lets others change, too: a job ends, its peers are told.
const LOOKS_MAX: usize = 8;

impl WaitingFlow {
    /// Looks again at the clusters that testboxes have a job of and that this replica comes first for.
    pub(crate) fn sweep_clusters(&self) {
        let held = self.jobs.live.ids().into_iter();
        let held = held.filter_map(|id| of(&self.jobs.live.get(id)?.stored.state));
        let all: BTreeMap<JobId, Vec<JobId>> = held.collect();
        self.known.clusters.partial.keep(&all);
        for (head, jobs) in all {
            if self.ctx.turn_for(head) == 0 {
                let now_ms = self.ctx.clock.now().0;
                self.known.clusters.looks.look_at(head, now_ms, jobs);
            }
        }
    }

    /// Does what there is to do about clusters that are due.
    pub(crate) async fn look_at_clusters(
        self: Arc<Self>,
        due: Vec<(JobId, Vec<JobId>)>,
    ) -> Result<(), Refusal> {
        for (_, jobs) in due {
            self.look_at_cluster(&jobs).await?;
        }
        Ok(())
    }

    /// Does what there is to do about the jobs of a cluster; answers how they were read last.
    pub(crate) async fn look_at_cluster(
        self: &Arc<Self>,
        jobs: &[JobId],
    ) -> Result<Vec<Option<StoredJob>>, Refusal> {
        // Which states are the store's for sure.
        let mut sure: BTreeMap<JobId, Version> = BTreeMap::new();
        let mut found = self.ctx.store.get(jobs).await?;
        for _ in 0..LOOKS_MAX {
            let now_ms = self.ctx.clock.wall_ms();
            let view = View::of(jobs, &found, now_ms);
            let view = self
                .known
                .clusters
                .partial
                .complete(view, self.ctx.clock.now());
            let is_due = |job: &StoredJob| next_of(&job.state, &view, now_ms).is_some();
            if !found.iter().flatten().any(is_due) {
                break;
            }
            if self.make_sure_of(&mut found, &mut sure).await? {
                for job in found.iter().flatten().filter(|job| is_due(job)) {
                    let after = self.go_on(job, &view, now_ms).await?;
                    sure.insert(after.state.job_id, after.version);
                }
            }
            found = self.ctx.store.get(jobs).await?;
        }
        Ok(found)
    }

    /// What is read may vanish: a peer that waits or has ended is relied on when that was written once more. `false`:
    /// one of them has changed meanwhile.
    async fn make_sure_of(
        self: &Arc<Self>,
        found: &mut [Option<StoredJob>],
        sure: &mut BTreeMap<JobId, Version>,
    ) -> Result<bool, Refusal> {
        let mut all_same = true;
        for job in found.iter_mut().flatten() {
            let (id, stage) = (job.state.job_id, job.state.stage);
            let matters = stage == Stage::WaitPeer || stage.is_terminal();
            if !matters || sure.get(&id) == Some(&job.version) {
                continue;
            }
            let (stored, is_same) = self.jobs.confirm(job.clone()).await?;
            if is_same {
                sure.insert(id, stored.version);
            }
            all_same &= is_same;
            *job = stored;
        }
        Ok(all_same)
    }

    async fn go_on(
        self: &Arc<Self>,
        job: &StoredJob,
        view: &View,
        now_ms: u64,
    ) -> Result<StoredJob, Refusal> {
        let changed = self
            .jobs
            .change_known(job.clone(), |state| Ok(next_of(state, view, now_ms)))
            .await?;
        let state = &changed.after.state;
        if state.stop_asked && state.stage.is_held() {
            self.jobs.tell_to_stop(state);
        }
        Ok(changed.after)
    }
}

#[cfg(test)]
mod tests;
