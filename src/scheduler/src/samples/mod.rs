//! Samples of what ran in each minute: written, summed up by the hour, and read as use of the lab. And how long it ran.

mod ids;
mod run_times;
pub(crate) mod usage;
mod write;
