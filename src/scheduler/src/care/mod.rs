//! Care of a store by its operator, without a replica: restores, checks, and files of old jobs.

pub(crate) mod check;
mod check_files;
pub(crate) mod prune;
pub(crate) mod restore;
mod set_aside;
