//! Finds bodies that are beside no state. Only Elasticsearch can hold such halves.

use std::collections::BTreeSet;

use fairlead_job::JobId;
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use super::{
    call::{Call, Failure},
    indices::BODY,
    reply::{self, Shards},
    store::ElasticStore,
};
use crate::{
    JobStore, StoreError,
    check::{Fault, Findings},
};

const BODY_ALONE: Fault = Fault {
    name: "body_without_state",
    meaning: "submitted texts whose job is not there",
    todo: "nothing: they are halves of submits that were not acknowledged, and go with their month",
    is_wrong: false,
};
/// Bodies of one page.
const PAGE: usize = 1_000;
/// Time for which a body without a state may be half of a submit that is under way, ms. A body is written before its
/// state.
const UNDER_WAY_MS: u64 = 60_000;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Bodies {
    #[serde(rename = "_shards")]
    shards: Shards,
    hits: Hits,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Hits {
    hits: Vec<Body>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Body {
    #[serde(rename = "_id")]
    id: String,
    #[serde(rename = "_seq_no")]
    seq_no: u64,
}

impl ElasticStore {
    /// Looks for bodies without a state, at UTC epoch ms `now_ms`, and adds them to the findings.
    ///
    /// # Errors
    /// Fails if Elasticsearch cannot be read.
    pub async fn check_bodies(
        &self,
        now_ms: u64,
        mut found: Findings,
    ) -> Result<Findings, StoreError> {
        found.look_for(&BODY_ALONE);
        let (mut from, mut alone) = (0, BTreeSet::new());
        loop {
            let page = self.bodies(from).await?;
            let ids = page
                .iter()
                .filter_map(|body| body.id.strip_suffix(BODY)?.parse().ok());
            let is_old = |id: &JobId| {
                id.born_s()
                    .saturating_mul(1_000)
                    .saturating_add(UNDER_WAY_MS)
                    < now_ms
            };
            let ids: Vec<JobId> = ids.filter(is_old).collect();
            let jobs = self.get(&ids).await?;
            let lacking = ids.into_iter().zip(jobs).filter(|(_, job)| job.is_none());
            alone.extend(lacking.map(|(id, _)| id));
            let Some(last) = page.last().filter(|_| page.len() == PAGE) else {
                break;
            };
            // Several places have the same numbers: the next page begins with the last number of this one.
            from = last.seq_no.max(from + u64::from(last.seq_no == from));
        }
        for id in alone {
            found.add(&BODY_ALONE, || id.to_string());
        }
        Ok(found)
    }

    /// Returns bodies beside states, in the order of their numbers.
    async fn bodies(&self, from: u64) -> Result<Vec<Body>, StoreError> {
        let index = self.cluster.indices.all_jobs();
        let search = json!({
            "size": PAGE, "track_total_hits": false, "_source": false, "seq_no_primary_term": true,
            "query": {"bool": {
                "filter": [{"range": {"_seq_no": {"gte": from}}}],
                "must_not": [{"exists": {"field": "job_id"}}],
            }},
            "sort": [{"_seq_no": "asc"}],
        });
        let path = format!("/{index}/_search?allow_partial_search_results=false");
        let call = Call::read(Method::POST, path).json(&search);
        let body = self.cluster.call(&call).await.map_err(Failure::of_read)?;
        let page: Bodies = reply::parse(body).await?;
        page.shards.all_answered()?;
        Ok(page.hits.hits)
    }
}
