//! The agent as a whole: one task that drives the protocol, and a course for each job.

mod driver;
mod start;

pub use start::run;
