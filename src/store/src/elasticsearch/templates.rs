//! Index templates, and the fields of existing indices.
//!
//! Existing settings stay. A template is written if there is none or an older one, and missing fields are added to
//! indices. So a replica without these rights starts once a replica with them was there. An old release never reverts
//! what a newer one brought. Elasticsearch itself refuses a change of a field's type.

use ::elasticsearch::http::Method;
use serde_json::{Map, Value, json};

use super::{
    call::{Call, Failure},
    cluster::Cluster,
    config::ElasticConfig,
    layouts::APART,
    reply, start_error,
};
use crate::StoreError;

/// Name and text of each template. `P-` stands for the prefix.
pub(super) const TEMPLATES: [(&str, &str); 4] = [
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

/// The template of states.
pub(super) const STATES: &str = "jobs";

/// A template of states from this version on serves this release, too, where nobody may write a newer one.
const GOES_ON_FROM: u64 = 7;

/// In which form a template is put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Present,
    /// As it was before this format, so that the version before may come back: the version of the template is one less.
    Before,
}

/// What to do when a set-up is refused for want of rights.
const SET_UP_HINT: &str = "start this version once as a user who may set up (the cluster privilege \
    manage_index_templates, and indices:admin/mapping/put on the prefix: see 'Elasticsearch with logins' in \
    the operator's guide); after that a user without these rights can run it";
/// What to do when it is refused for another reason.
const OTHER_HINT: &str = "where the names are another program's, give another --index-prefix; else see the log of Elasticsearch";

/// The names of indices that a template's text is for, under this prefix.
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

/// Puts a template unless it is there, and the fields that its indices lack.
pub(super) async fn ensure_template(
    cluster: &Cluster,
    name: &str,
    text: &str,
    form: Form,
    config: &ElasticConfig,
) -> Result<(), StoreError> {
    let is_states = name == STATES;
    let name = format!("{}-{name}", cluster.indices.prefix);
    let indices = patterns(text, &cluster.indices.prefix);
    let mut template = filled_in(cluster, text, &indices, config)?;
    let ours = template["_meta"]["format"].as_u64().unwrap_or(0);
    if form == Form::Before {
        template["_meta"]["format"] = json!(ours.saturating_sub(1));
        let version = template["version"].as_u64().unwrap_or(0);
        template["version"] = json!(version.saturating_sub(1));
        template["template"]["mappings"]["_meta"] =
            json!({"format": ours.saturating_sub(1), "bodies": APART});
    }
    let stored = stored_template(cluster, &name, config).await?;
    let theirs = stored["_meta"]["format"].as_u64().unwrap_or(0);
    if theirs > ours {
        return Err(StoreError::Unusable {
            reason: format!("template {name} has format {theirs}, this version knows up to {ours}"),
            hint: "start the newer fairlead that wrote it, or give another --index-prefix"
                .to_owned(),
        });
    }
    let (there, version) = (stored["version"].as_u64(), template["version"].as_u64());
    // A newer release of the same format has seen to its fields itself.
    if there > version {
        return Ok(());
    }
    if there < version {
        let put = Call::write(Method::Put, format!("/_index_template/{name}")).json(&template);
        if let Err(failure) = cluster.call(&put).await {
            let words = format!("template {name} cannot be written: {}", failure.words());
            // With states in the form of before, new months go on as they are.
            let goes_on = is_states && there >= Some(GOES_ON_FROM);
            if !goes_on || !start_error::is_denial(&failure) {
                return Err(refuse(words, &failure));
            }
            tracing::warn!("{words}; start this version once as a user who may set up");
        }
    }
    let fields = template["template"]["mappings"]["properties"].clone();
    ensure_fields(cluster, &name, &indices.join(","), fields).await
}

/// The template of a text for this prefix and these settings.
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

/// The template as Elasticsearch has it; null when it has none.
async fn stored_template(
    cluster: &Cluster,
    name: &str,
    config: &ElasticConfig,
) -> Result<Value, StoreError> {
    let call = Call::read(Method::Get, format!("/_index_template/{name}"));
    match cluster.call(&call).await {
        Err(Failure::Status { status: 404, .. }) => Ok(Value::Null),
        Err(failure) => Err(start_error::unusable(failure, config)),
        Ok(body) => {
            let mut reply: Value = reply::parse(body).await?;
            Ok(reply["index_templates"][0]["index_template"].take())
        }
    }
}

/// Adds fields to those indices that lack some.
async fn ensure_fields(
    cluster: &Cluster,
    template: &str,
    indices: &str,
    fields: Value,
) -> Result<(), StoreError> {
    let path = format!("/{indices}/_mapping?ignore_unavailable=true&allow_no_indices=true");
    let failed = |what: &str, failure: Failure| {
        let words = format!("template {template}: {what}: {}", failure.words());
        Err(refuse(words, &failure))
    };
    let read = Call::read(Method::Get, path.as_str());
    let mappings: Map<String, Value> = match cluster.call(&read).await {
        Ok(body) => reply::parse(body).await?,
        Err(Failure::Status { status: 404, .. }) => return Ok(()),
        Err(failure) => return failed("its indices do not show their mapping", failure),
    };
    let mut stored = mappings
        .values()
        .map(|index| &index["mappings"]["properties"]);
    if stored.all(|stored| holds(stored, &fields)) {
        return Ok(());
    }
    let put = Call::write(Method::Put, path).json(&json!({"properties": fields}));
    match cluster.call(&put).await {
        Ok(_) => Ok(()),
        Err(failure) => failed("its indices refuse the mapping", failure),
    }
}

/// Whether all of `wanted` is in `stored`, which may have more.
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
        assert!(patterns(TEMPLATES[3].1, "lab").contains(&"lab-settings".to_owned()));
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
