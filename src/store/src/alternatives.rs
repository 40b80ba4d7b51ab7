//! Alternatives of a job as stored documents hold them: a map by number, so that each has fields of its own that
//! Elasticsearch finds.

use std::collections::BTreeMap;

use fairlead_job::Alternative;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
struct Stored {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
    /// Number of tags. A `terms_set` search never finds documents without any.
    tags_n: usize,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    not_tags: Vec<String>,
}

pub(crate) fn serialize<S: Serializer>(all: &[Alternative], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(all.iter().enumerate().map(|(number, one)| {
        let stored = Stored {
            tags: one.tags.clone(),
            tags_n: one.tags.len(),
            not_tags: one.not_tags.clone(),
        };
        (number.to_string(), stored)
    }))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Vec<Alternative>, D::Error> {
    let stored = BTreeMap::<String, Stored>::deserialize(from)?;
    let plain = |one: Stored| Alternative {
        tags: one.tags,
        not_tags: one.not_tags,
    };
    Ok(stored.into_values().map(plain).collect())
}
