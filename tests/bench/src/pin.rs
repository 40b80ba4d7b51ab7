//! Pins processes to cores: a process runs on the core of the thread that started it.

use std::io;

use rustix::thread::{CpuSet, sched_setaffinity};

/// Core of Elasticsearch. The next constant is the core of everything else.
pub(super) const ELASTICSEARCH: usize = 0;
pub(super) const OTHERS: usize = 1;

/// Pins this thread, and everything that it starts, to one core.
pub(super) fn to(core: usize) -> io::Result<()> {
    let mut cores = CpuSet::new();
    cores.set(core);
    Ok(sched_setaffinity(None, &cores)?)
}
