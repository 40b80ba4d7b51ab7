//! [`ElasticStore`]: the cluster, and caches of documents that this replica read and wrote.

use std::sync::Arc;

use super::{
    body_cache::BodyCache, cluster::Cluster, document_cache::DocumentCache, looks::Looks,
    places::Places,
};

/// Jobs in Elasticsearch, for any number of replicas at once.
#[derive(Debug)]
pub struct ElasticStore {
    pub(super) cluster: Cluster,
    pub(super) places: Places,
    pub(super) looks: Looks,
    /// Cached documents of waiting jobs.
    pub(super) documents: Arc<DocumentCache>,
    /// Cached bodies of the newest jobs that were submitted here and may run.
    pub(super) bodies: BodyCache,
    /// Maximum number of names in one answer of counts and finds. More are read by pages.
    pub(super) page_names: usize,
    /// Lowest version among the nodes at the start.
    pub(super) version: String,
}

impl ElasticStore {
    /// Sets another page of names in counts and finds than 10,000, for tests of more names.
    #[doc(hidden)]
    #[must_use]
    pub fn with_page_of_names(mut self, names: usize) -> Self {
        self.page_names = names;
        self
    }
}
