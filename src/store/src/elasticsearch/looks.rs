//! Looks after the health of each index: some writes and reads go on while one index is gone, so what they say is not enough.
//!
//! Elasticsearch says which shards have no primary and which indices are closed for writes. An index whose last write
//! was not taken is written to again, until it takes a write.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use super::{
    bulk::{How, Op},
    call::{Call, Failure},
    cluster::Cluster,
    indices::Indices,
    reply,
};
use crate::{StoreError, clock};

/// Time between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(3);
/// Id of the document that a probe deletes. There is no such document.
const PROBE: &str = "fairlead-probe";
/// Time that a probe waits for a shard, ms.
const PROBE_MS: u64 = 1_000;
/// Number of newest months of jobs that are written. The next month may be among them.
const YOUNG: usize = 3;

/// Result of the last look.
#[derive(Debug, Default)]
pub(super) struct Looks(Mutex<Found>);

#[derive(Debug, Default)]
struct Found {
    at: Option<Instant>,
    /// Indices that had a shard without a primary. A new index has some for a moment.
    gone: BTreeMap<String, String>,
}

/// Blocks and shards of indices.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct State {
    blocks: Blocks,
    #[serde(rename = "routing_table")]
    routes: Routes,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Blocks {
    indices: BTreeMap<String, BTreeMap<String, Block>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Block {
    description: String,
    levels: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Routes {
    indices: BTreeMap<String, Index>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Index {
    shards: BTreeMap<String, Vec<Copy>>,
}

/// A copy of a shard.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Copy {
    primary: bool,
    state: String,
}

/// Looks if the last look is old, and probes the places whose last write failed.
pub(super) async fn look_after(cluster: &Cluster, looks: &Looks) {
    let now = clock::now();
    let is_due = {
        let mut found = looks.0.lock();
        let is_due = found
            .at
            .is_none_or(|at| now.saturating_duration_since(at) >= LOOK_EVERY);
        if is_due {
            found.at = Some(now);
        }
        is_due
    };
    if is_due && let Err(error) = look(cluster, looks).await {
        tracing::warn!(%error, "the indices cannot be looked at");
    }
    let doubted = cluster.watch.doubted();
    if doubted.is_empty() {
        return;
    }
    let probes: Vec<Op> = doubted.into_iter().map(probe).collect();
    let how = How {
        is_repeatable: true,
        in_flight: 1,
    };
    // The sender notes the results.
    cluster.probe(&probes, how, PROBE_MS).await;
}

fn probe(index: String) -> Op {
    let action = json!({"delete": {"_index": index, "_id": PROBE}});
    Op {
        lines: format!("{action}\n"),
        index,
    }
}

async fn look(cluster: &Cluster, looks: &Looks) -> Result<(), StoreError> {
    let path = format!(
        "/_cluster/state/blocks,routing_table/{}?ignore_unavailable=true&filter_path=blocks.indices,\
        routing_table.indices.*.shards.*.state,routing_table.indices.*.shards.*.primary",
        cluster.indices.all().join(",")
    );
    let body = cluster.call(&Call::read(Method::GET, path)).await;
    let state: State = reply::parse(body.map_err(Failure::of_read)?).await?;
    let (gone, closed) = state.ill(&cluster.indices);
    let confirmed = looks.0.lock().confirmed(gone);
    cluster.watch.looked(&confirmed, &closed);
    Ok(())
}

/// Problems of indices, by name.
type Problems = BTreeMap<String, String>;

impl Found {
    /// Returns those that the last look found gone as well.
    fn confirmed(&mut self, gone: Problems) -> Problems {
        let before = std::mem::replace(&mut self.gone, gone.clone());
        let each = gone.into_iter();
        each.filter(|(index, _)| before.contains_key(index))
            .collect()
    }
}

impl State {
    /// Returns the needed indices that lack a shard, and those that take no writes. A site may close old months for
    /// writes.
    fn ill(self, indices: &Indices) -> (Problems, Problems) {
        let jobs = indices.jobs_of("");
        let months = self.routes.indices.keys();
        let months = months.filter(|index| index.starts_with(&jobs)).rev();
        let young: BTreeSet<String> = months.take(YOUNG).cloned().collect();
        let routes = self.routes.indices.into_iter();
        let gone = routes.filter_map(|(index, routes)| {
            let shard = routes.without_primary()?;
            let problem = format!("index {index}: shard {shard} has no primary on any node (red)");
            indices.is_needed(&index).then_some((index, problem))
        });
        let gone = gone.collect();
        let blocks = self.blocks.indices.into_iter();
        let closed = blocks.filter_map(|(index, blocks)| {
            let mut blocks = blocks.into_values();
            let block = blocks.find(|block| block.levels.iter().any(|level| level == "write"))?;
            let problem = format!("index {index}: {}", reply::with_advice(block.description));
            let is_old = index.starts_with(&jobs) && !young.contains(&index);
            (indices.is_needed(&index) && !is_old).then_some((index, problem))
        });
        (gone, closed.collect())
    }
}

impl Index {
    /// Returns a shard that cannot be written.
    fn without_primary(&self) -> Option<&str> {
        let works = |copy: &Copy| copy.primary && ["STARTED", "RELOCATING"].contains(&&*copy.state);
        let mut shards = self.shards.iter();
        let gone = shards.find(|(_, copies)| !copies.iter().any(works));
        gone.map(|(shard, _)| shard.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(of_jobs: &str) -> State {
        let text = json!({
            "blocks": {"indices": {
                "p-sessions": {"8": {"description": "index write (api)", "levels": ["write"]}},
                "p-leases": {"9": {"description": "index metadata", "levels": ["metadata_write"]}},
                "other-leases": {"4": {"description": "index closed", "levels": ["read", "write"]}},
                "p-events-2611": {"8": {"description": "index write (api)", "levels": ["write"]}},
                "p-jobs-2608": {"8": {"description": "index write (api)", "levels": ["write"]}},
                "p-jobs-2609": {"8": {"description": "index write (api)", "levels": ["write"]}},
            }},
            "routing_table": {"indices": {
                "p-jobs-2608": {"shards": {"0": [{"state": "STARTED", "primary": true}]}},
                "p-jobs-2609": {"shards": {"0": [{"state": "STARTED", "primary": true}]}},
                "p-jobs-2610": {"shards": {"0": [{"state": "STARTED", "primary": true}]}},
                "p-jobs-2611": {"shards": {
                    "0": [{"state": "STARTED", "primary": false}, {"state": "RELOCATING", "primary": true}],
                    "1": [{"state": of_jobs, "primary": true}],
                }},
                "p-events-2611": {"shards": {"0": [{"state": "UNASSIGNED", "primary": true}]}},
            }},
        });
        serde_json::from_value(text).unwrap()
    }

    #[test]
    fn an_index_is_gone_without_a_primary_and_closed_by_a_block_of_writes() {
        let indices = Indices {
            prefix: "p".to_owned(),
        };
        let (gone, closed) = state("UNASSIGNED").ill(&indices);
        let red = "index p-jobs-2611: shard 1 has no primary on any node (red)";
        assert_eq!(gone, [("p-jobs-2611".to_owned(), red.to_owned())].into());
        let closed: Vec<&String> = closed.values().collect();
        let blocks =
            ["p-jobs-2609", "p-sessions"].map(|index| format!("index {index}: index write (api)"));
        assert_eq!(closed, blocks.iter().collect::<Vec<_>>());
        assert!(state("STARTED").ill(&indices).0.is_empty());
    }

    #[test]
    fn a_new_index_is_not_gone_at_the_first_look() {
        let mut found = Found::default();
        let gone = |index: &str| [(index.to_owned(), String::new())].into();
        assert!(found.confirmed(gone("a")).is_empty());
        assert!(found.confirmed(gone("b")).is_empty());
        assert_eq!(found.confirmed(gone("b")), gone("b"));
        assert!(found.confirmed(Problems::new()).is_empty());
        assert!(found.confirmed(gone("b")).is_empty());
    }
}
