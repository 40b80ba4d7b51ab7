//! The whole agent: one task that drives the protocol, and one task for each job.

mod driver;
mod start;

pub use start::run;
