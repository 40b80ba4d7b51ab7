//! Replays traces of days that were: the engine that dispatches decides in virtual time, and what it decided is measured.
#![forbid(unsafe_code)]

pub mod arrivals;
mod chance;
mod machine;
mod measures;
mod scaling;
pub mod swf;

pub use machine::{Accounts, Estimates, Rules, replay};
pub use measures::{Measures, Outcome, Waits, measure};
pub use scaling::{Law, Scaled, Scaling, scale};
