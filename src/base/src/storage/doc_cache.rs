//! Cache of small documents. A replica's own writes count at once, though lists lag behind.
//!
//! A list may lack a document, or show an older version than this replica wrote. Neither undoes the write. A document
//! was deleted elsewhere if it was in a list and is missing in a later one. The same holds if this replica wrote it and
//! several lists lack it.

use std::collections::BTreeMap;

use fairlead_store::Version;

use crate::storage::small_doc::Stored;

/// Number of lists, a second or two apart, within which a write must show. Otherwise it was undone elsewhere.
const LAGGING_LISTS: u8 = 3;

#[derive(Debug)]
struct Known<T> {
    version: Version,
    /// Value; `None`: deleted here.
    value: Option<T>,
    listed: bool,
    /// Number of lists since the write that did not show it.
    missed: u8,
}

/// The documents of one kind, by id.
#[derive(Debug)]
pub struct DocCache<T>(BTreeMap<String, Known<T>>);

impl<T> Default for DocCache<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: PartialEq> DocCache<T> {
    /// Notes an acknowledged write of this replica; `None` deleted the document.
    pub fn wrote(&mut self, id: &str, version: Version, value: Option<T>) {
        let newer = self.0.get(id).is_none_or(|known| known.version <= version);
        if newer {
            let known = Known {
                version,
                value,
                listed: false,
                missed: 0,
            };
            self.0.insert(id.to_owned(), known);
        }
    }

    /// Takes over a list. Returns true if anything changed.
    pub fn listed(&mut self, docs: Vec<(String, Stored<T>)>) -> bool {
        let mut changed = false;
        let mut old = std::mem::take(&mut self.0);
        for (id, stored) in docs {
            let (version, value) = (stored.version, stored.doc);
            match old.remove(&id) {
                Some(known) if known.version > version => {
                    self.0.insert(id, known);
                }
                known => {
                    changed |= known.and_then(|known| known.value).as_ref() != Some(&value);
                    self.0.insert(
                        id,
                        Known {
                            version,
                            value: Some(value),
                            listed: true,
                            missed: 0,
                        },
                    );
                }
            }
        }
        for (id, mut known) in old {
            known.missed = known.missed.saturating_add(1);
            if known.listed || known.missed > LAGGING_LISTS {
                changed |= known.value.is_some();
            } else {
                self.0.insert(id, known);
            }
        }
        changed
    }

    /// Returns the document of this id.
    pub fn get(&self, id: &str) -> Option<&T> {
        self.0.get(id)?.value.as_ref()
    }

    /// Returns all documents, by id.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &T)> {
        self.0
            .iter()
            .filter_map(|(id, known)| Some((id, known.value.as_ref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seq_no: u64) -> Version {
        Version {
            primary_term: 1,
            seq_no,
        }
    }

    fn doc(id: &str, seq_no: u64, doc: u32) -> (String, Stored<u32>) {
        let stored = Stored {
            version: at(seq_no),
            doc,
            kept: serde_json::Map::new(),
        };
        (id.to_owned(), stored)
    }

    #[test]
    fn a_list_that_lags_does_not_undo_a_write() {
        let mut fresh = DocCache::default();
        assert!(fresh.listed(vec![doc("a", 1, 10)]));
        fresh.wrote("a", at(5), Some(20));
        fresh.wrote("b", at(6), Some(30));
        assert!(!fresh.listed(vec![doc("a", 1, 10)]));
        assert_eq!((fresh.get("a"), fresh.get("b")), (Some(&20), Some(&30)));
        assert!(!fresh.listed(vec![doc("a", 5, 20), doc("b", 6, 30)]));
        assert!(fresh.listed(vec![doc("a", 7, 40), doc("b", 6, 30)]));
        assert_eq!(fresh.iter().map(|(_, value)| *value).sum::<u32>(), 70);
    }

    #[test]
    fn what_was_deleted_elsewhere_before_any_list_had_it_is_not_kept_for_ever() {
        let mut fresh = DocCache::default();
        fresh.wrote("a", at(5), Some(20));
        for _ in 0..LAGGING_LISTS {
            assert!(!fresh.listed(vec![]), "it may lag");
            assert_eq!(fresh.get("a"), Some(&20));
        }
        assert!(fresh.listed(vec![]));
        assert_eq!(fresh.get("a"), None);
    }

    #[test]
    fn deletions_here_and_elsewhere_are_kept() {
        let mut fresh = DocCache::default();
        fresh.listed(vec![doc("a", 1, 10), doc("b", 2, 20)]);
        fresh.wrote("a", at(3), None);
        assert!(!fresh.listed(vec![doc("a", 1, 10), doc("b", 2, 20)]));
        assert_eq!(fresh.get("a"), None);
        assert!(fresh.listed(vec![]), "b was deleted elsewhere");
        assert_eq!(fresh.iter().count(), 0);
    }
}
