//! Periodic chores, the start of a replica, its clock, old months, and the lab's keys.

pub(crate) mod clock_check;
pub(crate) mod clock_steps;
pub(crate) mod drop_months;
pub(crate) mod hints;
pub(crate) mod key_check;
pub(crate) mod keys;
pub(crate) mod restore;
mod sealed;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::{
    ctx::Ctx, dispatching::DispatchFlow, files::FileFlow, hosts::HostFlow, jobs::JobFlow,
    peers::PeerFlow, people::PeopleFlow, placement::PlacementFlow, samples::SampleFlow,
    submission::SubmissionFlow, timers::TimerFlow, waiting::WaitingFlow,
};

/// The start of a replica, hints that come in, old months, clocks and keys.
#[derive(Debug)]
pub(crate) struct UpkeepFlow {
    pub(crate) ctx: Arc<Ctx>,
    pub(crate) people: Arc<PeopleFlow>,
    pub(crate) placement: Arc<PlacementFlow>,
    pub(crate) jobs: Arc<JobFlow>,
    pub(crate) peers: Arc<PeerFlow>,
    pub(crate) files: Arc<FileFlow>,
    pub(crate) waiting: Arc<WaitingFlow>,
    pub(crate) submission: Arc<SubmissionFlow>,
    pub(crate) samples: Arc<SampleFlow>,
    pub(crate) dispatching: Arc<DispatchFlow>,
    pub(crate) hosts: Arc<HostFlow>,
    pub(crate) timers: Arc<TimerFlow>,
    /// Cancelled when the clock was off for too long: whoever runs this replica stops it.
    pub(crate) gave_up: CancellationToken,
}
