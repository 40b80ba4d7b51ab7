//! Where the body of a job is: beside its state, or in an index of bodies.
//!
//! A body beside its state has the id of the job with an ending, and the job's routing. So both are in one shard, and a
//! submit is one durable write. None of its fields is indexed. Months that an older version made keep their index of
//! bodies for as long as they live. The mapping of an index of states tells which of the two it is.
//!
//! An older version knows only bodies that are apart. So a lab that it used goes on with them for some months: until the
//! present month is one that this version made. Until then the older version may come back.

use std::collections::BTreeMap;

use parking_lot::Mutex;

/// What a mapping says if the bodies are beside the states, and if this version made it and they are apart.
pub(super) const BESIDE: &str = "beside";
pub(super) const APART: &str = "apart";

/// Where a document is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) index: String,
    pub(super) id: String,
    /// Where it is no other than the id: none.
    pub(super) routing: Option<String>,
}

impl Address {
    pub(super) fn new(index: String, id: String) -> Self {
        Self {
            index,
            id,
            routing: None,
        }
    }
}

/// What the mapping of each known index of states says of bodies. That never changes.
#[derive(Debug, Default)]
pub(super) struct Layouts(Mutex<BTreeMap<String, String>>);

impl Layouts {
    /// What is known of an index.
    pub(super) fn of(&self, index: &str) -> Option<String> {
        self.0.lock().get(index).cloned()
    }

    /// Whether no index is known.
    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// Whether bodies are beside the states of an index, if it is known.
    pub(super) fn is_beside(&self, index: &str) -> Option<bool> {
        self.0.lock().get(index).map(|word| word == BESIDE)
    }

    /// Keeps what was read of indices.
    pub(super) fn learn(&self, read: impl Iterator<Item = (String, String)>) {
        self.0.lock().extend(read);
    }
}
