//! Numbers of the dashboard: one snapshot a second of the lab while anybody looks, what changed since, plots of what
//! ran, the audit log, and the metrics.

pub(crate) mod audit_log;
pub(crate) mod live;
pub(crate) mod metrics_text;
mod series;
pub(crate) mod snapshot;
