//! Numbers of the dashboard: one snapshot a second of the lab while anybody looks, what changed since, plots of what
//! ran, and the audit log.

pub(crate) mod audit_log;
pub(crate) mod live;
mod series;
pub(crate) mod snapshot;
