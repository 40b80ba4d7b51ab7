//! Reads changes by `_seq_no`, shard by shard.

use std::{collections::BTreeMap, sync::Arc};

use fairlead_job::JobId;
use reqwest::Method;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{
    call::{Call, Failure},
    cluster::Cluster,
    places::{Place, Places},
    query,
    reply::{self, Found, Hit, NoAggregations},
};
use crate::{ChangeMark, ChangePage, Changes, StoreError, Version};

/// Returns the last change of every shard.
pub(super) async fn last_changes(
    cluster: &Cluster,
    kept: &Places,
) -> Result<ChangeMark, StoreError> {
    let last = [|_: &Place| Some(query::last_change())];
    let (places, found) = search_places::<Last>(cluster, kept, &last).await?;
    let marks = places.iter().zip(found).filter_map(|(place, found)| {
        let last = found?.aggregations.last.value?;
        // Whole numbers up to 2^53 are exact.
        let last: u64 = format!("{last:.0}").parse().ok()?;
        Some((place.name.to_string(), last))
    });
    Ok(ChangeMark(marks.collect()))
}

/// Greatest number of a shard, if it has any.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Last {
    last: Greatest,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Greatest {
    value: Option<f64>,
}

/// Returns the changes in every shard behind the marks, in one request.
pub(super) async fn changes_since(
    cluster: &Cluster,
    kept: &Places,
    requests: &[Changes],
) -> Result<Vec<ChangePage>, StoreError> {
    let queries: Vec<_> = requests
        .iter()
        .map(|request| {
            |place: &Place| {
                let since = request.since.0.get(&*place.name).copied();
                let within = request.within.get(&*place.name).map(Vec::as_slice);
                let is_asked = within.is_some() || request.within.is_empty();
                let numbers = query::Numbers { since, within };
                is_asked.then(|| query::changes(&numbers, request.waiting, limit(request)))
            }
        })
        .collect();
    let (places, found) = search_places::<NoAggregations>(cluster, kept, &queries).await?;
    let mut found = found.into_iter();
    let pages = requests.iter().map(|request| {
        let limit = limit(request);
        let mut page = ChangePage {
            mark: request.since.clone(),
            ..ChangePage::default()
        };
        for (place, found) in places.iter().zip(found.by_ref()) {
            let Some(found) = found else {
                continue;
            };
            let hits = &found.hits.hits;
            page.more |= hits.len() > limit as usize;
            for hit in hits.iter().take(limit as usize) {
                page.mark.0.insert(place.name.to_string(), hit.seq_no);
                page.jobs.extend(job_of(hit));
            }
        }
        page
    });
    Ok(pages.collect())
}

/// Runs each query in each place. A place without a query has no answer. The cached list of places is verified by one
/// more search. If it is outdated, all queries run again.
async fn search_places<A>(
    cluster: &Cluster,
    kept: &Places,
    queries: &[impl Fn(&Place) -> Option<Value>],
) -> Result<(Arc<[Place]>, Vec<Option<Found<A>>>), StoreError>
where
    A: DeserializeOwned + Default + Send + 'static,
{
    if let Some(places) = kept.known() {
        let (found, is_all) = search_in(cluster, &places, queries).await?;
        if is_all {
            return Ok((places, found));
        }
    }
    let places: Arc<[Place]> = read_places(cluster).await?.into();
    kept.learn(&places);
    // An index that was made since then is noticed the next time.
    let (found, _) = search_in(cluster, &places, queries).await?;
    Ok((places, found))
}

/// Searches these places. Returns the results, and true if there are no other places.
async fn search_in<A>(
    cluster: &Cluster,
    places: &[Place],
    queries: &[impl Fn(&Place) -> Option<Value>],
) -> Result<(Vec<Option<Found<A>>>, bool), StoreError>
where
    A: DeserializeOwned + Default + Send + 'static,
{
    let each = queries
        .iter()
        .flat_map(|query| places.iter().map(move |place| (place, query(place))));
    let each: Vec<_> = each.collect();
    let mut searches: Vec<_> = each
        .iter()
        .filter_map(|(place, query)| Some((place.header(), query.clone()?)))
        .collect();
    let mut elsewhere = cluster.indices.all_jobs();
    for place in places.iter().filter(|place| place.shard == 0) {
        elsewhere.extend([",-", &place.index]);
    }
    searches.push((json!({"index": elsewhere}), query::nothing()));
    let mut found = cluster.search_each(searches).await?;
    let is_all = found.pop().is_none_or(|found| found.shards.total == 0);
    let mut found = found.into_iter();
    let asked = each
        .iter()
        .map(|(_, query)| query.as_ref().and_then(|_| found.next()));
    Ok((asked.collect(), is_all))
}

async fn read_places(cluster: &Cluster) -> Result<Vec<Place>, StoreError> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Index {
        settings: Settings,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Settings {
        index: Values,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Values {
        number_of_shards: String,
        uuid: String,
    }
    let path = format!(
        "/{}/_settings/index.number_of_shards,index.uuid?filter_path=*.settings.index",
        cluster.indices.all_jobs()
    );
    let call = Call::read(Method::GET, path);
    let body = cluster.call(&call).await.map_err(Failure::of_read)?;
    let indices: BTreeMap<String, Index> = reply::parse(body).await?;
    let places = indices.into_iter().flat_map(|(index, settings)| {
        let Values {
            number_of_shards,
            uuid,
        } = settings.settings.index;
        let shards: u32 = number_of_shards.parse().unwrap_or(1);
        (0..shards).map(move |shard| Place {
            index: index.clone(),
            shard,
            name: format!("{uuid}/{shard}").into(),
            is_only: shards == 1,
        })
    });
    Ok(places.collect())
}

/// Returns the id and the version of a found job.
fn job_of(hit: &Hit) -> Option<(JobId, Version)> {
    let id = hit.fields.get("job_id")?.as_array()?.first()?;
    Some((id.as_str()?.parse().ok()?, hit.version()))
}

fn limit(request: &Changes) -> u32 {
    request.limit.clamp(1, 10_000)
}
