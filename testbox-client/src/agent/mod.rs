//! The agent as a whole: one task that asks, sends heartbeats and starts a course for each job.

mod contact;
mod core;
mod grants;
mod roster;
mod start;

pub use start::run;
