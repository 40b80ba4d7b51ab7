//! Finds for offers: the best jobs of each pair of queue and account, in one request.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    cluster::Cluster,
    document_cache::DocumentCache,
    documents, query,
    reads::read_waiting,
    reply::{self, Found, Hits},
};
use crate::{FIND_BEST, Find, Page, StoreError};

/// Maximum number of jobs of one pair. It is the default limit of Elasticsearch for `top_hits`.
const LIMIT_MAX: u32 = 100;

/// Result of the first request.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Best {
    cells: Cells,
}

/// Result of a request for a page.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct BestPage {
    page: Composite,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Composite {
    after_key: Option<Value>,
    buckets: Vec<Named>,
}

/// A pair, with its name.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Named {
    key: Key,
    doc_count: u64,
    best: Top,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Key {
    name: String,
}

/// Pairs of queue and account with their best jobs.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Cells {
    sum_other_doc_count: u64,
    buckets: Vec<Cell>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Cell {
    doc_count: u64,
    best: Top,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Top {
    hits: Hits,
}

/// Result of a find for one offer.
#[derive(Debug, Default)]
struct FoundCells {
    cells: Vec<Cell>,
    /// Last pair that was read.
    last: Option<String>,
    /// Best jobs of all, and the last pair that was looked at, if not all pairs were.
    best: Hits,
    next: Option<(String, String)>,
}

/// Returns a page for each offer. Offers with more pairs than one answer holds are asked again, by pages.
pub(super) async fn find_pages(
    cluster: &Cluster,
    page_names: usize,
    documents: &Arc<DocumentCache>,
    offers: &[Find],
) -> Result<Vec<Page>, StoreError> {
    let queries = offers
        .iter()
        .map(|offer| query::find(offer, size(page_names, offer), limit(offer)))
        .collect();
    let found: Vec<Found<Best>> = cluster
        .search_many(&cluster.indices.all_jobs(), queries)
        .await?;
    let mut all = Vec::with_capacity(offers.len());
    for (offer, found) in offers.iter().zip(found) {
        let first = found.aggregations.cells;
        all.push(if first.sum_other_doc_count == 0 {
            FoundCells {
                cells: first.buckets,
                ..FoundCells::default()
            }
        } else {
            find_by_pages(cluster, page_names, offer).await?
        });
    }
    let cache = Arc::clone(documents);
    let pages = move || {
        let all = all.into_iter();
        all.map(|found| page_of(found, &cache)).collect()
    };
    reply::aside(pages).await
}

/// Returns the number of pairs that one answer should hold.
fn size(page_names: usize, offer: &Find) -> usize {
    let most = usize::try_from(offer.pairs_max.max(1)).unwrap_or(usize::MAX);
    page_names.min(most)
}

/// Reads pairs from the find's begin to the last one, then from the first one on.
async fn find_by_pages(
    cluster: &Cluster,
    page_names: usize,
    offer: &Find,
) -> Result<FoundCells, StoreError> {
    let from = offer.after.as_ref();
    let from = from.map(|(queue, account)| documents::cell(queue, account));
    let mut found = FoundCells::default();
    let mut last = walk(cluster, page_names, offer, from.clone(), None, &mut found).await?;
    if last.is_none() && from.is_some() {
        last = walk(cluster, page_names, offer, None, from, &mut found).await?;
    }
    if let Some(last) = last {
        found.next = Some(documents::of_cell(&last)?);
        let query = query::find_best(offer, FIND_BEST);
        let best: Found = cluster
            .search_one(&cluster.indices.all_jobs(), &query)
            .await?;
        found.best = best.hits;
    }
    Ok(found)
}

/// Reads pairs behind `from` up to and including `up_to`. Returns the last one if enough pairs were read and there
/// may be more.
async fn walk(
    cluster: &Cluster,
    page_names: usize,
    offer: &Find,
    from: Option<Value>,
    up_to: Option<Value>,
    found: &mut FoundCells,
) -> Result<Option<String>, StoreError> {
    let most = usize::try_from(offer.pairs_max.max(1)).unwrap_or(usize::MAX);
    let up_to = up_to.as_ref().and_then(Value::as_str);
    let mut after = from.map(|cell| json!({"name": cell}));
    loop {
        let size = size(page_names, offer).min(most - found.cells.len());
        if size == 0 {
            return Ok(found.last.clone());
        }
        let query = query::find_page(offer, size, limit(offer), after.as_ref());
        let page: Found<BestPage> = cluster
            .search_one(&cluster.indices.all_jobs(), &query)
            .await?;
        let page = page.aggregations.page;
        for Named {
            key,
            doc_count,
            best,
        } in page.buckets
        {
            if up_to.is_some_and(|up_to| &*key.name > up_to) {
                return Ok(None);
            }
            found.cells.push(Cell { doc_count, best });
            found.last = Some(key.name);
        }
        after = page.after_key;
        if after.is_none() {
            return Ok(None);
        }
    }
}

fn limit(offer: &Find) -> u32 {
    offer.limit.clamp(1, LIMIT_MAX)
}

/// Returns the page: the best jobs first, over all pairs.
fn page_of(found: FoundCells, cache: &DocumentCache) -> Page {
    let mut page = Page {
        more: found.next.is_some(),
        next: found.next,
        ..Page::default()
    };
    for cell in found.cells {
        let hits = &cell.best.hits.hits;
        page.more |= cell.doc_count > hits.len() as u64;
        let jobs = hits.iter().filter_map(|hit| read_waiting(hit, cache));
        page.jobs.extend(jobs);
    }
    let best = found.best.hits.iter();
    page.jobs
        .extend(best.filter_map(|hit| read_waiting(hit, cache)));
    page.jobs.sort_by_key(|job| {
        let state = &job.state;
        let high_first = |n: i32| std::cmp::Reverse(n);
        (
            high_first(i32::from(state.class)),
            high_first(i32::from(state.priority)),
            state.job_id,
        )
    });
    page.jobs.dedup_by_key(|job| job.state.job_id);
    page
}
