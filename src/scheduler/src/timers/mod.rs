//! Timers: runs of jobs again and again, and what people do with timers.

pub(crate) mod fire;
pub(crate) mod people;
#[cfg(test)]
mod tests;
