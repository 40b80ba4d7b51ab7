//! Logging in: whether Elasticsearch can be reached and takes the credentials, and which rights they lack.
//! A right that is lacking is told at the start, and not when it is first needed.

use std::collections::BTreeMap;

use ::elasticsearch::http::Method;
use serde::Deserialize;
use serde_json::json;

use super::{
    cluster::{Call, Failure},
    config::{self, ElasticConfig},
    reply,
    store::ElasticStore,
    templates::{self, TEMPLATES},
};
use crate::StoreError;

/// What every replica may do to the cluster: see its nodes, its health and the templates.
const ON_CLUSTER: [&str; 1] = ["monitor"];
/// What every replica may do to its indices: those of each month are made by whoever needs them first, and
/// at its start a replica makes all writes visible.
const ON_INDICES: [&str; 5] = [
    "create_index",
    "maintenance",
    "read",
    "view_index_metadata",
    "write",
];

/// Asks Elasticsearch what the credentials may do. Where it does not know, nobody's rights are limited.
pub(super) async fn check(store: &ElasticStore, config: &ElasticConfig) -> Result<(), StoreError> {
    if config.username.is_none() && config.api_key.is_none() {
        return Ok(());
    }
    for url in config.urls.iter().filter(|url| !config::is_https(url)) {
        tracing::warn!(
            url,
            "the login goes there without TLS: whoever is on the way can read it"
        );
    }
    let names: Vec<String> = TEMPLATES
        .iter()
        .flat_map(|(_, text)| templates::patterns(text, &config.index_prefix))
        .collect();
    let asked = json!({
        "cluster": ON_CLUSTER, "index": [{"names": names, "privileges": ON_INDICES}],
    });
    let call = Call::read(Method::Post, "/_security/user/_has_privileges").json(&asked);
    let body = match store.cluster.call(&call).await {
        Ok(body) => body,
        // Security is off, or something between here and there hides it: the first use will tell.
        Err(Failure::Status { status, reason, .. }) if status != 401 => {
            tracing::debug!(reason, "the rights at Elasticsearch are not known");
            return Ok(());
        }
        Err(failure) => return Err(unusable(failure, config)),
    };
    let rights: Rights = reply::parse(body).await?;
    let lacking = rights.lacking();
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

const ROLE_HINT: &str = "give it the role of 'Elasticsearch with logins' in the operator's guide, made for \
    this --index-prefix";

/// What the credentials may do.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Rights {
    cluster: BTreeMap<String, bool>,
    index: BTreeMap<String, BTreeMap<String, bool>>,
}

impl Rights {
    /// What they may not, in words. Names that lack the same are told together.
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

/// The credentials are known and may not do this.
pub(super) fn is_denial(failure: &Failure) -> bool {
    matches!(failure, Failure::Status { status: 403, .. })
}

/// Why a call at the start failed, and what to do.
pub(super) fn unusable(failure: Failure, config: &ElasticConfig) -> StoreError {
    let urls = config.shown_urls();
    let (reason, hint) = match failure {
        Failure::NotSent(reason) | Failure::Busy(reason) | Failure::Unknown(reason) => (
            format!("Elasticsearch at {urls} cannot be reached: {reason}"),
            hint_of_silence(&reason),
        ),
        Failure::Status {
            status: 401,
            reason,
            ..
        } => (
            format!("Elasticsearch at {urls} refuses {}: {reason}", who(config)),
            hint_of_login(config),
        ),
        Failure::Status {
            status: 403,
            reason,
            ..
        } => (
            format!("{} lacks rights at Elasticsearch: {reason}", who(config)),
            ROLE_HINT,
        ),
        Failure::Status { reason, .. } => (
            format!("Elasticsearch at {urls} cannot be used: {reason}"),
            "see its log",
        ),
    };
    StoreError::Unusable {
        reason,
        hint: hint.to_owned(),
    }
}

fn who(config: &ElasticConfig) -> String {
    match (&config.username, &config.api_key) {
        (Some(user), _) => format!("user '{user}'"),
        (None, Some(_)) => "the API key".to_owned(),
        (None, None) => "a client without a login".to_owned(),
    }
}

fn hint_of_login(config: &ElasticConfig) -> &'static str {
    match (&config.username, &config.api_key) {
        (Some(_), _) => {
            "check --elasticsearch-user, and the password in FAIRLEAD_ELASTICSEARCH_PASSWORD or \
            --elasticsearch-password-file"
        }
        (None, Some(_)) => {
            "check the key in FAIRLEAD_ELASTICSEARCH_API_KEY or --elasticsearch-api-key-file: it is good \
            no more, or never was"
        }
        (None, None) => "give --elasticsearch-user and its password, or an API key",
    }
}

/// TLS libraries say what is wrong only in words.
fn hint_of_silence(reason: &str) -> &'static str {
    if reason.contains("invalid peer certificate") {
        "give the authority that signed its certificate by --elasticsearch-ca FILE (authorities that the \
        system trusts are not asked); the certificate must name the host as the URL does"
    } else if reason.contains("corrupt message") {
        "it does not speak TLS there: write http:// in --elasticsearch"
    } else {
        "check that it runs and that --elasticsearch names it, with https:// where it speaks TLS"
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
