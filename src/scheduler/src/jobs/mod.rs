//! Jobs on testboxes: each change of their state, reports, time limits, the end.

pub(crate) mod alarms;
pub(crate) mod change;
pub(crate) mod effects;
mod figures;
pub(crate) mod hand_back;
pub(crate) mod host_failures;
pub(crate) mod listener;
pub(crate) mod observe;
pub(crate) mod reports;
pub(crate) mod shards;
pub(crate) mod speaker;
pub(crate) mod specs;
mod starts;
pub(crate) mod stops;
pub(crate) mod time_limits;
pub(crate) mod vanished_writes;

use std::{sync::Arc, time::Duration};

use fairlead_job::JobId;
use tokio::sync::broadcast;

use crate::{
    ctx::{Ctx, Lab},
    jobs::listener::Listener,
    people::PeopleFlow,
    placement::PlacementFlow,
};
use fairlead_base::{storage::group_commit::Writer, storage::group_reads::Reader};
use fairlead_known::alarms::Alarms;
use fairlead_known::starts::Starts;
use fairlead_known::vanished_writes::VanishedWrites;
use fairlead_known::{
    changes::Changes, feed::Feed, live_jobs::LiveJobs, open_requests::Waiters, parents::Parents,
    seen_versions::Seen, uploads::Uploads,
};

/// Changes the states of jobs, and remembers the jobs that testboxes hold.
#[derive(Debug)]
pub(crate) struct JobFlow {
    pub(crate) ctx: Arc<Ctx>,
    pub(crate) lab: Arc<Lab>,
    pub(crate) people: Arc<PeopleFlow>,
    pub(crate) placement: Arc<PlacementFlow>,
    pub(crate) writer: Writer,
    pub(crate) reader: Reader,
    pub(crate) live: LiveJobs,
    pub(crate) changes: Changes,
    /// Numbers of the changes of the store that are known here.
    pub(crate) feed: Feed,
    /// Versions of jobs that were seen lately.
    pub(crate) seen: Seen,
    /// Seen versions that the store seems not to have.
    pub(crate) vanished_writes: VanishedWrites,
    /// Files that jobs uploaded here.
    pub(crate) uploads: Uploads,
    /// Parents of shards that have not ended.
    pub(crate) parents: Parents,
    /// Waiting jobs that must soon be looked at.
    pub(crate) alarms: Arc<Alarms>,
    /// Waiting jobs whose time has just come.
    pub(crate) starts: Starts,
    /// Requests that wait for an answer of the engine.
    pub(crate) waiters: Waiters,
    /// Parts of the replica that follow the states of jobs, in the order in which they are told.
    pub(crate) listeners: Vec<Arc<dyn Listener>>,
}

impl JobFlow {
    /// Waits until one of these jobs changes, or too many change to tell; at `deadline`, and when the replica stops, no
    /// longer.
    pub(crate) async fn any_changes(
        &self,
        changes: &mut broadcast::Receiver<JobId>,
        jobs: &[JobId],
        deadline: u64,
    ) {
        loop {
            let left = deadline.saturating_sub(self.ctx.clock.now().0);
            tokio::select! {
                biased;
                changed = changes.recv() => match changed {
                    Ok(id) if !jobs.contains(&id) => {}
                    _ => return,
                },
                () = self.ctx.clock.sleep(Duration::from_millis(left)) => return,
                () = self.ctx.tasks.draining.cancelled() => return,
            }
        }
    }
}
