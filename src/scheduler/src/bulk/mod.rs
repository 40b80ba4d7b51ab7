//! Actions on many jobs, hosts or queues. A preview says what an action will touch; it touches nothing else.
//!
//! The preview is stored with all ids. The replica that runs it notes by compare-and-set how far it is, and until when
//! the others wait for its next note. If none comes, another replica goes on there. Each act may be repeated.

mod acts;
mod preview;
pub(crate) mod run;
mod targets;

use std::sync::Arc;

use crate::{
    ctx::{Ctx, Lab},
    hosts::HostFlow,
    jobs::JobFlow,
    people::PeopleFlow,
    placement::PlacementFlow,
    shards::ShardFlow,
    submission::SubmissionFlow,
};

/// Actions on many jobs, hosts or queues.
#[derive(Debug)]
pub(crate) struct BulkFlow {
    pub(crate) ctx: Arc<Ctx>,
    pub(crate) lab: Arc<Lab>,
    pub(crate) people: Arc<PeopleFlow>,
    pub(crate) placement: Arc<PlacementFlow>,
    pub(crate) jobs: Arc<JobFlow>,
    pub(crate) submission: Arc<SubmissionFlow>,
    pub(crate) shards: Arc<ShardFlow>,
    pub(crate) hosts: Arc<HostFlow>,
}
