//! What offers could take: of each pair of queue and account the best jobs, in one request.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::{
    query,
    reads::read_waiting,
    reply::{self, Found, Hits},
    sources::Sources,
    store::ElasticStore,
};
use crate::{Find, Page, StoreError};

/// The most jobs of one pair: as many as an aggregation gives unless an index is told otherwise.
const LIMIT_MAX: u32 = 100;

/// What the first request asks for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Best {
    cells: Cells,
}

/// What a request for a page asks for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct BestPage {
    page: Cells,
}

/// Pairs of queue and account with their best jobs.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Cells {
    sum_other_doc_count: u64,
    after_key: Option<Value>,
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

impl ElasticStore {
    /// A page for each offer; offers with more pairs than one answer holds are asked again, by pages.
    pub(super) async fn find_pages(&self, offers: &[Find]) -> Result<Vec<Page>, StoreError> {
        let queries = offers
            .iter()
            .map(|offer| query::find(offer, self.page_names, limit(offer)))
            .collect();
        let found: Vec<Found<Best>> = self.search_many(&self.all_jobs(), queries).await?;
        let mut cells = Vec::with_capacity(offers.len());
        for (offer, found) in offers.iter().zip(found) {
            let first = found.aggregations.cells;
            cells.push(if first.sum_other_doc_count == 0 {
                first.buckets
            } else {
                self.find_by_pages(offer).await?
            });
        }
        let sources = Arc::clone(&self.sources);
        let pages = move || {
            let cells = cells.into_iter();
            cells.map(|cells| page_of(cells, &sources)).collect()
        };
        reply::aside(pages).await
    }

    async fn find_by_pages(&self, offer: &Find) -> Result<Vec<Cell>, StoreError> {
        let mut cells = Vec::new();
        let mut after = None;
        loop {
            let query = query::find_page(offer, self.page_names, limit(offer), after.as_ref());
            let found: Found<BestPage> = self.search_one(&self.all_jobs(), &query).await?;
            let page = found.aggregations.page;
            cells.extend(page.buckets);
            after = page.after_key;
            if after.is_none() {
                return Ok(cells);
            }
        }
    }
}

fn limit(offer: &Find) -> u32 {
    offer.limit.clamp(1, LIMIT_MAX)
}

/// Best first over all pairs.
fn page_of(cells: Vec<Cell>, sources: &Sources) -> Page {
    let mut page = Page::default();
    for cell in cells {
        let hits = &cell.best.hits.hits;
        page.more |= cell.doc_count > hits.len() as u64;
        let jobs = hits.iter().filter_map(|hit| read_waiting(hit, sources));
        page.jobs.extend(jobs);
    }
    page.jobs.sort_by_key(|job| {
        let state = &job.state;
        let high_first = |n: i32| std::cmp::Reverse(n);
        (
            high_first(i32::from(state.class)),
            high_first(i32::from(state.priority)),
            state.job_id,
        )
    });
    page
}
