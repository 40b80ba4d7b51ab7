//! The engine beside the store: its task and inbox, claims, and what is read for it.

pub(crate) mod answers;
pub(crate) mod claims;
pub(crate) mod engine_task;
pub(crate) mod store_reads;
