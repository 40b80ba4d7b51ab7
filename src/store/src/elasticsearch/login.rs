//! Login: checks that Elasticsearch can be reached and accepts the credentials, and lists missing rights. A missing
//! right is reported at the start, before it is needed.

use std::collections::BTreeMap;

use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    call::{Call, Failure},
    cluster::Cluster,
    config::{self, ElasticConfig},
    reply,
    start_error::{ROLE_HINT, unusable, who},
    templates::{self, TEMPLATES},
};
use crate::StoreError;

/// Privileges of every replica on the cluster: to see its nodes, its health and the templates.
const ON_CLUSTER: [&str; 1] = ["monitor"];
/// Privileges of every replica on its indices. Any replica creates the indices of a month when they are needed. At
/// its start a replica refreshes all indices.
const ON_INDICES: [&str; 5] = [
    "create_index",
    "maintenance",
    "read",
    "view_index_metadata",
    "write",
];

/// Privileges of a replica that deletes old months.
const TO_DROP: [&str; 1] = ["delete_index"];

/// Asks Elasticsearch for the privileges of the credentials. An Elasticsearch without security limits no privileges.
pub(super) async fn check(cluster: &Cluster, config: &ElasticConfig) -> Result<(), StoreError> {
    if config.username.is_none() && config.api_key.is_none() {
        return Ok(());
    }
    for url in config.urls.iter().filter(|url| !config::is_https(url)) {
        tracing::warn!(
            url,
            "the login travels without TLS, so others on the network can read it"
        );
    }
    let names: Vec<String> = TEMPLATES
        .iter()
        .flat_map(|(_, text)| templates::patterns(text, &config.index_prefix))
        .collect();
    let asked = json!({
        "cluster": ON_CLUSTER, "index": [{"names": names, "privileges": ON_INDICES}],
    });
    let lacking = lacking(cluster, &asked, |failure| unusable(failure, config)).await?;
    if lacking.is_empty() {
        return Ok(());
    }
    Err(StoreError::Unusable {
        reason: format!(
            "{} lacks rights at Elasticsearch: {}",
            who(config),
            lacking.join("; ")
        ),
        hint: ROLE_HINT.to_owned(),
    })
}

/// Returns the missing privileges for deleting the indices of old months, as text; `None`: none is missing, or it is
/// unknown.
pub(super) async fn lacks_to_drop(cluster: &Cluster) -> Result<Option<String>, StoreError> {
    let names = cluster.indices.of_month("*");
    let asked = json!({ "index": [{"names": names, "privileges": TO_DROP}] });
    let lacking = lacking(cluster, &asked, Failure::of_read).await?;
    Ok((!lacking.is_empty()).then(|| lacking.join("; ")))
}

/// Returns those privileges that the credentials lack; empty if Elasticsearch does not know.
async fn lacking(
    cluster: &Cluster,
    asked: &Value,
    failed: impl FnOnce(Failure) -> StoreError,
) -> Result<Vec<String>, StoreError> {
    let call = Call::read(Method::POST, "/_security/user/_has_privileges").json(asked);
    let body = match cluster.call(&call).await {
        Ok(body) => body,
        // Security is off, or something between here and there hides it: the first use will tell.
        Err(Failure::Status { status, reason, .. }) if status != 401 => {
            tracing::debug!(reason, "the rights at Elasticsearch are not known");
            return Ok(Vec::new());
        }
        Err(failure) => return Err(failed(failure)),
    };
    let rights: Rights = reply::parse(body).await?;
    Ok(rights.lacking())
}

/// Privileges of the credentials.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Rights {
    cluster: BTreeMap<String, bool>,
    index: BTreeMap<String, BTreeMap<String, bool>>,
}

impl Rights {
    /// Returns the missing privileges as text. Names that lack the same privileges share one text.
    fn lacking(self) -> Vec<String> {
        let denied = |rights: BTreeMap<String, bool>| {
            let denied = rights.into_iter().filter(|(_, is_given)| !is_given);
            denied
                .map(|(right, _)| right)
                .collect::<Vec<_>>()
                .join(", ")
        };
        let mut lacking = Vec::new();
        let on_cluster = denied(self.cluster);
        if !on_cluster.is_empty() {
            lacking.push(format!("{on_cluster} (cluster)"));
        }
        let mut indices: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, rights) in self.index {
            indices.entry(denied(rights)).or_default().push(name);
        }
        indices.remove("");
        let each = indices.into_iter();
        lacking.extend(each.map(|(rights, names)| format!("{rights} ({})", names.join(", "))));
        lacking
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lacking_is_told_together() {
        let rights: Rights = serde_json::from_value(json!({
            "has_all_requested": false,
            "cluster": {"monitor": false},
            "index": {
                "p-a": {"read": true, "write": false, "maintenance": false},
                "p-b": {"read": true, "write": true, "maintenance": true},
                "p-c": {"read": true, "write": false, "maintenance": false},
            },
        }))
        .unwrap();
        let told = ["monitor (cluster)", "maintenance, write (p-a, p-c)"];
        assert_eq!(rights.lacking(), told);
        assert!(Rights::default().lacking().is_empty());
    }
}
