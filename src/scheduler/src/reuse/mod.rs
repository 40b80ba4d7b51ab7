//! Results of earlier jobs for new ones: which jobs may take one, which results there are, and why or why not.
//!
//! A job that takes a result is created as ended, and nothing runs for it. All documents here are hints. Before a job
//! takes a result, the job that has it is read in real time.

mod asked;
mod explain;
mod fate;
mod forget;
mod hosts;
mod learn;
pub(crate) mod look_up;
pub(crate) mod memory;
mod release;
mod runs;
mod settings;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::{
    ctx::{Ctx, Lab},
    files::FileFlow,
    jobs::JobFlow,
    people::PeopleFlow,
    placement::PlacementFlow,
};
use fairlead_known::{reuse::PendingResults, reuse_settings::ReuseRules};

/// Results of earlier jobs for new ones.
#[derive(Debug)]
pub(crate) struct ReuseFlow {
    pub(crate) ctx: Arc<Ctx>,
    pub(crate) lab: Arc<Lab>,
    pub(crate) people: Arc<PeopleFlow>,
    pub(crate) placement: Arc<PlacementFlow>,
    pub(crate) jobs: Arc<JobFlow>,
    pub(crate) files: Arc<FileFlow>,
    /// Which jobs take results of others.
    pub(crate) rules: ReuseRules,
    /// Results that others may take, and that are not written yet.
    pub(crate) results: Arc<PendingResults>,
}
