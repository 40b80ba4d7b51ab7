//! Pages of jobs: those that wait, and those that must be looked at.

use std::sync::Arc;

use serde_json::Value;

use super::{
    cluster::Cluster,
    document_cache::DocumentCache,
    documents, query,
    reply::{self, Found, Hit},
};
use crate::{Page, Pull, StoreError, StoredJob};

/// Returns pages of waiting jobs, many in one request.
pub(super) async fn pull_pages(
    cluster: &Cluster,
    cache: &Arc<DocumentCache>,
    requests: &[Pull],
) -> Result<Vec<Page>, StoreError> {
    let limit = |pull: &Pull| pull.limit.clamp(1, 10_000);
    let bodies = requests.iter().map(|r| query::pull(r, limit(r))).collect();
    let found = cluster
        .search_many(&cluster.indices.all_jobs(), bodies)
        .await?;
    let limits: Vec<u32> = requests.iter().map(limit).collect();
    let cache = Arc::clone(cache);
    reply::aside(move || {
        let pages = limits.into_iter().zip(found);
        pages
            .map(|(limit, found)| {
                let (jobs, more) = first_of(&found, limit, |hit| read_waiting(hit, &cache));
                Page {
                    jobs,
                    more,
                    next: None,
                }
            })
            .collect()
    })
    .await
}

/// Returns jobs that must be looked at.
pub(super) async fn alarms_before(
    cluster: &Cluster,
    before_ms: u64,
    limit: u32,
) -> Result<Page, StoreError> {
    let limit = limit.clamp(1, 10_000);
    let found = cluster
        .search_one(
            &cluster.indices.all_jobs(),
            &query::alarms(before_ms, limit),
        )
        .await?;
    reply::aside(move || {
        let (jobs, more) = first_of(&found, limit, read_hit);
        Page {
            jobs,
            more,
            next: None,
        }
    })
    .await
}

/// Returns the first `limit` jobs, and true if there was one more.
pub(super) fn first_of(
    found: &Found,
    limit: u32,
    read: impl FnMut(&Hit) -> Option<StoredJob>,
) -> (Vec<StoredJob>, bool) {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let hits = &found.hits.hits;
    let jobs = hits.iter().take(limit).filter_map(read).collect();
    (jobs, hits.len() > limit)
}

/// Reads a waiting job, and caches its document for the claim.
pub(super) fn read_waiting(hit: &Hit, cache: &DocumentCache) -> Option<StoredJob> {
    let job = read_hit(hit)?;
    cache.keep(job.state.job_id, job.version, hit.source.get());
    Some(job)
}

/// Reads a job. Logs a warning if this version cannot read it: a document of a newer version must not hide all
/// others.
pub(super) fn read_hit(hit: &Hit) -> Option<StoredJob> {
    let version = hit.version();
    match documents::state_of(hit.source.get()) {
        Ok(state) => Some(StoredJob { state, version }),
        Err(reason) => {
            let fields = serde_json::from_str::<Value>(hit.source.get()).unwrap_or_default();
            let id = fields.get("job_id");
            tracing::warn!(job_id = ?id, %reason, "a stored job is malformed and was skipped");
            None
        }
    }
}
