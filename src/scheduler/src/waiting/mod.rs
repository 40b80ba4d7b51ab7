//! Jobs that wait for something other than a host: other jobs, a time, a sequence, the nodes of a cluster.

pub(crate) mod alarms;
pub(crate) mod circles;
pub(crate) mod clusters;
pub(crate) mod conditions;
pub(crate) mod sequences;
