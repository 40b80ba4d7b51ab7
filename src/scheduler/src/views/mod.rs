//! Views for people: jobs, hosts and explanations. Read only.

pub(crate) mod answer;
pub(crate) mod answer_page;
pub(crate) mod explain;
mod explain_before;
mod explain_costs;
mod explain_host;
mod explain_idle;
mod explain_load;
mod explain_shards;
mod explain_times;
pub(crate) mod host;
mod host_empties;
pub(crate) mod job;
pub(crate) mod outlook;
pub(crate) mod submit_events;

use std::sync::Arc;

use crate::{
    ctx::{Ctx, Lab},
    hosts::HostFlow,
    jobs::JobFlow,
    people::PeopleFlow,
    placement::PlacementFlow,
    samples::SampleFlow,
    scaling::ScalingFlow,
    submission::SubmissionFlow,
    waiting::WaitingFlow,
};

/// Jobs, hosts and explanations as people see them.
#[derive(Debug)]
pub(crate) struct ViewFlow {
    pub(crate) ctx: Arc<Ctx>,
    pub(crate) lab: Arc<Lab>,
    pub(crate) people: Arc<PeopleFlow>,
    pub(crate) placement: Arc<PlacementFlow>,
    pub(crate) jobs: Arc<JobFlow>,
    pub(crate) waiting: Arc<WaitingFlow>,
    pub(crate) submission: Arc<SubmissionFlow>,
    pub(crate) samples: Arc<SampleFlow>,
    pub(crate) hosts: Arc<HostFlow>,
    pub(crate) scaling: Arc<ScalingFlow>,
}
