//! Reads changes by `_seq_no`, shard by shard.

use std::{collections::BTreeMap, sync::Arc};

use ::elasticsearch::http::Method;
use fairlead_job::JobId;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    call::{Call, Failure},
    cluster::Cluster,
    places::{Place, Places},
    query,
    reply::{self, Found, Hit},
};
use crate::{ChangeMark, ChangePage, Changes, StoreError, Version};

/// The last change of every shard.
pub(super) async fn last_changes(
    cluster: &Cluster,
    kept: &Places,
) -> Result<ChangeMark, StoreError> {
    let (places, found) = search_places(cluster, kept, &[|_: &Place| query::last_change()]).await?;
    let marks = places.iter().zip(found).filter_map(|(place, found)| {
        let last = found.hits.hits.first()?;
        Some((place.name.clone(), last.seq_no))
    });
    Ok(ChangeMark(marks.collect()))
}

/// What changed in every shard behind the marks, in one request.
pub(super) async fn changes_since(
    cluster: &Cluster,
    kept: &Places,
    requests: &[Changes],
) -> Result<Vec<ChangePage>, StoreError> {
    let queries: Vec<_> = requests
        .iter()
        .map(|request| {
            |place: &Place| {
                let since = request.since.0.get(&place.name).copied();
                query::changes(since, request.waiting, limit(request))
            }
        })
        .collect();
    let (places, found) = search_places(cluster, kept, &queries).await?;
    let mut found = found.into_iter();
    let pages = requests.iter().map(|request| {
        let limit = limit(request);
        let mut page = ChangePage {
            mark: request.since.clone(),
            ..ChangePage::default()
        };
        for (place, found) in places.iter().zip(found.by_ref()) {
            let hits = &found.hits.hits;
            page.more |= hits.len() > limit as usize;
            for hit in hits.iter().take(limit as usize) {
                page.mark.0.insert(place.name.clone(), hit.seq_no);
                page.jobs.extend(job_of(hit));
            }
        }
        page
    });
    Ok(pages.collect())
}

/// Each query in each place. The list of places is kept: one more search looks whether there are
/// others by now, and if so all is asked again.
async fn search_places(
    cluster: &Cluster,
    kept: &Places,
    queries: &[impl Fn(&Place) -> Value],
) -> Result<(Arc<[Place]>, Vec<Found>), StoreError> {
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

/// What is found in these places, and whether they are all.
async fn search_in(
    cluster: &Cluster,
    places: &[Place],
    queries: &[impl Fn(&Place) -> Value],
) -> Result<(Vec<Found>, bool), StoreError> {
    let mut searches = Vec::new();
    for query in queries {
        searches.extend(places.iter().map(|place| (place.header(), query(place))));
    }
    let mut elsewhere = cluster.indices.all_jobs();
    for place in places.iter().filter(|place| place.shard == 0) {
        elsewhere.extend([",-", &place.index]);
    }
    searches.push((json!({"index": elsewhere}), query::nothing()));
    let mut found = cluster.search_each(searches).await?;
    let is_all = found.pop().is_none_or(|found| found.shards.total == 0);
    Ok((found, is_all))
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
    let call = Call::read(Method::Get, path);
    let body = cluster.call(&call).await.map_err(Failure::of_read)?;
    let indices: BTreeMap<String, Index> = reply::parse(body).await?;
    let places = indices.into_iter().flat_map(|(index, settings)| {
        let Values {
            number_of_shards,
            uuid,
        } = settings.settings.index;
        (0..number_of_shards.parse().unwrap_or(1)).map(move |shard| Place {
            index: index.clone(),
            shard,
            name: format!("{uuid}/{shard}"),
        })
    });
    Ok(places.collect())
}

/// Which job it is, at which version.
fn job_of(hit: &Hit) -> Option<(JobId, Version)> {
    let id = hit.fields.get("job_id")?.as_array()?.first()?;
    Some((id.as_str()?.parse().ok()?, hit.version()))
}

fn limit(request: &Changes) -> u32 {
    request.limit.clamp(1, 10_000)
}
