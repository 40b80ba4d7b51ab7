//! One job on this testbox, from its grant to the scheduler's confirmation of its end.

mod blocking;
mod context;
mod course;
mod deliver;
mod end;
mod environment;
mod finish;
mod folder;
mod launch;
mod limit;
mod log;
mod output;
mod peers;
mod report;
mod results;
#[cfg(test)]
mod testing;

pub(crate) use context::Context;
pub(crate) use course::{Course, Over, suite_of};
pub(crate) use finish::{Finished, deliver_leftover};
pub(crate) use folder::{End, JobFolder, Journal, leftovers};
