//! Checks that the server is usable, and makes indices.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use fairlead_job::JobId;
use futures_util::future::join_all;
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use super::{
    call::{Call, Failure},
    cluster::Cluster,
    config::ElasticConfig,
    reply, start_error,
};
use crate::{StoreError, clock};

/// Oldest supported major version; 8.19 and 9 are tested.
const OLDEST_MAJOR: u64 = 8;
/// Time before a month at which its indices are created, s.
const AHEAD_S: u64 = 3_600;
/// Maximum time that a start waits for late shards, in request times.
const SHARD_TIMEOUTS: u32 = 6;
/// Status of a health request that timed out.
const WAITED_IN_VAIN: u16 = 408;
/// Wait before shards are asked for again.
const SHARD_WAIT: Duration = Duration::from_millis(100);

/// Refresh interval of an index that is not searched. It bounds the memory of that index.
const UNSEARCHED_REFRESH: &str = "30s";

/// Asks for the version of every node and returns the lowest.
pub(super) async fn check_version(
    cluster: &Cluster,
    config: &ElasticConfig,
) -> Result<String, StoreError> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Nodes {
        nodes: BTreeMap<String, NodeInfo>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct NodeInfo {
        version: String,
    }
    let call = Call::read(Method::GET, "/_nodes/http?filter_path=nodes.*.version");
    let body = match cluster.call(&call).await {
        Ok(body) => body,
        Err(failure) => return Err(start_error::unusable(failure, config)),
    };
    let urls = config.shown_urls();
    let not_elastic = |what: &str| StoreError::Unusable {
        reason: format!("{urls} does not answer as Elasticsearch: {what}"),
        hint: "check --elasticsearch; a proxy in between must forward requests".to_owned(),
    };
    let nodes: Nodes =
        serde_json::from_slice(&body).map_err(|error| not_elastic(&error.to_string()))?;
    let versions = nodes.nodes.into_values().map(|node| node.version);
    let lowest = versions
        .min_by_key(|version| numbers(version))
        .ok_or_else(|| not_elastic("no node says its version"))?;
    let major = numbers(&lowest).first().copied().unwrap_or(0);
    if major < OLDEST_MAJOR {
        return Err(StoreError::Unusable {
            reason: format!(
                "Elasticsearch {lowest} at {urls} is too old: {OLDEST_MAJOR}.0 or newer is needed"
            ),
            hint: "upgrade every node to 8.19 or 9".to_owned(),
        });
    }
    Ok(lowest)
}

fn numbers(version: &str) -> Vec<u64> {
    let parts = version.split(['.', '-']);
    parts.map_while(|part| part.parse().ok()).collect()
}

/// Returns the months whose indices should exist: the present one, and the next one shortly before it begins.
///
/// Each job gets the index of its month, whatever a clock says. A write to a missing index creates it, by
/// Elasticsearch or by [`Cluster::bulk`], and then succeeds. Indices created ahead only save the first submits of a
/// month a wait.
pub(super) fn months_ahead(unix_ms: u64) -> BTreeSet<String> {
    let now_s = unix_ms / 1_000;
    let months = [now_s, now_s + AHEAD_S].map(|unix_s| JobId::first_of(unix_s).month());
    BTreeSet::from(months)
}

/// Creates the indices of a month that begins soon or has just begun, once per month and process. A failure is
/// logged, and the write that needs the index tries again.
pub(super) async fn make_ahead(cluster: &Cluster) {
    let mut months = months_ahead(clock::unix_ms());
    {
        let mut made = cluster.made.lock();
        months.retain(|month| made.insert(month.clone()));
    }
    let indices = months
        .iter()
        .flat_map(|month| cluster.indices.of_month(month));
    let indices: BTreeSet<String> = indices.collect();
    if !indices.is_empty()
        && let Err(error) = make_indices(cluster, indices).await
    {
        tracing::warn!(%error, "the indices of a month could not be made ahead");
    }
}

/// Creates missing indices. The template gives each its mapping.
pub(super) async fn make_indices(
    cluster: &Cluster,
    names: BTreeSet<String>,
) -> Result<(), StoreError> {
    make_and_wait(cluster, names, BTreeSet::new()).await
}

/// Creates missing indices, and waits until they and those in `there` can be read.
pub(super) async fn make_and_wait(
    cluster: &Cluster,
    names: BTreeSet<String>,
    mut there: BTreeSet<String>,
) -> Result<(), StoreError> {
    let making = names.iter().map(|name| make_index(cluster, name));
    for (name, has_shards) in names.iter().zip(join_all(making).await) {
        if !has_shards? {
            there.insert(name.clone());
        }
    }
    wait_for_shards(cluster, &there).await;
    Ok(())
}

/// Creates one index, and tells if its shards are active.
pub(super) async fn make_index(cluster: &Cluster, name: &str) -> Result<bool, StoreError> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Made {
        shards_acknowledged: bool,
    }
    let settings = if cluster.indices.is_searched(name) {
        json!({})
    } else {
        json!({"settings": {"index.refresh_interval": UNSEARCHED_REFRESH}})
    };
    let call = Call::write(Method::PUT, format!("/{name}")).json(&settings);
    match cluster.call(&call).await {
        Ok(body) => Ok(reply::parse::<Made>(body).await?.shards_acknowledged),
        Err(Failure::Status { kind, .. }) if kind == "resource_already_exists_exception" => {
            Ok(false)
        }
        Err(failure) => Err(StoreError::Unusable {
            reason: format!("index {name} cannot be created: {}", failure.words()),
            hint:
                "the user needs the privilege create_index on the prefix; a busy cluster needs time"
                    .to_owned(),
        }),
    }
}

/// Waits until indices can be read. An index that another replica is just creating exists before its first shard
/// does, although its health is yellow already. A busy cluster also answers the creating replica before the shard is
/// active. An index that stays without a shard does not prevent the start: the call that needs it reports it.
async fn wait_for_shards(cluster: &Cluster, names: &BTreeSet<String>) {
    let until = clock::now() + cluster.request_timeout * SHARD_TIMEOUTS;
    while !names.is_empty() {
        let (reason, is_late) = match lacks_shards(cluster, names).await {
            Ok(lacking) if lacking.is_empty() => return,
            Ok(lacking) => (format!("no shard of {}", lacking.join(", ")), true),
            Err(failure) => {
                let is_late = match &failure {
                    Failure::Status { status, .. } => *status == WAITED_IN_VAIN,
                    Failure::Unknown(_) => true,
                    Failure::NotSent(_) | Failure::Busy(_) => false,
                };
                (failure.words().to_owned(), is_late)
            }
        };
        tracing::warn!(reason, "an index has no shard to read yet");
        if !is_late || clock::now() >= until {
            return;
        }
        clock::pause(SHARD_WAIT).await;
    }
}

/// Returns those indices that lack shards. Elasticsearch waits a while before it says so.
async fn lacks_shards(cluster: &Cluster, names: &BTreeSet<String>) -> Result<Vec<String>, Failure> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Health {
        indices: BTreeMap<String, Shards>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Shards {
        number_of_shards: u32,
        active_primary_shards: u32,
    }
    // The answer must come before the request is given up. Copies count as well, so each index is looked at.
    let wait_ms = cluster.request_timeout.as_millis() * 9 / 10;
    let path = format!(
        "/_cluster/health/{}?level=indices&wait_for_active_shards={}&timeout={wait_ms}ms\
        &filter_path=indices.*.number_of_shards,indices.*.active_primary_shards",
        names
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(","),
        names.len()
    );
    let body = cluster.call(&Call::read(Method::GET, path)).await?;
    let health: Health = reply::parse(body).await.unwrap_or_default();
    let each = health.indices.into_iter();
    let lacking = each.filter(|(_, at)| at.active_primary_shards < at.number_of_shards);
    Ok(lacking.map(|(index, _)| index).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_month_is_seen_to_shortly_before_it_begins() {
        let december_ms = 1_796_083_200_000;
        let ahead_ms = december_ms - AHEAD_S * 1_000;
        for (at_ms, months) in [
            (ahead_ms - 1, vec!["2611"]),
            (ahead_ms, vec!["2611", "2612"]),
            (december_ms - 1, vec!["2611", "2612"]),
            (december_ms, vec!["2612"]),
        ] {
            let ahead = months_ahead(at_ms);
            assert_eq!(ahead.into_iter().collect::<Vec<_>>(), months, "{at_ms}");
        }
    }

    #[test]
    fn versions_compare_as_numbers() {
        assert!(numbers("8.19.8") < numbers("9.0.0"));
        assert!(numbers("9.10.0") > numbers("9.9.9-SNAPSHOT"));
        assert!(numbers("nonsense").is_empty());
    }
}
