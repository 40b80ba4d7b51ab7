//! Timers: jobs that run repeatedly. Starts their runs, and serves the requests of people.

pub(crate) mod fire;
pub(crate) mod people;
#[cfg(test)]
mod tests;
