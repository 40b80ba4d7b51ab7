//! Checks that the server is usable and that fairlead's indices exist.

use std::collections::{BTreeMap, BTreeSet};

use ::elasticsearch::http::Method;
use fairlead_job::JobId;
use futures_util::future::join_all;
use serde::Deserialize;
use serde_json::json;

use super::{
    call::{Call, Failure},
    cluster::Cluster,
    config::ElasticConfig,
    start_error,
    templates::{self, Form, STATES, TEMPLATES},
};
use crate::{DocKind, StoreError, clock};

/// The oldest major version that is used; 8.19 and 9 are tested.
const OLDEST_MAJOR: u64 = 8;
/// How often an index whose making was not answered is asked for, and then its first shard.
const MAKE_TRIES_MAX: usize = 6;
/// The status of a health that did not come within the time that was asked for.
const WAITED_IN_VAIN: u16 = 408;

/// How often an index that nobody searches is refreshed all the same, which bounds what is kept for it in memory.
const UNSEARCHED_REFRESH: &str = "30s";

/// Asks for the version of every node and gives the lowest.
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
    let call = Call::read(Method::Get, "/_nodes/http?filter_path=nodes.*.version");
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

/// The months for which indices are made ahead: the present one and the next.
pub(super) fn months_ahead(unix_ms: u64) -> [String; 2] {
    let now = JobId::first_of(unix_ms / 1_000);
    [now.month(), now.next_month().month()]
}

/// Sees to it that templates, the fields of existing indices, and the indices of now are there.
pub(super) async fn set_up(cluster: &Cluster, config: &ElasticConfig) -> Result<(), StoreError> {
    cluster.learn_layouts().await?;
    let now = JobId::first_of(clock::unix_ms() / 1_000);
    let is_before = cluster.is_of_older_version(now);
    for (name, text) in TEMPLATES {
        let form = if is_before && name == STATES {
            Form::Before
        } else {
            Form::Present
        };
        templates::ensure_template(cluster, name, text, form, config).await?;
    }
    let mut indices: BTreeSet<String> = DocKind::ALL
        .iter()
        .map(|kind| cluster.indices.docs(*kind))
        .collect();
    for month in months_ahead(clock::unix_ms()) {
        indices.insert(format!("{}-jobs-{month}", cluster.indices.prefix));
        indices.insert(cluster.indices.events(&month));
    }
    make_indices(cluster, indices).await
}

/// Makes indices that are not there; the template gives each its mapping.
pub(super) async fn make_indices(
    cluster: &Cluster,
    names: BTreeSet<String>,
) -> Result<(), StoreError> {
    let made = names.into_iter().map(|name| make_index(cluster, name));
    join_all(made).await.into_iter().collect()
}

/// Makes one index. A busy cluster takes its time over it: what was not answered is asked again, and
/// finds the index there.
async fn make_index(cluster: &Cluster, name: String) -> Result<(), StoreError> {
    let settings = if cluster.indices.is_searched(&name) {
        json!({})
    } else {
        json!({"settings": {"index.refresh_interval": UNSEARCHED_REFRESH}})
    };
    let call = Call::write(Method::Put, format!("/{name}")).json(&settings);
    let mut tries = 0;
    loop {
        tries += 1;
        let reason = match cluster.call(&call).await {
            Ok(_) => break,
            Err(Failure::Status { kind, .. }) if kind == "resource_already_exists_exception" => {
                break;
            }
            Err(Failure::Unknown(_)) if tries < MAKE_TRIES_MAX => continue,
            Err(failure) => failure.words().to_owned(),
        };
        return Err(StoreError::Unusable {
            reason: format!("index {name} cannot be created: {reason}"),
            hint:
                "the user needs the privilege create_index on the prefix; a busy cluster needs time"
                    .to_owned(),
        });
    }
    wait_for_shard(cluster, &name).await;
    Ok(())
}

/// An index that is just being made is there before its first shard is, and cannot be read until then
/// (though its health is yellow already). A busy cluster also answers the replica that makes it before
/// the shard is there. An index that stays without keeps nobody from starting: what needs it says so.
async fn wait_for_shard(cluster: &Cluster, name: &str) {
    // The answer must come before the request is given up.
    let wait_ms = cluster.request_timeout.as_millis() * 9 / 10;
    let path = format!(
        "/_cluster/health/{name}?wait_for_active_shards=1&timeout={wait_ms}ms&filter_path=timed_out"
    );
    for tries in 1..=MAKE_TRIES_MAX {
        let call = Call::read(Method::Get, path.clone());
        let Err(failure) = cluster.call(&call).await else {
            return;
        };
        let is_late = match &failure {
            Failure::Status { status, .. } => *status == WAITED_IN_VAIN,
            Failure::Unknown(_) => true,
            Failure::NotSent(_) | Failure::Busy(_) => false,
        };
        let reason = failure.words();
        tracing::warn!(
            index = name,
            reason,
            tries,
            "an index has no shard to read yet"
        );
        if !is_late {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_months_ahead_follow_each_other() {
        // 2026-11-21, 2026-12-31, 2027-01-31
        assert_eq!(months_ahead(1_795_228_571_000), ["2611", "2612"]);
        assert_eq!(months_ahead(1_798_675_200_000), ["2612", "2701"]);
        assert_eq!(months_ahead(1_801_353_600_000), ["2701", "2702"]);
    }

    #[test]
    fn versions_compare_as_numbers() {
        assert!(numbers("8.19.8") < numbers("9.0.0"));
        assert!(numbers("9.10.0") > numbers("9.9.9-SNAPSHOT"));
        assert!(numbers("nonsense").is_empty());
    }
}
