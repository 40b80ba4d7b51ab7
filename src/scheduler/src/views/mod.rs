//! What people are shown: jobs, and explanations of waiting.

pub(crate) mod explain;
pub(crate) mod host;
pub(crate) mod job;
pub(crate) mod metrics_text;
