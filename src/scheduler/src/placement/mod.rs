//! Where a job may run: known hosts, cordons and reservations, read together.

pub(crate) mod feasibility;
pub(crate) mod reserved;
