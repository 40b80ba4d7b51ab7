//! From the body of a submit to stored jobs: read, build, check, create.

pub(crate) mod build;
pub(crate) mod built_jobs;
pub(crate) mod cluster_nodes;
pub(crate) mod create;
mod devices;
pub(crate) mod edits;
pub(crate) mod groups;
pub(crate) mod idempotency;
pub(crate) mod inputs;
pub(crate) mod intake;
pub(crate) mod max_run;
pub(crate) mod needs;
pub(crate) mod queue_use;
pub(crate) mod quotas;
mod records;
pub(crate) mod rules;
pub(crate) mod submit;
mod submit_ids;
pub(crate) mod timer_run;
mod unknown_machines;
mod webhooks;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::{
    ctx::{Ctx, Lab},
    jobs::JobFlow,
    peers::PeerFlow,
    people::PeopleFlow,
    placement::PlacementFlow,
    reuse::ReuseFlow,
    waiting::WaitingFlow,
};
use fairlead_known::content::KnownContent;

/// Makes stored jobs from the body of a submit.
#[derive(Debug)]
pub(crate) struct SubmissionFlow {
    pub(crate) ctx: Arc<Ctx>,
    pub(crate) lab: Arc<Lab>,
    pub(crate) people: Arc<PeopleFlow>,
    pub(crate) placement: Arc<PlacementFlow>,
    pub(crate) jobs: Arc<JobFlow>,
    pub(crate) peers: Arc<PeerFlow>,
    pub(crate) reuse: Arc<ReuseFlow>,
    pub(crate) waiting: Arc<WaitingFlow>,
    pub(crate) known_content: Arc<KnownContent>,
    /// Submits that are worked on at one time.
    pub(crate) submits: Semaphore,
    /// Large submits and previews that are read at one time: half of the cores are left to everything else.
    pub(crate) readers: Arc<Semaphore>,
}
