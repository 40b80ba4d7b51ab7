//! One job on this testbox, from its grant to the scheduler's confirmation of its end.

mod course;
mod deliver;
mod end;
mod environment;
mod folder;
mod launch;
mod limit;
mod log;
mod output;
mod peers;
mod remove;
mod report;
mod results;

pub(crate) use course::{Context, Course, Finished, Over, deliver_leftover, suite_of};
pub(crate) use folder::{End, JobFolder, Journal, leftovers};
pub(crate) use remove::remove_tree;
