//! Opening: is this a server we can work with, and are our templates and indices there.
//!
//! Templates are never downgraded. Fields that a newer template of the same format brings are added to
//! the indices that exist; Elasticsearch itself refuses a change of a field's type.

use std::collections::{BTreeMap, BTreeSet};

use ::elasticsearch::http::Method;
use fairlead_job::IdMaker;
use futures_util::future::join_all;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    cluster::{Call, Failure},
    config::ElasticConfig,
    reply,
    store::ElasticStore,
};
use crate::{DocKind, StoreError, clock};

/// The oldest major version that is used; 8.19 and 9 are tested.
const OLDEST_MAJOR: u64 = 8;
/// How often an index whose making was not answered is asked for.
const MAKE_TRIES_MAX: usize = 6;

/// How long the first shard of an index that is there may take at the start, seconds.
const SHARD_WAIT_S: u64 = 10;

/// Name and text of each template. `P-` stands for the prefix.
const TEMPLATES: [(&str, &str); 4] = [
    ("jobs", include_str!("../../../../es-mappings/jobs.json")),
    (
        "bodies",
        include_str!("../../../../es-mappings/bodies.json"),
    ),
    (
        "events",
        include_str!("../../../../es-mappings/events.json"),
    ),
    (
        "documents",
        include_str!("../../../../es-mappings/documents.json"),
    ),
];

/// Asks for the version of every node and gives the lowest.
pub(super) async fn check_version(store: &ElasticStore, urls: &str) -> Result<String, StoreError> {
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
    let body = match store.cluster.call(&call).await {
        Ok(body) => body,
        Err(failure) => return Err(unreachable(failure, urls)),
    };
    let not_elastic = |what: &str| StoreError::Unusable {
        reason: format!("{urls} does not answer as Elasticsearch: {what}"),
        hint: "check --elasticsearch; a proxy in between must pass requests on".to_owned(),
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

fn unreachable(failure: Failure, urls: &str) -> StoreError {
    match failure {
        Failure::NotSent(reason) | Failure::Busy(reason) | Failure::Unknown(reason) => {
            StoreError::Unusable {
                reason: format!("Elasticsearch at {urls} cannot be reached: {reason}"),
                hint: "check that it runs and that --elasticsearch names it".to_owned(),
            }
        }
        Failure::Status {
            status: 401 | 403,
            reason,
            ..
        } => StoreError::Unusable {
            reason: format!("Elasticsearch refuses these credentials: {reason}"),
            hint: "give a user or API key with the cluster privileges monitor and \
                manage_index_templates, and all index privileges on the prefix"
                .to_owned(),
        },
        Failure::Status { reason, .. } => StoreError::Unusable {
            reason: format!("Elasticsearch at {urls} cannot be used: {reason}"),
            hint: "see its log".to_owned(),
        },
    }
}

/// The months for which indices are made ahead: the present one and the next.
pub(super) fn months_ahead(unix_ms: u64) -> [String; 2] {
    let this = IdMaker::new(0, 0).next(unix_ms / 1_000).month();
    let number: u32 = this.parse().unwrap_or(0);
    let next = if number % 100 == 12 {
        (number / 100 + 1) % 100 * 100 + 1
    } else {
        number + 1
    };
    [this, format!("{next:04}")]
}

impl ElasticStore {
    /// Puts templates, the fields of existing indices, and the indices of now.
    pub(super) async fn set_up(&self, config: &ElasticConfig) -> Result<(), StoreError> {
        for (name, text) in TEMPLATES {
            self.put_template(name, text, config).await?;
        }
        let mut indices: BTreeSet<String> = DocKind::ALL
            .iter()
            .map(|kind| self.docs_index(*kind))
            .collect();
        for month in months_ahead(clock::unix_ms()) {
            indices.insert(format!("{}-jobs-{month}", self.prefix));
            indices.insert(format!("{}-bodies-{month}", self.prefix));
            indices.insert(self.events_index(&month));
        }
        self.make_indices(indices).await
    }

    async fn put_template(
        &self,
        name: &str,
        text: &str,
        config: &ElasticConfig,
    ) -> Result<(), StoreError> {
        let full_name = format!("{}-{name}", self.prefix);
        let refuse = |reason: String| StoreError::Unusable {
            reason: format!("template {full_name}: {reason}"),
            hint:
                "the user needs the cluster privilege manage_index_templates; where the names are \
                another program's, give another --index-prefix"
                    .to_owned(),
        };
        let mut template: Value =
            serde_json::from_str(text).map_err(|error| refuse(error.to_string()))?;
        self.fill_in(&mut template, config);
        let ours = template["_meta"]["format"].as_u64().unwrap_or(0);
        let stored = self.stored_template(&full_name).await?;
        let theirs = stored["_meta"]["format"].as_u64().unwrap_or(0);
        if theirs > ours {
            return Err(StoreError::Unusable {
                reason: format!(
                    "template {full_name} has format {theirs}, this version knows up to {ours}"
                ),
                hint: "start the newer fairlead that wrote it, or give another --index-prefix"
                    .to_owned(),
            });
        }
        // A newer release of the same format may have added fields: leave its template alone.
        if stored["version"].as_u64() > template["version"].as_u64() {
            return Ok(());
        }
        let path = format!("/_index_template/{full_name}");
        let put = Call::write(Method::Put, path).json(&template);
        self.set_up_call(&put).await.map_err(&refuse)?;
        let patterns = template["index_patterns"].as_array().into_iter().flatten();
        let indices: Vec<&str> = patterns.filter_map(Value::as_str).collect();
        let mapping = json!({"properties": template["template"]["mappings"]["properties"]});
        let path = format!(
            "/{}/_mapping?ignore_unavailable=true&allow_no_indices=true",
            indices.join(",")
        );
        match self
            .set_up_call(&Call::write(Method::Put, path).json(&mapping))
            .await
        {
            Err(reason) if !reason.contains("index_not_found_exception") => {
                Err(refuse(format!("its indices refuse the mapping: {reason}")))
            }
            _ => Ok(()),
        }
    }

    fn fill_in(&self, template: &mut Value, config: &ElasticConfig) {
        if let Some(patterns) = template["index_patterns"].as_array_mut() {
            for pattern in patterns {
                if let Some(rest) = pattern.as_str().and_then(|text| text.strip_prefix("P-")) {
                    *pattern = json!(format!("{}-{rest}", self.prefix));
                }
            }
        }
        let settings = &mut template["template"]["settings"];
        settings["index.number_of_shards"] = json!(config.shards);
        settings["index.refresh_interval"] = json!(config.refresh_interval);
        match config.replicas {
            Some(replicas) => settings["index.number_of_replicas"] = json!(replicas),
            None => settings["index.auto_expand_replicas"] = json!("0-1"),
        }
    }

    /// The template as Elasticsearch has it; null when it has none.
    async fn stored_template(&self, name: &str) -> Result<Value, StoreError> {
        let call = Call::read(Method::Get, format!("/_index_template/{name}"));
        match self.cluster.call(&call).await {
            Err(Failure::Status { status: 404, .. }) => Ok(Value::Null),
            Err(failure) => Err(unreachable(failure, "its URLs")),
            Ok(body) => {
                let mut reply: Value = reply::parse(body).await?;
                Ok(reply["index_templates"][0]["index_template"].take())
            }
        }
    }

    /// A call whose failure is told in words.
    async fn set_up_call(&self, call: &Call) -> Result<(), String> {
        let result = self.cluster.call(call).await;
        result.map(|_| ()).map_err(Failure::into_reason)
    }

    /// Makes indices that are not there; the template gives each its mapping.
    pub(super) async fn make_indices(&self, names: BTreeSet<String>) -> Result<(), StoreError> {
        let made = names.into_iter().map(|name| self.make_index(name));
        join_all(made).await.into_iter().collect()
    }

    /// Makes one index. A busy cluster takes its time over it: what was not answered is asked again, and
    /// finds the index there.
    async fn make_index(&self, name: String) -> Result<(), StoreError> {
        let call = Call::write(Method::Put, format!("/{name}")).json(&json!({}));
        let mut tries = 0;
        loop {
            tries += 1;
            let reason = match self.cluster.call(&call).await {
                Ok(_) => return Ok(()),
                Err(Failure::Status { kind, .. })
                    if kind == "resource_already_exists_exception" =>
                {
                    self.wait_for_shard(&name).await;
                    return Ok(());
                }
                Err(Failure::Unknown(_)) if tries < MAKE_TRIES_MAX => continue,
                Err(failure) => failure.into_reason(),
            };
            return Err(StoreError::Unusable {
                reason: format!("index {name} cannot be made: {reason}"),
                hint: "the user needs the privilege create_index on the prefix; a busy cluster needs time"
                    .to_owned(),
            });
        }
    }

    /// An index that another replica is just making is there before its first shard is, and cannot be
    /// read until then (though its health is yellow already). One that stays without keeps nobody from
    /// starting: what needs it says so.
    async fn wait_for_shard(&self, name: &str) {
        let wait_s = self.request_timeout.as_secs().clamp(1, SHARD_WAIT_S);
        let path = format!(
            "/_cluster/health/{name}?wait_for_active_shards=1&timeout={wait_s}s&filter_path=timed_out"
        );
        if let Err(reason) = self.set_up_call(&Call::read(Method::Get, path)).await {
            tracing::warn!(index = name, reason, "an index has no shard to read yet");
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

    #[test]
    fn every_field_of_a_state_is_mapped() {
        let template: Value = serde_json::from_str(TEMPLATES[0].1).unwrap();
        let mapped = template["template"]["mappings"]["properties"]
            .as_object()
            .unwrap();
        let Err(Fields(fields)) = crate::JobState::deserialize(Fields::default()) else {
            panic!("a state cannot be read from nothing");
        };
        for field in fields {
            assert!(
                mapped.contains_key(*field),
                "es-mappings/jobs.json has no {field}"
            );
        }
        // And `cell`, which is derived.
        assert_eq!(mapped.len(), fields.len() + 1);
    }

    /// Asks a type for the names of its fields, and fails with them.
    #[derive(Debug, Default)]
    struct Fields(&'static [&'static str]);

    impl std::fmt::Display for Fields {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "{:?}", self.0)
        }
    }

    impl std::error::Error for Fields {}

    impl serde::de::Error for Fields {
        fn custom<T: std::fmt::Display>(_: T) -> Self {
            Self::default()
        }
    }

    impl<'de> serde::Deserializer<'de> for Fields {
        type Error = Self;

        fn deserialize_any<V: serde::de::Visitor<'de>>(self, _: V) -> Result<V::Value, Self> {
            Err(self)
        }

        fn deserialize_struct<V: serde::de::Visitor<'de>>(
            self,
            _: &'static str,
            fields: &'static [&'static str],
            _: V,
        ) -> Result<V::Value, Self> {
            Err(Self(fields))
        }

        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit
            unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
        }
    }
}
