//! Counts waiting jobs exactly, for all names or a bounded number of them, over any number of shards.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde::Deserialize;
use serde_json::Value;

use super::{
    cluster::Cluster,
    docs,
    documents::{self, CELL},
    query,
    reply::Found,
};
use crate::{CountOf, Counts, StoreError, Usage};

/// Counts by name.
type Tally = BTreeMap<String, u64>;

/// Result of the first request.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Counted {
    cells: Terms,
    host_keys: Terms,
}

/// Result of the second request, for many names.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Most {
    accounts: Terms,
    queues: Terms,
}

/// Result of a `terms` aggregation. It is complete only if it says so.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Terms {
    sum_other_doc_count: u64,
    doc_count_error_upper_bound: i64,
    buckets: Vec<Bucket<String>>,
}

/// Content ids that jobs name.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Named {
    inputs: Terms,
    outputs: Terms,
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

/// Result of sums of usage.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Sums {
    each: Each,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Each {
    buckets: Vec<One>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct One {
    used: Sum,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Sum {
    value: f64,
}

/// Returns the time that testboxes spent on jobs of these accounts and queues, ms, then the bytes that jobs of
/// accounts uploaded.
pub(super) async fn used_since(cluster: &Cluster, usage: &Usage) -> Result<Vec<u64>, StoreError> {
    let mut used = Vec::new();
    if !usage.accounts.is_empty() || !usage.queues.is_empty() {
        used = sums(cluster, &query::usage(usage)).await?;
    }
    if !usage.uploads_of.is_empty() {
        used.extend(sums(cluster, &query::uploads(&usage.uploads_of)).await?);
    }
    Ok(used)
}

/// Returns the sums of several groups.
async fn sums(cluster: &Cluster, query: &Value) -> Result<Vec<u64>, StoreError> {
    let index = cluster.indices.all_jobs();
    let found: Found<Sums> = cluster.search_one(&index, query).await?;
    let sums = found.aggregations.each.buckets.into_iter();
    // As thousandths of a second: a duration is made of a fraction without loss.
    let used = sums.map(|one| Duration::try_from_secs_f64(one.used.value / 1000.0));
    let used = used.map(|used| used.map_or(0, |used| used.as_millis()));
    Ok(used
        .map(|sum| u64::try_from(sum).unwrap_or(u64::MAX))
        .collect())
}

/// Tells for each of these ids if any job names it as an input or as its outputs. Refreshes the indices first.
pub(super) async fn named(cluster: &Cluster, content: &[String]) -> Result<Vec<bool>, StoreError> {
    if content.is_empty() {
        return Ok(Vec::new());
    }
    docs::refresh_all(cluster).await?;
    // Values must be different ones.
    let wanted: BTreeSet<&str> = content.iter().map(String::as_str).collect();
    let wanted: Vec<&str> = wanted.into_iter().collect();
    let found: Found<Named> = cluster
        .search_one(&cluster.indices.all_jobs(), &query::named(&wanted))
        .await?;
    let Named { inputs, outputs } = found.aggregations;
    if inputs.sum_other_doc_count > 0 || outputs.sum_other_doc_count > 0 {
        return Err(StoreError::Refused {
            reason: "Elasticsearch did not count all content that jobs name".to_owned(),
        });
    }
    let (inputs, outputs) = (inputs.tally(), outputs.tally());
    let is_named = |id: &String| inputs.contains_key(id) || outputs.contains_key(id);
    Ok(content.iter().map(is_named).collect())
}

/// Counts in one request. Counts by pages if one answer cannot hold all names, and in a second request if more names
/// exist than are asked for.
pub(super) async fn count_some(
    cluster: &Cluster,
    page_names: usize,
    of: &CountOf,
) -> Result<Counts, StoreError> {
    let names_max = of.names_max.unwrap_or(usize::MAX);
    let size = page_names.min(names_max).max(1);
    let query = query::counts(size, page_names, of.host_keys.as_deref());
    let found: Found<Counted> = cluster
        .search_one(&cluster.indices.all_jobs(), &query)
        .await?;
    let total = found.hits.total.map_or(0, |total| total.value);
    let Counted { cells, host_keys } = found.aggregations;
    let host_keys = whole(cluster, page_names, "host_keys", host_keys, usize::MAX).await?;
    let host_keys = host_keys.unwrap_or_default();
    let is_too_many = size == names_max && cells.sum_other_doc_count > 0;
    let cells = if is_too_many {
        None
    } else {
        whole(cluster, page_names, CELL, cells, names_max).await?
    };
    match cells {
        Some(cells) => counts_by(cells, total, host_keys),
        None => count_most(cluster, size, total, host_keys).await,
    }
}

/// Counts the accounts and queues with most jobs.
async fn count_most(
    cluster: &Cluster,
    size: usize,
    total: u64,
    host_keys: Tally,
) -> Result<Counts, StoreError> {
    let query = query::counts_of_some(size);
    let found: Found<Most> = cluster
        .search_one(&cluster.indices.all_jobs(), &query)
        .await?;
    let Most { accounts, queues } = found.aggregations;
    let list = |terms: Terms| terms.tally().into_iter().collect();
    Ok(Counts {
        total,
        accounts: list(accounts),
        queues: list(queues),
        pairs: Vec::new(),
        host_keys: host_keys.into_iter().collect(),
        partial: true,
    })
}

/// Returns these terms if they are complete and exact; else all terms of `field`, unless there are more than `most`.
async fn whole(
    cluster: &Cluster,
    page_names: usize,
    field: &str,
    terms: Terms,
    most: usize,
) -> Result<Option<Tally>, StoreError> {
    if terms.sum_other_doc_count == 0 && terms.doc_count_error_upper_bound == 0 {
        return Ok(Some(terms.tally()));
    }
    let mut tally = Tally::new();
    let mut after = None;
    loop {
        let query = query::counts_page(field, page_names, after.as_ref());
        let found: Found<Pages> = cluster
            .search_one(&cluster.indices.all_jobs(), &query)
            .await?;
        let page = found.aggregations.page;
        let buckets = page.buckets.into_iter();
        tally.extend(buckets.map(|bucket| (bucket.key.name, bucket.doc_count)));
        after = page.after_key;
        if tally.len() > most {
            return Ok(None);
        }
        if after.is_none() {
            return Ok(Some(tally));
        }
    }
}

impl Terms {
    fn tally(self) -> Tally {
        let buckets = self.buckets.into_iter();
        buckets
            .map(|bucket| (bucket.key, bucket.doc_count))
            .collect()
    }
}

/// Returns counts derived from those of each pair of queue and account.
fn counts_by(cells: Tally, total: u64, host_keys: Tally) -> Result<Counts, StoreError> {
    let (mut accounts, mut queues) = (Tally::new(), Tally::new());
    let mut pairs = Vec::with_capacity(cells.len());
    for (cell, count) in cells {
        let (queue, account) = documents::of_cell(&cell)?;
        *queues.entry(queue.clone()).or_default() += count;
        *accounts.entry(account.clone()).or_default() += count;
        pairs.push((queue, account, count));
    }
    pairs.sort_unstable();
    let list = |tally: Tally| tally.into_iter().collect();
    Ok(Counts {
        total,
        accounts: list(accounts),
        queues: list(queues),
        pairs,
        host_keys: list(host_keys),
        partial: false,
    })
}
