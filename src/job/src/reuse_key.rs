//! The key of a job for reuse: equal keys mean that two jobs would run the same thing. It has parts, so that people learn
//! which one differs.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{Field, Input, InputOf, KeyPart, Spec};

/// The form of the key: a change of how it is made changes all keys.
const FORM: &str = "fairlead reuse 1";

/// The key of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReuseKey {
    /// The whole: 64 hexadecimal digits.
    pub key: String,
    /// The hash of each part, in the order of [`KeyPart::ALL`]: 32 hexadecimal digits.
    pub parts: [String; KeyPart::ALL.len()],
}

impl ReuseKey {
    /// The key of what a testbox would get as its job. `inputs`: those of the job, each with its id. `salt`: the site's.
    /// `None`: an input is of a job that has not ended.
    pub fn of(spec: &Spec, inputs: &[Input], salt: &str) -> Option<Self> {
        let ids: Option<BTreeSet<(&str, &str)>> = inputs.iter().map(named).collect();
        let ids = ids?;
        let parts = KeyPart::ALL.map(|part| {
            let mut hasher = blake3::Hasher::new();
            match part {
                KeyPart::Salt => text(&mut hasher, salt),
                KeyPart::Inputs => {
                    for (folder, id) in &ids {
                        text(&mut hasher, folder);
                        text(&mut hasher, id);
                    }
                }
                other => {
                    let mut said: Vec<_> = fields_of(spec, other).collect();
                    said.sort_unstable_by_key(|(field, _)| *field);
                    for (field, value) in said {
                        text(&mut hasher, field);
                        canonical(&mut hasher, value);
                    }
                }
            }
            let mut hash = hasher.finalize().to_hex().to_string();
            hash.truncate(32);
            hash
        });
        let mut hasher = blake3::Hasher::new();
        text(&mut hasher, FORM);
        for (part, hash) in KeyPart::ALL.iter().zip(&parts) {
            text(&mut hasher, part.as_str());
            text(&mut hasher, hash);
        }
        let key = hasher.finalize().to_hex().to_string();
        Some(Self { key, parts })
    }

    /// The parts in which it differs from another one.
    pub fn differing(&self, other: &Self) -> Vec<KeyPart> {
        let pairs = self.parts.iter().zip(&other.parts);
        let parts = KeyPart::ALL.into_iter().zip(pairs);
        let differ = parts.filter(|(_, (own, others))| own != others);
        differ.map(|(part, _)| part).collect()
    }
}

/// The fields of a part in which two jobs differ, sorted. Inputs are named by their folders, `inputs` for the whole.
pub fn differing_fields(a: &Spec, b: &Spec, part: KeyPart) -> Vec<String> {
    let fields: BTreeSet<&str> = [a, b]
        .into_iter()
        .flat_map(|spec| fields_of(spec, part).map(|(field, _)| field))
        .collect();
    let differs = |field: &&str| a.get(*field) != b.get(*field);
    let differing = fields.into_iter().filter(differs);
    differing.map(str::to_owned).collect()
}

/// The folder and the id of an input.
fn named(input: &Input) -> Option<(&str, &str)> {
    match &input.of {
        InputOf::Id(id) => Some((&input.folder, id)),
        InputOf::From(_) => None,
    }
}

/// The part that a field of a job belongs to; `None`: no result depends on it.
fn part_of(field: &str) -> Option<KeyPart> {
    Field::of(field).map_or(Some(KeyPart::Parameters), |field| field.key)
}

/// The fields of a job that belong to a part. Null says nothing, but for a program without parameters.
fn fields_of(spec: &Spec, part: KeyPart) -> impl Iterator<Item = (&str, &Value)> {
    let fields = spec.iter().map(|(field, value)| (field.as_str(), value));
    fields.filter(move |(field, _)| part_of(field) == Some(part))
}

fn text(hasher: &mut blake3::Hasher, text: &str) {
    hasher.update(&(text.len() as u64).to_le_bytes());
    hasher.update(text.as_bytes());
}

/// A value in one form: maps sorted by their keys, and each value with what it is, so that no two have the same bytes.
fn canonical(hasher: &mut blake3::Hasher, value: &Value) {
    match value {
        Value::Null => {
            hasher.update(b"0");
        }
        Value::Bool(is_so) => {
            hasher.update(if *is_so { b"t" } else { b"f" });
        }
        Value::Number(number) => {
            hasher.update(b"n");
            text(hasher, &number.to_string());
        }
        Value::String(said) => {
            hasher.update(b"s");
            text(hasher, said);
        }
        Value::Array(items) => {
            hasher.update(b"a");
            hasher.update(&(items.len() as u64).to_le_bytes());
            for item in items {
                canonical(hasher, item);
            }
        }
        Value::Object(map) => {
            hasher.update(b"o");
            hasher.update(&(map.len() as u64).to_le_bytes());
            let mut fields: Vec<_> = map.iter().collect();
            fields.sort_unstable_by_key(|(key, _)| *key);
            for (key, value) in fields {
                text(hasher, key);
                canonical(hasher, value);
            }
        }
    }
}

#[cfg(test)]
mod tests;
