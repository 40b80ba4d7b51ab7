//! Jobs that wait for something other than a host: other jobs, a time, a sequence, the nodes of a cluster.

pub(crate) mod alarms;
pub(crate) mod circles;
pub(crate) mod clusters;
pub(crate) mod conditions;
pub(crate) mod memory;
pub(crate) mod sequences;

use std::sync::Arc;

use crate::{ctx::Ctx, jobs::JobFlow, reuse::ReuseFlow, waiting::memory::WaitingMemory};

/// Jobs that wait for other jobs, a time, a sequence, or the nodes of a cluster.
#[derive(Debug)]
pub(crate) struct WaitingFlow {
    pub(crate) ctx: Arc<Ctx>,
    pub(crate) jobs: Arc<JobFlow>,
    pub(crate) reuse: Arc<ReuseFlow>,
    pub(crate) known: Arc<WaitingMemory>,
}
