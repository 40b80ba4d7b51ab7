//! One job on this testbox, from its grant to the scheduler's confirmation of its end.

mod cases;
mod context;
mod course;
mod crashes;
mod deliver;
mod end;
mod environment;
mod finish;
mod folder;
mod hooks;
mod inputs;
mod journal;
mod launch;
mod limit;
mod log;
mod output;
mod outputs;
mod peers;
mod results;
mod retry;
mod save;
mod shards;

pub(crate) use context::Context;
pub(crate) use course::Course;
pub(crate) use environment::suite_of;
pub(crate) use finish::deliver_leftover;
pub(crate) use folder::{JobFolder, leftovers};
pub(crate) use journal::{End, Journal};
pub use retry::{Patience, until_stored};
