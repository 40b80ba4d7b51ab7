//! Testboxes: registration, requests for work, heartbeats, leases, cordons, reservations, health checks, network boot.

pub(crate) mod boot_script;
pub(crate) mod cordons;
pub(crate) mod fence;
pub(crate) mod forget;
mod grants;
pub(crate) mod health_checks;
pub(crate) mod heartbeats;
mod host_file;
pub(crate) mod initrd;
pub(crate) mod instances;
mod job_script;
pub(crate) mod lease_docs;
pub(crate) mod network_boot;
pub(crate) mod registration;
pub(crate) mod reservations;
pub(crate) mod reset;
mod retire;
pub(crate) mod work_requests;
