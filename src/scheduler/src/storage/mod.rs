//! Access to the store that several flows share: group commit, small documents and their cache, controllers,
//! the data folder that replicas share.

pub(crate) mod controller;
pub(crate) mod doc_cache;
pub(crate) mod doc_fields;
mod due_queue;
mod forget;
pub(crate) mod group_commit;
pub(crate) mod group_reads;
pub(crate) mod lab_folder;
pub(crate) mod open;
pub(crate) mod small_doc;
pub(crate) mod timed_store;
