//! Index templates, and the fields of existing indices.
//!
//! Existing settings stay. A template is written if there is none or an older one, and missing fields are added to
//! indices. So a replica without these rights starts once a replica with them was there. An old release never reverts
//! what a newer one brought. Elasticsearch itself refuses a change of a field's type.

use futures_util::future::try_join_all;
use reqwest::Method;
use serde_json::{Value, json};

use super::{
    call::{Call, Failure},
    cluster::Cluster,
    config::ElasticConfig,
    start_error,
    there::There,
};
use crate::StoreError;

/// Name and text of each template. `P-` stands for the prefix.
pub(super) const TEMPLATES: [(&str, &str); 3] = [
    ("jobs", include_str!("../../../../es-mappings/jobs.json")),
    (
        "events",
        include_str!("../../../../es-mappings/events.json"),
    ),
    (
        "documents",
        include_str!("../../../../es-mappings/documents.json"),
    ),
];

/// Template of this version.
#[derive(Debug)]
pub(super) struct Template {
    name: String,
    /// The names of its indices.
    patterns: Vec<String>,
    body: Value,
}

/// Advice when the rights for a set-up are missing.
const SET_UP_HINT: &str = "start this version once as a user who may set up (the cluster privilege \
    manage_index_templates, and indices:admin/mapping/put on the prefix: see 'Elasticsearch with logins' in \
    the operator's guide); after that a user without these rights can run it";
/// Advice when a set-up is refused for another reason.
const OTHER_HINT: &str = "where the names are another program's, give another --index-prefix; else see the log of Elasticsearch";

/// Returns the names of indices that a template applies to, under this prefix.
pub(super) fn patterns(text: &str, prefix: &str) -> Vec<String> {
    let template: Value = serde_json::from_str(text).unwrap_or_default();
    let patterns = template["index_patterns"].as_array().into_iter().flatten();
    let rests = patterns.filter_map(|pattern| pattern.as_str()?.strip_prefix("P-"));
    rests.map(|rest| format!("{prefix}-{rest}")).collect()
}

fn refuse(reason: String, failure: &Failure) -> StoreError {
    let hint = if start_error::is_denial(failure) {
        SET_UP_HINT
    } else {
        OTHER_HINT
    };
    StoreError::Unusable {
        reason,
        hint: hint.to_owned(),
    }
}

/// Returns the templates of this version. Fails if a stored one is from a newer version.
pub(super) fn wanted(
    cluster: &Cluster,
    there: &There,
    config: &ElasticConfig,
) -> Result<Vec<Template>, StoreError> {
    let all = TEMPLATES.iter();
    all.map(|(name, text)| {
        let name = format!("{}-{name}", cluster.indices.prefix);
        let patterns = patterns(text, &cluster.indices.prefix);
        let body = filled_in(cluster, text, &patterns, config)?;
        let ours = body["_meta"]["format"].as_u64().unwrap_or(0);
        let theirs = there
            .templates
            .get(&name)
            .map_or(0, |there| there.meta.format);
        if theirs > ours {
            return Err(StoreError::Unusable {
                reason: format!(
                    "template {name} has format {theirs}, this version knows up to {ours}"
                ),
                hint: "start the newer fairlead that wrote it, or give another --index-prefix"
                    .to_owned(),
            });
        }
        Ok(Template {
            name,
            patterns,
            body,
        })
    })
    .collect()
}

/// Puts missing or outdated templates, and adds missing fields to their indices.
pub(super) async fn ensure(
    cluster: &Cluster,
    there: &There,
    wanted: &[Template],
) -> Result<(), StoreError> {
    try_join_all(wanted.iter().map(|wanted| wanted.ensure(cluster, there))).await?;
    Ok(())
}

impl Template {
    async fn ensure(&self, cluster: &Cluster, there: &There) -> Result<(), StoreError> {
        let stored = there.templates.get(&self.name).map(|there| there.version);
        let ours = self.body["version"].as_u64();
        // A newer release of the same format has seen to its fields itself.
        if stored > ours {
            return Ok(());
        }
        let name = &self.name;
        if stored < ours {
            let path = format!("/_index_template/{name}");
            let put = cluster
                .call(&Call::write(Method::PUT, path).json(&self.body))
                .await;
            put.map_err(|failure| {
                let words = format!("template {name} cannot be written: {}", failure.words());
                refuse(words, &failure)
            })?;
        }
        let fields = &self.body["template"]["mappings"]["properties"];
        let lacking = there.indices.iter().filter(|(index, there)| {
            self.patterns.iter().any(|pattern| is_for(pattern, index))
                && !holds(&there.mappings.properties, fields)
        });
        let lacking: Vec<&str> = lacking.map(|(index, _)| index.as_str()).collect();
        if lacking.is_empty() {
            return Ok(());
        }
        let path = format!("/{}/_mapping", lacking.join(","));
        let put = Call::write(Method::PUT, path).json(&json!({"properties": fields}));
        let put = cluster.call(&put).await;
        put.map(drop).map_err(|failure| {
            let words = failure.words();
            let words = format!("template {name}: its indices refuse the mapping: {words}");
            refuse(words, &failure)
        })
    }
}

/// Returns true if a pattern of a template matches an index.
fn is_for(pattern: &str, index: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(begin) => index.starts_with(begin),
        None => index == pattern,
    }
}

/// Returns the template for this prefix and these settings.
fn filled_in(
    cluster: &Cluster,
    text: &str,
    indices: &[String],
    config: &ElasticConfig,
) -> Result<Value, StoreError> {
    let parsed: Result<Value, _> = serde_json::from_str(text);
    let mut template = parsed.map_err(|error| StoreError::Refused {
        reason: format!("a template of {}: {error}", cluster.indices.prefix),
    })?;
    template["index_patterns"] = json!(indices);
    let settings = &mut template["template"]["settings"];
    settings["index.number_of_shards"] = json!(config.shards);
    settings["index.refresh_interval"] = json!(config.refresh_interval);
    match config.replicas {
        Some(replicas) => settings["index.number_of_replicas"] = json!(replicas),
        None => settings["index.auto_expand_replicas"] = json!("0-1"),
    }
    Ok(template)
}

/// Returns true if all of `wanted` is in `stored`, which may have more.
fn holds(stored: &Value, wanted: &Value) -> bool {
    match (stored, wanted) {
        (Value::Object(stored), Value::Object(wanted)) => wanted
            .iter()
            .all(|(name, wanted)| stored.get(name).is_some_and(|stored| holds(stored, wanted))),
        (stored, wanted) => stored == wanted,
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[test]
    fn an_index_that_has_more_lacks_nothing() {
        let ours = json!({"a": {"type": "keyword", "fields": {"n": {"type": "long"}}}});
        let more =
            json!({"a": {"type": "keyword", "fields": {"n": {"type": "long"}, "m": {}}}, "b": {}});
        assert!(holds(&ours, &ours) && holds(&more, &ours));
        for less in [
            json!({}),
            json!(null),
            json!({"a": {"type": "keyword"}}),
            json!({"a": {"type": "long", "fields": {"n": {"type": "long"}}}}),
        ] {
            assert!(!holds(&less, &ours), "{less}");
        }
    }

    #[test]
    fn patterns_begin_with_the_prefix() {
        assert_eq!(patterns(TEMPLATES[0].1, "lab"), ["lab-jobs-*"]);
        let documents = patterns(TEMPLATES[2].1, "lab");
        assert!(documents.contains(&"lab-settings".to_owned()));
        let indices = crate::elasticsearch::indices::Indices {
            prefix: "lab".to_owned(),
        };
        let copy = format!("{}x", indices.copies());
        for index in indices.all_docs().into_iter().chain([copy]) {
            assert!(
                documents.iter().any(|pattern| is_for(pattern, &index)),
                "{index}"
            );
        }
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
        // And `cell`, which is derived, and `body`, of the documents beside states.
        assert_eq!(mapped.len(), fields.len() + 2);
    }

    /// Deserializer that returns the names of the fields of a type as an error.
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
