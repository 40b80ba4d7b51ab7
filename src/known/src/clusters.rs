//! Clusters to check now.

use std::{collections::BTreeMap, sync::Arc};

use fairlead_dispatch::Millis;
use fairlead_job::{JobId, Stage};
use fairlead_store::JobState;
use parking_lot::Mutex;

use fairlead_base::storage::controller::Controller;
use fairlead_lifecycle::cluster::View;

/// Clusters to check now: the head, and all jobs.
#[derive(Debug)]
pub struct Clusters {
    pub looks: Arc<Controller<JobId, Vec<JobId>>>,
    pub partial: PartialClusters,
}

impl Clusters {
    /// Queues the cluster of a job whose state this replica wrote, because its other jobs may need a step.
    pub fn stirred(&self, state: &JobState) {
        let matters = matches!(state.stage, Stage::Submit | Stage::WaitPeer);
        if !matters && !state.stage.is_terminal() {
            return;
        }
        if let Some((head, jobs)) = of(state) {
            self.looks.look_now(head, jobs);
        }
    }
}

/// Returns the head and the jobs of a job's cluster.
pub fn of(state: &JobState) -> Option<(JobId, Vec<JobId>)> {
    let place = state.cluster.as_ref()?;
    Some((place.head()?, place.jobs.clone()))
}

/// Clusters of which only some nodes have a testbox: the round and the time of its first sighting, by head. Times are
/// of this replica's clock, so they differ between replicas.
#[derive(Debug, Default)]
pub struct PartialClusters(Mutex<BTreeMap<JobId, (u32, Millis)>>);

impl PartialClusters {
    /// Adds to the view of a cluster since when its missing jobs are waited for.
    pub fn complete(&self, view: View, now: Millis) -> View {
        let (head, round) = view.partial_round();
        view.waiting_since(self.since(head, round, now), now)
    }

    /// Returns the time of the first sighting of this round. `None`: no round is partial.
    fn since(&self, head: JobId, half: Option<u32>, now: Millis) -> Option<Millis> {
        let mut all = self.0.lock();
        let Some(round) = half else {
            all.remove(&head);
            return None;
        };
        let known = all.entry(head).or_insert((round, now));
        if known.0 != round {
            *known = (round, now);
        }
        Some(known.1)
    }

    /// Forgets all clusters except these, because no testbox has a job of the others.
    pub fn keep(&self, held: &BTreeMap<JobId, Vec<JobId>>) {
        let mut all = self.0.lock();
        all.retain(|head, _| held.contains_key(head));
    }
}
