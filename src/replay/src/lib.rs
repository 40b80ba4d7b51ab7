//! Replays traces of days that were: the engine that dispatches decides in virtual time, and what it decided is measured.
#![forbid(unsafe_code)]

mod machine;
mod measures;
pub mod swf;

pub use machine::{Accounts, Estimates, Rules, replay};
pub use measures::{Measures, Outcome, Waits, measure};
