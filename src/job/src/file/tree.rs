//! The tree of a job file: YAML with the place of each key and value.
//!
//! Values are shared ([`Arc`]), so documents, includes and aliases cost pointers instead of copies.

use std::sync::Arc;

use serde_json::Value;

use super::{at::At, template::Template};

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) at: At,
    pub(crate) kind: Kind,
}

/// Kind of a value.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    /// Text, number, bool or null.
    Scalar(Value),
    /// A text that holds `{{ }}`.
    Template(Arc<Template>),
    List(Vec<Arc<Node>>),
    Map(Vec<Entry>),
}

impl Kind {
    /// The word for messages.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Scalar(Value::Null) => "nothing",
            Self::Scalar(Value::Bool(_)) => "a bool",
            Self::Scalar(Value::Number(_)) => "a number",
            Self::Scalar(_) => "text",
            Self::Template(_) => "a template",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
        }
    }
}

/// A key and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) text: String,
    pub(crate) at: At,
}

/// One line of a map: a key with its value, or zipped keys with their rows.
#[derive(Debug, Clone)]
pub(crate) enum Entry {
    One(Key, Arc<Node>),
    Zip(Zip),
}

/// `a|b: [1|2, 3|4]`: every row gives each key its value.
#[derive(Debug, Clone)]
pub(crate) struct Zip {
    pub(crate) keys: Vec<Key>,
    /// At least one; each as long as `keys`.
    pub(crate) rows: Vec<Vec<Value>>,
}

impl Entry {
    /// The keys that this line sets.
    pub(crate) fn keys(&self) -> &[Key] {
        match self {
            Self::One(key, _) => std::slice::from_ref(key),
            Self::Zip(zip) => &zip.keys,
        }
    }

    /// Returns true if this line sets `key`.
    pub(crate) fn sets(&self, key: &str) -> bool {
        self.keys().iter().any(|k| k.text == key)
    }
}
