//! Runs many seeds side by side.

use std::{io, panic::resume_unwind, thread};

use parking_lot::Mutex;

use super::{Options, Outcome, simulate};

/// Runs seeds in order on `workers` threads, and passes on each outcome as soon as it is available.
///
/// # Errors
/// Fails if a runtime cannot be created.
pub fn simulate_all(
    seeds: impl Iterator<Item = u64> + Send,
    workers: usize,
    options: Options,
    each: impl FnMut(&Outcome) + Send,
) -> io::Result<()> {
    let (seeds, each) = (Mutex::new(seeds.fuse()), Mutex::new(each));
    let work = || loop {
        let next = seeds.lock().next();
        let Some(seed) = next else { return Ok(()) };
        let outcome = simulate(seed, options)?;
        (*each.lock())(&outcome);
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..workers.max(1)).map(|_| scope.spawn(work)).collect();
        let mut ended = workers.into_iter().map(thread::ScopedJoinHandle::join);
        ended.try_for_each(|done| done.unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

/// Returns the default number of seeds that run at once: one per processor.
pub fn workers() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}
