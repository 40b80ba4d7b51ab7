//! Jobs on testboxes: each change of their state, reports, time limits, the end.

pub(crate) mod alarms;
pub(crate) mod change;
pub(crate) mod effects;
mod figures;
pub(crate) mod hand_back;
pub(crate) mod host_failures;
pub(crate) mod observe;
pub(crate) mod reports;
pub(crate) mod shards;
pub(crate) mod speaker;
pub(crate) mod specs;
mod starts;
pub(crate) mod stops;
pub(crate) mod time_limits;
pub(crate) mod vanished_writes;
mod webhooks;
