//! Results and logs of jobs on disk.

pub(crate) mod cases;
pub(crate) mod parts;
pub(crate) mod places;
pub(crate) mod read;
pub(crate) mod results;
