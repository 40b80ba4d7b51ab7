//! Reads changes by `_seq_no`, shard by shard.

use std::{collections::BTreeMap, sync::Arc};

use ::elasticsearch::http::Method;
use fairlead_job::JobId;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    call::{Call, Failure},
    places::Place,
    query,
    reply::{self, Found, Hit},
    store::ElasticStore,
};
use crate::{ChangeMark, ChangePage, Changes, StoreError, Version};

impl ElasticStore {
    /// The last change of every shard.
    pub(super) async fn last_changes(&self) -> Result<ChangeMark, StoreError> {
        let (places, found) = self
            .search_places(&[|_: &Place| query::last_change()])
            .await?;
        let marks = places.iter().zip(found).filter_map(|(place, found)| {
            let last = found.hits.hits.first()?;
            Some((place.name.clone(), last.seq_no))
        });
        Ok(ChangeMark(marks.collect()))
    }

    /// What changed in every shard behind the marks, in one request.
    pub(super) async fn changes_since(
        &self,
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
        let (places, found) = self.search_places(&queries).await?;
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
        &self,
        queries: &[impl Fn(&Place) -> Value],
    ) -> Result<(Arc<[Place]>, Vec<Found>), StoreError> {
        if let Some(places) = self.places.known() {
            let (found, is_all) = self.search_in(&places, queries).await?;
            if is_all {
                return Ok((places, found));
            }
        }
        let places: Arc<[Place]> = self.read_places().await?.into();
        self.places.learn(&places);
        // An index that was made since then is noticed the next time.
        let (found, _) = self.search_in(&places, queries).await?;
        Ok((places, found))
    }

    /// What is found in these places, and whether they are all.
    async fn search_in(
        &self,
        places: &[Place],
        queries: &[impl Fn(&Place) -> Value],
    ) -> Result<(Vec<Found>, bool), StoreError> {
        let mut searches = Vec::new();
        for query in queries {
            searches.extend(places.iter().map(|place| (place.header(), query(place))));
        }
        let mut elsewhere = self.all_jobs();
        for place in places.iter().filter(|place| place.shard == 0) {
            elsewhere.extend([",-", &place.index]);
        }
        searches.push((json!({"index": elsewhere}), query::nothing()));
        let mut found = self.search_each(searches).await?;
        let is_all = found.pop().is_none_or(|found| found.shards.total == 0);
        Ok((found, is_all))
    }

    async fn read_places(&self) -> Result<Vec<Place>, StoreError> {
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
            self.all_jobs()
        );
        let call = Call::read(Method::Get, path);
        let body = self.cluster.call(&call).await.map_err(Failure::of_read)?;
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
}

/// Which job it is, at which version.
fn job_of(hit: &Hit) -> Option<(JobId, Version)> {
    let id = hit.fields.get("job_id")?.as_array()?.first()?;
    Some((id.as_str()?.parse().ok()?, hit.version()))
}

fn limit(request: &Changes) -> u32 {
    request.limit.clamp(1, 10_000)
}
