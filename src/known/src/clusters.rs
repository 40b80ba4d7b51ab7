//! Clusters to check now.

use std::{collections::BTreeMap, sync::Arc};

use fairlead_dispatch::Millis;
use fairlead_job::{JobId, Stage};
use fairlead_store::JobState;
use parking_lot::Mutex;

use fairlead_base::storage::controller::Controller;
use fairlead_lifecycle::cluster::View;

/// Clusters to look at now: the head, and all jobs.
#[derive(Debug)]
pub struct Clusters {
    pub looks: Arc<Controller<JobId, Vec<JobId>>>,
    pub partial: PartialClusters,
}

impl Clusters {
    /// A job's state was written by this replica: its peers may have something to do.
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

/// The head and the jobs of the cluster that a job belongs to.
pub fn of(state: &JobState) -> Option<(JobId, Vec<JobId>)> {
    let place = state.cluster.as_ref()?;
    Some((place.head()?, place.jobs.clone()))
}

/// Since when clusters of which some nodes have a testbox and others none are so, as this replica sees it and by its own
/// clock: those of the replicas differ. By head: the round, and when it was first seen so.
#[derive(Debug, Default)]
pub struct PartialClusters(Mutex<BTreeMap<JobId, (u32, Millis)>>);

impl PartialClusters {
    /// What all jobs of a cluster are, with how long its missing jobs have been waited for.
    pub fn complete(&self, view: View, now: Millis) -> View {
        let (head, round) = view.partial_round();
        view.waiting_since(self.since(head, round, now), now)
    }

    /// Since when this round was seen so; no round: it is not.
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

    /// Forgets all clusters but these: no testbox has a job of the others.
    pub fn keep(&self, held: &BTreeMap<JobId, Vec<JobId>>) {
        let mut all = self.0.lock();
        all.retain(|head, _| held.contains_key(head));
    }
}
