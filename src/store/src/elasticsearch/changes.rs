//! What changed since: by `_seq_no`, shard by shard.

use std::collections::BTreeMap;

use ::elasticsearch::http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    cluster::{Call, Failure},
    query,
    reads::first_of,
    reply,
    store::ElasticStore,
};
use crate::{ChangeMark, ChangePage, Changes, StoreError};

/// One shard of one index of jobs.
#[derive(Debug)]
struct Place {
    index: String,
    shard: u32,
}

impl Place {
    fn name(&self) -> String {
        format!("{}/{}", self.index, self.shard)
    }

    fn header(&self) -> Value {
        json!({"index": self.index, "preference": format!("_shards:{}", self.shard)})
    }
}

impl ElasticStore {
    /// The last change of every shard.
    pub(super) async fn last_changes(&self) -> Result<ChangeMark, StoreError> {
        let places = self.places().await?;
        let searches = places
            .iter()
            .map(|place| (place.header(), query::last_change()));
        let found = self.search_each(searches.collect()).await?;
        let marks = places.iter().zip(found).filter_map(|(place, found)| {
            let last = found.hits.hits.first()?;
            Some((place.name(), last.seq_no))
        });
        Ok(ChangeMark(marks.collect()))
    }

    /// What changed in every shard behind the mark.
    pub(super) async fn changes_since(&self, request: &Changes) -> Result<ChangePage, StoreError> {
        let limit = request.limit.clamp(1, 10_000);
        let places = self.places().await?;
        let searches = places.iter().map(|place| {
            let since = request.since.0.get(&place.name()).copied();
            (
                place.header(),
                query::changes(since, request.waiting, limit),
            )
        });
        let found = self.search_each(searches.collect()).await?;
        let mut page = ChangePage {
            mark: request.since.clone(),
            ..ChangePage::default()
        };
        for (place, found) in places.iter().zip(found) {
            let read = found.hits.hits.iter().take(limit as usize);
            if let Some(last) = read.max_by_key(|hit| hit.seq_no) {
                page.mark.0.insert(place.name(), last.seq_no);
            }
            let (jobs, more) = first_of(found, limit);
            page.jobs.extend(jobs);
            page.more |= more;
        }
        Ok(page)
    }

    async fn places(&self) -> Result<Vec<Place>, StoreError> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Index {
            settings: Settings,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Settings {
            index: Numbers,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Numbers {
            number_of_shards: String,
        }
        let path = format!(
            "/{}/_settings/index.number_of_shards?filter_path=*.settings.index.number_of_shards",
            self.all_jobs()
        );
        let call = Call::new(Method::Get, path);
        let body = self.cluster.call(&call).await.map_err(Failure::of_read)?;
        let indices: BTreeMap<String, Index> = reply::parse(body).await?;
        let places = indices.into_iter().flat_map(|(index, settings)| {
            let shards = settings
                .settings
                .index
                .number_of_shards
                .parse()
                .unwrap_or(1);
            (0..shards).map(move |shard| Place {
                index: index.clone(),
                shard,
            })
        });
        Ok(places.collect())
    }
}
