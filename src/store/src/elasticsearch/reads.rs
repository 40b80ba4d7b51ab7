//! Counts, pulls, finds and searches. A search that is not whole is an error.

use std::collections::BTreeSet;

use ::elasticsearch::http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    cluster::{Call, Failure},
    documents, query,
    reply::{self, Found, Hit, MultiFound},
    store::ElasticStore,
};
use crate::{Counts, Find, Page, Pull, Search, SearchPage, StoreError, StoredJob, Version};

/// Terms of one count; more names than that are counted by pages.
const COUNT_TERMS: usize = 10_000;
/// Searches in one request.
const SEARCHES: usize = 50;
/// Pairs of queue and account that one find answers.
const FIND_GROUPS: u32 = 10_000;

/// A `terms` aggregation.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Terms {
    sum_other_doc_count: u64,
    doc_count_error_upper_bound: i64,
    buckets: Vec<Bucket>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Bucket {
    key: String,
    doc_count: u64,
}

impl ElasticStore {
    /// Exact counts of the waiting jobs.
    pub(super) async fn count(&self) -> Result<Counts, StoreError> {
        let index = self.all_jobs();
        let found = self.search_one(&index, &query::counts(COUNT_TERMS)).await?;
        let mut lists = Vec::new();
        for field in query::COUNTED {
            // Without a single index there are no aggregations in the answer.
            let terms = found.aggregations.get(field).cloned();
            let terms: Terms = terms
                .map_or_else(|| Ok(Terms::default()), serde_json::from_value)
                .map_err(|error| misunderstood(&error))?;
            let is_exact = terms.sum_other_doc_count == 0 && terms.doc_count_error_upper_bound == 0;
            let mut list = if is_exact {
                let buckets = terms.buckets.into_iter();
                buckets
                    .map(|bucket| (bucket.key, bucket.doc_count))
                    .collect()
            } else {
                self.count_by_pages(&index, field).await?
            };
            list.sort_unstable();
            lists.push(list);
        }
        let mut lists = lists.into_iter();
        let mut next = || lists.next().unwrap_or_default();
        Ok(Counts {
            total: found.hits.total.map_or(0, |total| total.value),
            accounts: next(),
            queues: next(),
            host_keys: next(),
        })
    }

    async fn count_by_pages(
        &self,
        index: &str,
        field: &str,
    ) -> Result<Vec<(String, u64)>, StoreError> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Composite {
            after_key: Option<Value>,
            buckets: Vec<CompositeBucket>,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct CompositeBucket {
            key: std::collections::BTreeMap<String, String>,
            doc_count: u64,
        }
        let mut list = Vec::new();
        let mut after = None;
        loop {
            let body = query::counts_page(field, COUNT_TERMS, after.as_ref());
            let mut found = self.search_one(index, &body).await?;
            let page = found.aggregations.remove(field).unwrap_or_default();
            let page: Composite =
                serde_json::from_value(page).map_err(|error| misunderstood(&error))?;
            let names = page.buckets.into_iter().filter_map(|bucket| {
                let name = bucket.key.into_values().next()?;
                Some((name, bucket.doc_count))
            });
            list.extend(names);
            after = page.after_key;
            if after.is_none() {
                return Ok(list);
            }
        }
    }

    /// Pages of waiting jobs, many in one request.
    pub(super) async fn pull_pages(&self, requests: &[Pull]) -> Result<Vec<Page>, StoreError> {
        let limit = |pull: &Pull| pull.limit.clamp(1, 10_000);
        let bodies = requests.iter().map(|r| query::pull(r, limit(r))).collect();
        let found = self.search_many(&self.all_jobs(), bodies).await?;
        let limits: Vec<u32> = requests.iter().map(limit).collect();
        reply::aside(move || {
            let pages = limits.into_iter().zip(found);
            pages
                .map(|(limit, found)| {
                    let (jobs, more) = first_of(found, limit);
                    Page { jobs, more }
                })
                .collect()
        })
        .await
    }

    /// What offers could take, many in one request.
    pub(super) async fn find_pages(&self, requests: &[Find]) -> Result<Vec<Page>, StoreError> {
        let bodies = requests
            .iter()
            .map(|offer| query::find(offer, FIND_GROUPS, offer.limit.clamp(1, 10_000)))
            .collect();
        let found = self.search_many(&self.all_jobs(), bodies).await?;
        reply::aside(|| found.into_iter().map(found_page).collect()).await
    }

    /// A search for people.
    pub(super) async fn search_page(&self, search: &Search) -> Result<SearchPage, StoreError> {
        let limit = search.limit.min(1_000);
        let body = query::search(search, limit);
        let found = self.search_one(&self.all_jobs(), &body).await?;
        let total = found.hits.total.as_ref().map_or(0, |total| total.value);
        reply::aside(move || {
            let (jobs, more) = first_of(found, limit);
            SearchPage { jobs, total, more }
        })
        .await
    }

    /// One search, whole or an error.
    pub(super) async fn search_one(&self, index: &str, body: &Value) -> Result<Found, StoreError> {
        let path = format!(
            "/{index}/_search?allow_partial_search_results=false&ignore_unavailable=true&filter_path=-hits.hits.sort"
        );
        let call = Call::new(Method::Post, path).json(body);
        let body = self.cluster.call(&call).await.map_err(Failure::of_read)?;
        reply::parse::<Found>(body).await?.whole()
    }

    async fn search_many(&self, index: &str, bodies: Vec<Value>) -> Result<Vec<Found>, StoreError> {
        let searches = bodies
            .into_iter()
            .map(|body| (json!({"index": index}), body));
        self.search_each(searches.collect()).await
    }

    /// Searches, each with where it looks (`index`, perhaps `preference`), whole or an error.
    pub(super) async fn search_each(
        &self,
        searches: Vec<(Value, Value)>,
    ) -> Result<Vec<Found>, StoreError> {
        let mut found = Vec::with_capacity(searches.len());
        for bodies in searches.chunks(SEARCHES) {
            let lines = bodies.iter().map(|(place, body)| {
                let mut header = place.clone();
                header["allow_partial_search_results"] = json!(false);
                header["ignore_unavailable"] = json!(true);
                format!("{header}\n{body}\n")
            });
            let call = Call::new(Method::Post, "/_msearch").lines(lines.collect());
            let body = self.cluster.call(&call).await.map_err(Failure::of_read)?;
            let reply: MultiFound = reply::parse(body).await?;
            if reply.responses.len() != bodies.len() {
                return Err(StoreError::Refused {
                    reason: format!(
                        "{} searches were sent, {} answered",
                        bodies.len(),
                        reply.responses.len()
                    ),
                });
            }
            for one in reply.responses {
                found.push(one.whole()?);
            }
        }
        Ok(found)
    }
}

fn misunderstood(error: &serde_json::Error) -> StoreError {
    StoreError::Refused {
        reason: format!("an answer of Elasticsearch was not understood: {error}"),
    }
}

/// The first `limit` jobs, and whether there was one more.
pub(super) fn first_of(found: Found, limit: u32) -> (Vec<StoredJob>, bool) {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = found.hits.hits.len() > limit;
    let hits = found.hits.hits.into_iter().take(limit);
    (hits.filter_map(read_hit).collect(), more)
}

/// The jobs under each collapsed hit, or the hit itself, best first over all.
fn found_page(found: Found) -> Page {
    let total = found.hits.total.map_or(0, |total| total.value);
    let mut jobs = Vec::new();
    let mut seen = BTreeSet::new();
    for mut hit in found.hits.hits {
        let inner = std::mem::take(&mut hit.inner_hits);
        let mut group: Vec<Hit> = inner.into_values().flat_map(|i| i.hits.hits).collect();
        if group.is_empty() {
            group.push(hit);
        }
        jobs.extend(group.into_iter().filter_map(read_hit));
    }
    jobs.retain(|job| seen.insert(job.state.job_id));
    jobs.sort_by_key(|job| {
        let state = &job.state;
        let high_first = |n: i32| std::cmp::Reverse(n);
        (
            high_first(i32::from(state.class)),
            high_first(i32::from(state.priority)),
            state.job_id,
        )
    });
    let more = total > jobs.len() as u64;
    Page { jobs, more }
}

/// A job, or a warning when this version cannot read it: one document of tomorrow must not hide all others.
fn read_hit(hit: Hit) -> Option<StoredJob> {
    let id = hit.source.get("job_id").cloned();
    match documents::state_of(hit.source) {
        Ok(state) => Some(StoredJob {
            state,
            version: Version {
                primary_term: hit.primary_term,
                seq_no: hit.seq_no,
            },
        }),
        Err(reason) => {
            tracing::warn!(job_id = ?id, %reason, "a stored job is passed over");
            None
        }
    }
}
