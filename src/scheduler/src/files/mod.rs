//! Results and logs on disk.

pub(crate) mod parts;
pub(crate) mod results;
