//! Opens the store: login, version of the server, set-up.

use std::sync::Arc;

use super::{
    cluster::Cluster,
    config::ElasticConfig,
    document_cache::{DocumentCache, RecentCache},
    login,
    places::Places,
    setup,
    store::ElasticStore,
};
use crate::{StoreError, clock::Chance};

/// Names (accounts, queues, host keys, pairs of them) in one answer; Elasticsearch gives 65,536 at most.
const PAGE_NAMES: usize = 10_000;
/// Bodies that are kept, at least; twice as many at the most, some MB. They are for jobs that are handed out soon: of a
/// long queue the oldest go first.
const BODIES_KEPT: usize = 1_000;

impl ElasticStore {
    /// Checks the server and the login; puts templates, and makes the indices of this month and the next,
    /// where they are not there yet.
    ///
    /// # Errors
    /// [`StoreError::Unusable`], with what to do: nobody answers, the server is older than 8.0 or refuses
    /// the credentials or the mapping, the credentials lack rights, the templates there are from a newer
    /// version.
    pub async fn open(config: ElasticConfig) -> Result<Self, StoreError> {
        config.check()?;
        let mut store = Self {
            cluster: Cluster::new(&config)?,
            prefix: config.index_prefix.clone(),
            request_timeout: config.request_timeout,
            chance: Chance::new(),
            places: Places::default(),
            documents: Arc::new(DocumentCache::new(config.documents_kept as usize)),
            bodies: RecentCache::new(BODIES_KEPT),
            page_names: PAGE_NAMES,
            version: String::new(),
        };
        login::check(&store, &config).await?;
        store.version = setup::check_version(&store, &config).await?;
        store.set_up(&config).await?;
        Ok(store)
    }
}
