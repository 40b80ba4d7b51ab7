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
    /// Of jobs that wait.
    pub(super) documents: Arc<DocumentCache>,
    /// Of the newest jobs that were submitted here and may run.
    pub(super) bodies: BodyCache,
    /// Most names in one answer of counts and finds; more are read by pages.
    pub(super) page_names: usize,
    /// The lowest version among the nodes, as it was at start.
    pub(super) version: String,
}

impl ElasticStore {
    /// With another page of names in counts and finds than 10,000: tests try what happens beyond it.
    #[doc(hidden)]
    #[must_use]
    pub fn with_page_of_names(mut self, names: usize) -> Self {
        self.page_names = names;
        self
    }
}
