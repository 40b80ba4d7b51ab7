//! Opens the store: login, version of the server, set-up.

use std::sync::Arc;

use futures_util::future::join3;

use super::{
    body_cache::BodyCache, cluster::Cluster, config::ElasticConfig, document_cache::DocumentCache,
    login, looks::Looks, moving, places::Places, setup, store::ElasticStore, templates,
    there::There,
};
use crate::{StoreError, clock};

/// Number of names (accounts, queues, host keys, pairs of them) in one answer. Elasticsearch gives at most 65,536.
const PAGE_NAMES: usize = 10_000;

impl ElasticStore {
    /// Checks the server and the login. Puts missing templates and creates missing indices. Moves the small documents
    /// of an older version once.
    ///
    /// # Errors
    /// Fails with [`StoreError::Unusable`] and advice in these cases: no node answers, or the server is older than
    /// 8.0. It refuses the credentials or the mapping, or the credentials lack rights. The templates are from a newer
    /// version. Replicas of an older version run on a lab whose documents must be moved.
    pub async fn open(config: ElasticConfig) -> Result<Self, StoreError> {
        config.check()?;
        let cluster = Cluster::new(&config)?;
        let (login, version, there) = join3(
            login::check(&cluster, &config),
            setup::check_version(&cluster, &config),
            There::read(&cluster, &config),
        )
        .await;
        login?;
        let version = version?;
        set_up(&cluster, &config, there?).await?;
        Ok(Self::over(cluster, &config, version))
    }

    /// Opens a lab only to read it. Changes nothing.
    ///
    /// # Errors
    /// Fails with [`StoreError::Unusable`] and advice if no node answers, the server refuses the credentials, or
    /// there is no lab under the prefix.
    pub async fn open_to_read(config: ElasticConfig) -> Result<Self, StoreError> {
        config.check()?;
        let cluster = Cluster::new(&config)?;
        let version = setup::check_version(&cluster, &config).await?;
        let there = There::read(&cluster, &config).await?;
        moving::refuse_unmoved(&cluster, &there)?;
        if there.indices.is_empty() {
            return Err(StoreError::Unusable {
                reason: format!(
                    "there is no lab under the prefix '{}' at {}",
                    config.index_prefix,
                    config.shown_urls()
                ),
                hint: "check --index-prefix".to_owned(),
            });
        }
        Ok(Self::over(cluster, &config, version))
    }

    fn over(cluster: Cluster, config: &ElasticConfig, version: String) -> Self {
        cluster.opened();
        Self {
            cluster,
            places: Places::default(),
            looks: Looks::default(),
            documents: Arc::new(DocumentCache::new(config.documents_kept as usize)),
            bodies: BodyCache::default(),
            page_names: PAGE_NAMES,
            version,
        }
    }
}

/// Ensures that templates, the fields of existing indices, and the present indices exist.
async fn set_up(
    cluster: &Cluster,
    config: &ElasticConfig,
    mut there: There,
) -> Result<(), StoreError> {
    let wanted = templates::wanted(cluster, &there, config)?;
    moving::refuse_bodies_apart(cluster, &there)?;
    let old = moving::old_documents(cluster, &there);
    if old.is_empty() {
        templates::ensure(cluster, &there, &wanted).await?;
    } else {
        there = moving::move_documents(cluster, config, &there, &wanted, &old).await?;
    }
    moving::clear_away(cluster, &there).await;
    let months = setup::months_ahead(clock::unix_ms());
    let mut indices = cluster.indices.all_docs();
    indices.extend(
        months
            .iter()
            .flat_map(|month| cluster.indices.of_month(month)),
    );
    cluster.made.lock().extend(months);
    let (there, missing) = indices.into_iter().partition(|name| there.has(name));
    setup::make_and_wait(cluster, missing, there).await
}
