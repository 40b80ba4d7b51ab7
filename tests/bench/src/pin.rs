//! Pins processes to cores: a process runs on the core of the thread that started it.

use std::io;

use rustix::thread::{CpuSet, sched_setaffinity};

/// Cores of Elasticsearch and of all the rest.
pub(super) const ELASTICSEARCH: usize = 0;
pub(super) const OTHERS: usize = 1;

/// From now on this thread, and what it starts, runs on one core.
pub(super) fn to(core: usize) -> io::Result<()> {
    let mut cores = CpuSet::new();
    cores.set(core);
    Ok(sched_setaffinity(None, &cores)?)
}
