//! Timers: jobs that run repeatedly. Starts their runs, and serves the requests of people.

pub(crate) mod fire;
pub(crate) mod people;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::{
    ctx::Ctx, jobs::JobFlow, peers::PeerFlow, reuse::ReuseFlow, submission::SubmissionFlow,
};
use fairlead_known::timers::Timers;

/// Runs of timers, and what people do with timers.
#[derive(Debug)]
pub(crate) struct TimerFlow {
    pub(crate) ctx: Arc<Ctx>,
    pub(crate) jobs: Arc<JobFlow>,
    pub(crate) peers: Arc<PeerFlow>,
    pub(crate) reuse: Arc<ReuseFlow>,
    pub(crate) submission: Arc<SubmissionFlow>,
    /// Timers that are soon due.
    pub(crate) known: Timers,
}
