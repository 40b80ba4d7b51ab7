//! Samples of what ran in each minute: written, summed up by the hour, and read as use of the lab. And how long it ran.

mod ids;
pub(crate) mod memory;
mod run_times;
pub(crate) mod usage;
mod write;

use std::sync::Arc;

use crate::ctx::Ctx;
use crate::people::PeopleFlow;
use crate::samples::memory::SampleMemory;

/// What ran in each minute, and how long jobs took.
#[derive(Debug)]
pub(crate) struct SampleFlow {
    pub(crate) ctx: Arc<Ctx>,
    pub(crate) people: Arc<PeopleFlow>,
    pub(crate) known: Arc<SampleMemory>,
}
