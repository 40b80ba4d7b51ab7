//! Where a job may run: known hosts, cordons, reservations and the boot store, read together.

pub(crate) mod boot_store;
pub(crate) mod feasibility;
pub(crate) mod reserved;
pub(crate) mod shapes;
