//! The engine and the store: the engine's task, claims, answers to waiting requests, and reads for the engine.

pub(crate) mod answers;
pub(crate) mod claims;
pub(crate) mod engine_task;
pub(crate) mod store_reads;

use std::sync::Arc;

use crate::{
    ctx::{Ctx, Lab},
    jobs::JobFlow,
    people::PeopleFlow,
    submission::SubmissionFlow,
};

/// The engine's task, claims, and reads for the engine.
#[derive(Debug)]
pub(crate) struct DispatchFlow {
    pub(crate) ctx: Arc<Ctx>,
    pub(crate) lab: Arc<Lab>,
    pub(crate) people: Arc<PeopleFlow>,
    pub(crate) jobs: Arc<JobFlow>,
    pub(crate) submission: Arc<SubmissionFlow>,
}
