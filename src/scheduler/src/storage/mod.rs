//! Access to the store that several flows share: group commit, a cache of small documents, a queue by due time.

pub(crate) mod doc_cache;
pub(crate) mod due_queue;
pub(crate) mod group_commit;
pub(crate) mod open;
