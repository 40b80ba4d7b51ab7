//! Deletes the indices of old months.

use std::collections::{BTreeMap, BTreeSet};

use fairlead_job::JobId;
use reqwest::Method;
use serde_json::Value;

use super::{
    call::{Call, Failure},
    cluster::Cluster,
    query,
    reply::{self, Found},
};
use crate::{OldMonth, StoreError};

/// Drops the oldest month before that of `before` of which all jobs have ended. An end is final, and no job is
/// created in a past month. So a search that lags can only keep a month that could be dropped.
pub(super) async fn drop_oldest_month(
    cluster: &Cluster,
    before: JobId,
) -> Result<Vec<OldMonth>, StoreError> {
    let (before, mut looked_at) = (before.month(), Vec::new());
    let months = months(cluster).await?;
    for month in months.into_iter().filter(|month| *month < before) {
        let unfinished = unfinished(cluster, &month).await?;
        if unfinished == 0 {
            drop_month(cluster, &month).await?;
        }
        looked_at.push(OldMonth { month, unfinished });
        if unfinished == 0 {
            break;
        }
    }
    Ok(looked_at)
}

/// Returns the number of jobs of a month that have not ended. Jobs that cannot be counted are treated as not ended.
async fn unfinished(cluster: &Cluster, month: &str) -> Result<u64, StoreError> {
    let index = cluster.indices.jobs_of(month);
    let found: Found = cluster.search_one(&index, &query::unfinished()).await?;
    let is_searched = found.shards.total > 0 || !is_there(cluster, &index).await?;
    let total = found.hits.total.filter(|_| is_searched);
    total
        .map(|total| total.value)
        .ok_or_else(|| StoreError::Refused {
            reason: format!("the jobs of index {index} cannot be counted: perhaps it is closed"),
        })
}

async fn is_there(cluster: &Cluster, index: &str) -> Result<bool, StoreError> {
    Ok(settings_of(cluster, index).await?.contains_key(index))
}

/// Returns the settings of the indices of these names, open or not.
async fn settings_of(
    cluster: &Cluster,
    names: &str,
) -> Result<BTreeMap<String, Value>, StoreError> {
    let path = format!(
        "/{names}/_settings/index.uuid?ignore_unavailable=true&expand_wildcards=all&filter_path=*.settings.index"
    );
    let call = Call::read(Method::GET, path);
    let body = cluster.call(&call).await.map_err(Failure::of_read)?;
    reply::parse(body).await
}

/// Returns all months with an index.
async fn months(cluster: &Cluster) -> Result<BTreeSet<String>, StoreError> {
    let indices = settings_of(cluster, &cluster.indices.of_month("*").join(",")).await?;
    let begins = cluster.indices.of_month("");
    let months = indices.keys().filter_map(|index| {
        let mut begins = begins.iter();
        begins.find_map(|begin| index.strip_prefix(begin.as_str()))
    });
    let months = months.filter(|month| JobId::first_of_month(month).is_some());
    Ok(months.map(str::to_owned).collect())
}

async fn drop_month(cluster: &Cluster, month: &str) -> Result<(), StoreError> {
    let all = cluster.indices.of_month(month).join(",");
    let call = Call::write(Method::DELETE, format!("/{all}?ignore_unavailable=true"));
    let dropped = cluster.call(&call).await;
    dropped.map(|_| ()).map_err(Failure::of_read)
}
