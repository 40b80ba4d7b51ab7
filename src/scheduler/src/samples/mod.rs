//! Samples of what ran in each minute: written, summed up by the hour, and read as use of the lab. And how long it ran.

mod ids;
pub(crate) mod memory;
mod run_times;
pub(crate) mod usage;
mod write;

use std::sync::Arc;

use crate::{ctx::Ctx, people::PeopleFlow, samples::memory::SampleMemory};

/// Counts of attempts by minute, and run times of jobs.
#[derive(Debug)]
pub(crate) struct SampleFlow {
    pub(crate) ctx: Arc<Ctx>,
    pub(crate) people: Arc<PeopleFlow>,
    pub(crate) known: Arc<SampleMemory>,
}
