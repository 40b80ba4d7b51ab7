//! Facts: what this replica believes, as structs without a clock of their own. Accounts, hosts and queues also read
//! their documents from the store. Nothing here writes.

pub(crate) mod account_doc;
pub(crate) mod account_notify;
pub(crate) mod accounts;
pub(crate) mod alarms;
pub(crate) mod board;
pub(crate) mod changes;
pub(crate) mod clusters;
pub(crate) mod content;
pub(crate) mod cordons;
pub(crate) mod data_room;
pub(crate) mod dependants;
pub(crate) mod facts;
pub(crate) mod feasibility;
pub(crate) mod feed;
pub(crate) mod host_evidence;
pub(crate) mod host_turns;
pub(crate) mod hosts;
pub(crate) mod ids;
pub(crate) mod instances;
pub(crate) mod leases;
pub(crate) mod limits;
pub(crate) mod live_jobs;
pub(crate) mod log_sizes;
pub(crate) mod lost_hosts;
pub(crate) mod open_requests;
pub(crate) mod outbox;
pub(crate) mod parents;
pub(crate) mod pending;
pub(crate) mod plans;
pub(crate) mod pools;
pub(crate) mod previews;
pub(crate) mod queue_users;
pub(crate) mod queues;
pub(crate) mod replicas;
pub(crate) mod reservations;
pub(crate) mod reuse;
pub(crate) mod reuse_settings;
pub(crate) mod rules;
pub(crate) mod run_times;
pub(crate) mod samples;
pub(crate) mod seen_versions;
pub(crate) mod sequences;
pub(crate) mod starts;
pub(crate) mod test_times;
pub(crate) mod timers;
pub(crate) mod tokens;
pub(crate) mod unknown_machines;
pub(crate) mod uploads;
pub(crate) mod usage;
pub(crate) mod vanished_writes;
pub(crate) mod webhook_places;
pub(crate) mod webhooks;
pub(crate) mod work_request;

#[cfg(test)]
mod tests;
