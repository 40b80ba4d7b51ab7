//! Views for people: jobs, hosts and explanations. Read only.

pub(crate) mod answer;
pub(crate) mod answer_page;
pub(crate) mod explain;
mod explain_before;
mod explain_costs;
mod explain_host;
mod explain_idle;
mod explain_load;
mod explain_shards;
mod explain_times;
pub(crate) mod host;
mod host_empties;
pub(crate) mod job;
pub(crate) mod outlook;
pub(crate) mod submit_events;
