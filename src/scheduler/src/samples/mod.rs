//! Samples of what ran in each minute: written, summed up by the hour, and read as use of the lab.

mod ids;
mod usage;
mod write;
