//! Jobs that wait for others, sequences and clusters, as this replica remembers them.

use fairlead_job::Stage;
use fairlead_store::JobState;

use crate::{ctx::Ctx, jobs::listener::Listener};
use fairlead_base::storage::controller::Controller;
use fairlead_known::{
    clusters::{Clusters, PartialClusters},
    controllers::{CLUSTERS, SEQUENCES},
    dependants::Dependants,
    sequences::Sequences,
};
use fairlead_lifecycle::sequence::may_pass_on;

/// Jobs that wait for others, a turn, or the nodes of a cluster.
#[derive(Debug)]
pub(crate) struct WaitingMemory {
    pub(crate) dependants: Dependants,
    /// Sequences whose jobs wait for their turn.
    pub(crate) sequences: Sequences,
    /// Clusters to look at now.
    pub(crate) clusters: Clusters,
}

impl WaitingMemory {
    pub(crate) fn new(ctx: &Ctx) -> Self {
        Self {
            dependants: Dependants::default(),
            sequences: Sequences::new(Controller::new(&SEQUENCES, &ctx.clock, &ctx.metrics)),
            clusters: Clusters {
                looks: Controller::new(&CLUSTERS, &ctx.clock, &ctx.metrics),
                partial: PartialClusters::default(),
            },
        }
    }
}

impl Listener for WaitingMemory {
    fn seen(&self, state: &JobState) {
        if state.stage == Stage::Submit && !state.ready {
            self.dependants.add(state);
            self.sequences.seen(state);
        }
    }

    fn changed(&self, before: &JobState, after: &JobState) {
        if may_pass_on(before, after) {
            self.sequences.stirred(after);
        }
        self.clusters.stirred(after);
    }

    fn created(&self, state: &JobState) {
        self.sequences.stirred(state);
    }
}
