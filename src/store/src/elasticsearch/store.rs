//! [`ElasticStore`]: the state that its parts share, and the names of indices.

use std::{sync::Arc, time::Duration};

use fairlead_job::JobId;

use super::{
    cluster::Cluster,
    document_cache::{DocumentCache, RecentCache},
    places::Places,
};
use crate::{DocKind, clock::Chance};

/// Jobs in Elasticsearch, for any number of replicas at once.
#[derive(Debug)]
pub struct ElasticStore {
    pub(super) cluster: Cluster,
    pub(super) prefix: String,
    pub(super) request_timeout: Duration,
    pub(super) chance: Chance,
    pub(super) places: Places,
    /// Of jobs that wait.
    pub(super) documents: Arc<DocumentCache>,
    /// Documents of bodies of the newest jobs that were submitted here and may run: whoever waits for one gets it without
    /// another look at the store. A body never changes.
    pub(super) bodies: RecentCache<Box<str>>,
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

    /// Where the state of a job is, for ever.
    pub(super) fn jobs_index(&self, id: JobId) -> String {
        format!("{}-jobs-{}", self.prefix, id.month())
    }

    /// Where its body is.
    pub(super) fn bodies_index(&self, id: JobId) -> String {
        format!("{}-bodies-{}", self.prefix, id.month())
    }

    /// Where the events of a month are.
    pub(super) fn events_index(&self, month: &str) -> String {
        format!("{}-events-{month}", self.prefix)
    }

    /// Where documents of a kind are.
    pub(super) fn docs_index(&self, kind: DocKind) -> String {
        format!("{}-{}", self.prefix, kind.as_str())
    }

    /// The states of every month: for searches only.
    pub(super) fn all_jobs(&self) -> String {
        format!("{}-jobs-*", self.prefix)
    }
}
