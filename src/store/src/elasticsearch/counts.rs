//! Exact counts of the waiting jobs, however many names and shards there are.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::{
    documents::{self, CELL},
    query,
    reply::Found,
    store::ElasticStore,
};
use crate::{Counts, StoreError};

/// Counts by name.
type Tally = BTreeMap<String, u64>;

/// What the first request asks for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Counted {
    cells: Terms,
    host_keys: Terms,
}

/// A `terms` aggregation: whole only if it says so.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Terms {
    sum_other_doc_count: u64,
    doc_count_error_upper_bound: i64,
    buckets: Vec<Bucket<String>>,
}

/// One page of a `composite` aggregation.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Pages {
    page: Composite,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Composite {
    after_key: Option<Value>,
    buckets: Vec<Bucket<Key>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Key {
    name: String,
}

#[derive(Debug, Deserialize)]
struct Bucket<K> {
    key: K,
    doc_count: u64,
}

impl ElasticStore {
    /// Counts in one request; by pages where there are more names than one answer holds.
    pub(super) async fn count(&self) -> Result<Counts, StoreError> {
        let query = query::counts(self.page_names);
        let found: Found<Counted> = self.search_one(&self.all_jobs(), &query).await?;
        let Counted { cells, host_keys } = found.aggregations;
        let cells = self.whole(CELL, cells).await?;
        let host_keys = self.whole("host_keys", host_keys).await?;
        let (mut total, mut accounts, mut queues) = (0, Tally::new(), Tally::new());
        for (cell, count) in cells {
            let (queue, account) = documents::of_cell(&cell)?;
            total += count;
            *queues.entry(queue).or_default() += count;
            *accounts.entry(account).or_default() += count;
        }
        let list = |tally: Tally| tally.into_iter().collect();
        Ok(Counts {
            total,
            accounts: list(accounts),
            queues: list(queues),
            host_keys: list(host_keys),
        })
    }

    /// These terms when they are all and exact; else all of `field`.
    async fn whole(&self, field: &str, terms: Terms) -> Result<Tally, StoreError> {
        if terms.sum_other_doc_count == 0 && terms.doc_count_error_upper_bound == 0 {
            let buckets = terms.buckets.into_iter();
            return Ok(buckets
                .map(|bucket| (bucket.key, bucket.doc_count))
                .collect());
        }
        let mut tally = Tally::new();
        let mut after = None;
        loop {
            let query = query::counts_page(field, self.page_names, after.as_ref());
            let found: Found<Pages> = self.search_one(&self.all_jobs(), &query).await?;
            let page = found.aggregations.page;
            let buckets = page.buckets.into_iter();
            tally.extend(buckets.map(|bucket| (bucket.key.name, bucket.doc_count)));
            after = page.after_key;
            if after.is_none() {
                return Ok(tally);
            }
        }
    }
}
