//! From the body of a submit to stored jobs: read, build, check, create.

pub(crate) mod build;
pub(crate) mod built_jobs;
pub(crate) mod cluster_nodes;
pub(crate) mod create;
mod devices;
pub(crate) mod edits;
pub(crate) mod groups;
pub(crate) mod idempotency;
pub(crate) mod inputs;
pub(crate) mod intake;
pub(crate) mod max_run;
pub(crate) mod needs;
pub(crate) mod queue_use;
pub(crate) mod quotas;
mod records;
pub(crate) mod rules;
pub(crate) mod submit;
mod submit_ids;
pub(crate) mod timer_run;
mod unknown_machines;
mod webhooks;

#[cfg(test)]
mod tests;
