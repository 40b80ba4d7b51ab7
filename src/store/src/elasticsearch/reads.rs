//! Pulls, and searches of any kind. An incomplete search is an error.

use std::sync::Arc;

use ::elasticsearch::http::Method;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{
    call::{Call, Failure},
    cluster::BUSY_TRIES,
    document_cache::DocumentCache,
    documents, query,
    reply::{self, Found, Hit, MultiFound},
    store::ElasticStore,
};
use crate::{Page, Pull, StoreError, StoredJob};

/// Searches in one request.
const SEARCHES: usize = 50;

impl ElasticStore {
    /// Pages of waiting jobs, many in one request.
    pub(super) async fn pull_pages(&self, requests: &[Pull]) -> Result<Vec<Page>, StoreError> {
        let limit = |pull: &Pull| pull.limit.clamp(1, 10_000);
        let bodies = requests.iter().map(|r| query::pull(r, limit(r))).collect();
        let found = self.search_many(&self.all_jobs(), bodies).await?;
        let limits: Vec<u32> = requests.iter().map(limit).collect();
        let cache = Arc::clone(&self.documents);
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

    /// Jobs that must be looked at.
    pub(super) async fn alarms_before(
        &self,
        before_ms: u64,
        limit: u32,
    ) -> Result<Page, StoreError> {
        let limit = limit.clamp(1, 10_000);
        let found = self
            .search_one(&self.all_jobs(), &query::alarms(before_ms, limit))
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

    /// One search, whole or an error.
    pub(super) async fn search_one<A>(
        &self,
        index: &str,
        body: &Value,
    ) -> Result<Found<A>, StoreError>
    where
        A: DeserializeOwned + Default + Send + 'static,
    {
        let path = format!(
            "/{index}/_search?allow_partial_search_results=false&ignore_unavailable=true&filter_path=-hits.hits.sort"
        );
        let call = Call::read(Method::Post, path).json(body);
        let body = self.cluster.call(&call).await.map_err(Failure::of_read)?;
        let found = reply::parse::<Found<A>>(body).await?;
        found
            .whole()
            .inspect_err(|error| self.cluster.watch.read_failed(&error.to_string()))
    }

    /// Searches in the same place, each whole or an error.
    pub(super) async fn search_many<A>(
        &self,
        index: &str,
        bodies: Vec<Value>,
    ) -> Result<Vec<Found<A>>, StoreError>
    where
        A: DeserializeOwned + Default + Send + 'static,
    {
        let searches = bodies
            .into_iter()
            .map(|body| (json!({"index": index}), body));
        self.search_each(searches.collect()).await
    }

    /// Searches, each with where it looks (`index`, perhaps `preference`), whole or an error.
    pub(super) async fn search_each<A>(
        &self,
        searches: Vec<(Value, Value)>,
    ) -> Result<Vec<Found<A>>, StoreError>
    where
        A: DeserializeOwned + Default + Send + 'static,
    {
        let mut found = Vec::with_capacity(searches.len());
        for bodies in searches.chunks(SEARCHES) {
            let lines = bodies.iter().map(|(place, body)| {
                let mut header = place.clone();
                header["allow_partial_search_results"] = json!(false);
                header["ignore_unavailable"] = json!(true);
                format!("{header}\n{body}\n")
            });
            let call = Call::read(Method::Post, "/_msearch").lines(lines.collect());
            for one in self.multi_search(&call, bodies.len()).await? {
                let one = one.whole();
                found.push(
                    one.inspect_err(|error| self.cluster.watch.read_failed(&error.to_string()))?,
                );
            }
        }
        Ok(found)
    }

    /// An `_msearch`, again while one of its searches meets overload: the answer itself is then a success.
    async fn multi_search<A>(&self, call: &Call, many: usize) -> Result<Vec<Found<A>>, StoreError>
    where
        A: DeserializeOwned + Default + Send + 'static,
    {
        let mut tries = 0;
        loop {
            tries += 1;
            let body = self.cluster.call(call).await.map_err(Failure::of_read)?;
            let reply: MultiFound<A> = reply::parse(body).await?;
            if reply.responses.len() != many {
                return Err(StoreError::Refused {
                    reason: format!(
                        "{many} searches were sent, {} answered",
                        reply.responses.len()
                    ),
                });
            }
            if tries == BUSY_TRIES || reply.responses.iter().all(|one| one.status != 429) {
                return Ok(reply.responses);
            }
            self.cluster
                .wait_while_busy(tries, self.request_timeout)
                .await;
        }
    }
}

/// The first `limit` jobs, and whether there was one more.
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

/// A job that waits, whose document is kept for when it is claimed.
pub(super) fn read_waiting(hit: &Hit, cache: &DocumentCache) -> Option<StoredJob> {
    let job = read_hit(hit)?;
    cache.keep(job.state.job_id, job.version, hit.source.get());
    Some(job)
}

/// A job, or a warning when this version cannot read it: one document of tomorrow must not hide all others.
pub(super) fn read_hit(hit: &Hit) -> Option<StoredJob> {
    let version = hit.version();
    match documents::state_of(hit.source.get()) {
        Ok(state) => Some(StoredJob { state, version }),
        Err(reason) => {
            let fields = serde_json::from_str::<Value>(hit.source.get()).unwrap_or_default();
            let id = fields.get("job_id");
            tracing::warn!(job_id = ?id, %reason, "a stored job is passed over");
            None
        }
    }
}
