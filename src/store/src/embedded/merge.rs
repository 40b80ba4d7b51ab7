//! Patches of stored states: fields are replaced as text, so those that this version does not know stay as they are.

use std::{borrow::Cow, fmt};

use fairlead_job::JobId;
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
};
use serde_json::{
    Map, Value,
    value::{RawValue, to_raw_value},
};

use crate::{JobState, codec};

/// A state before and after a patch.
#[derive(Debug)]
pub(super) struct Merged {
    pub(super) before: JobState,
    pub(super) after: JobState,
    /// The state after it as it is stored.
    pub(super) text: String,
}

/// Sets the fields of a stored state; a null removes its field.
pub(super) fn merge(id: JobId, stored: &str, set: &Map<String, Value>) -> Result<Merged, String> {
    let broken = |error: serde_json::Error| error.to_string();
    let before = codec::decode_text(stored)?;
    let texts = set.values().map(to_raw_value);
    let texts: Vec<Box<RawValue>> = texts.collect::<Result<_, _>>().map_err(broken)?;
    let mut fields: Fields<'_> = serde_json::from_str(stored).map_err(broken)?;
    for ((name, value), text) in set.iter().zip(&texts) {
        fields.set(name, Some(&**text).filter(|_| !value.is_null()));
    }
    let text = serde_json::to_string(&fields).map_err(broken)?;
    if text.len() > codec::STATE_BYTES_MAX {
        return Err(format!(
            "the state has {} bytes of JSON, more than {}",
            text.len(),
            codec::STATE_BYTES_MAX
        ));
    }
    let after = codec::decode_text(&text)?;
    if after.job_id != id {
        return Err(format!("a patch cannot change job {id} into another"));
    }
    Ok(Merged {
        before,
        after,
        text,
    })
}

/// The fields of an object in their order, with their values as text.
struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Fields<'a> {
    fn set(&mut self, name: &'a str, value: Option<&'a RawValue>) {
        let at = self.0.iter().position(|(known, _)| known == name);
        match (at.and_then(|at| self.0.get_mut(at)), value) {
            (Some(field), Some(value)) => field.1 = value,
            (None, Some(value)) => self.0.push((Cow::Borrowed(name), value)),
            (Some(_), None) => self.0.retain(|(known, _)| known != name),
            (None, None) => {}
        }
    }
}

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// A name without escapes is not copied.
        #[derive(Deserialize)]
        struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::with_capacity(64);
                while let Some((Name(name), value)) = map.next_entry()? {
                    fields.push((name, value));
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(Object)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const STORED: &str = include_str!("../../tests/golden/state-1.json");

    fn merged(stored: &str, set: &Value) -> Result<Merged, String> {
        let before = codec::decode_text(stored)?;
        merge(before.job_id, stored, set.as_object().unwrap())
    }

    #[test]
    fn a_patch_replaces_adds_and_removes_fields_and_keeps_their_order() {
        let mut stored: Map<String, Value> = serde_json::from_str(STORED).unwrap();
        stored.insert(
            "\u{e9}\"\\ of tomorrow".into(),
            json!({"a": [1, null, 1e-7]}),
        );
        stored.insert("fingerprint".into(), Value::Null);
        let text = serde_json::to_string(&stored).unwrap();
        let set =
            json!({"host": "h\"2", "lab": "l1", "exit_code": 3, "reason": null, "sequence": null});
        let Merged {
            before,
            after,
            text,
        } = merged(&text, &set).unwrap();
        for (name, value) in set.as_object().unwrap() {
            if value.is_null() {
                stored.shift_remove(name);
            } else {
                stored.insert(name.clone(), value.clone());
            }
        }
        assert_eq!(text, serde_json::to_string(&stored).unwrap());
        assert_eq!((before.host.as_str(), after.host.as_str()), ("h1", "h\"2"));
        assert_eq!((after.lab.as_str(), after.exit_code), ("l1", Some(3)));
        assert_eq!(after.reason, "");
    }

    #[test]
    fn a_patch_that_makes_no_state_is_refused() {
        for set in [
            json!({"job_id": "5"}),
            json!({"stage": 7}),
            json!({"format": 9}),
            json!({"account": null}),
            json!({"reason": "x".repeat(codec::STATE_BYTES_MAX)}),
        ] {
            assert!(merged(STORED, &set).is_err(), "{set:.40}");
        }
        merged(STORED, &json!({})).unwrap();
    }
}
