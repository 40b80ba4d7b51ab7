//! The engine and the store: the engine's task, claims, answers to waiting requests, and reads for the engine.

pub(crate) mod answers;
pub(crate) mod claims;
pub(crate) mod engine_task;
pub(crate) mod store_reads;
