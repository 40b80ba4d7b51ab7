//! Access to the store that several flows share: group commit, small documents and their cache, controllers,
//! the data folder that replicas share.

pub mod controller;
pub mod doc_cache;
pub mod doc_fields;
mod due_queue;
mod forget;
pub mod group_commit;
pub mod group_reads;
pub mod lab_folder;
pub mod open;
pub mod small_doc;
pub mod timed_store;
