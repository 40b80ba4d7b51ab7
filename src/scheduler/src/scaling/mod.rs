//! Pools of machines that come and go: one replica at a time decides how many there are, and tells their providers.
//!
//! A decision and the machines that it asks for are stored before a provider is called. Each machine has a token, and the
//! same token makes one machine, so a call may be repeated by whoever decides next. A machine retires by its session
//! document: from then on no replica gives it a job, and only then it is ended.

mod calls;
mod decide;
mod explain;
mod fleet;
mod lease;
mod machines;
mod memory;
mod people;
mod round;
mod trial;
mod work;

use std::sync::Arc;

use crate::{
    ctx::{Ctx, Lab},
    hosts::HostFlow,
    jobs::JobFlow,
    placement::PlacementFlow,
    submission::SubmissionFlow,
};
use fairlead_base::providers::Providers;

/// Pools of machines that come and go.
#[derive(Debug)]
pub(crate) struct ScalingFlow {
    pub(crate) ctx: Arc<Ctx>,
    pub(crate) lab: Arc<Lab>,
    pub(crate) placement: Arc<PlacementFlow>,
    pub(crate) jobs: Arc<JobFlow>,
    pub(crate) submission: Arc<SubmissionFlow>,
    pub(crate) hosts: Arc<HostFlow>,
    /// Programs that make and end the machines of pools.
    pub(crate) providers: Arc<dyn Providers>,
}
