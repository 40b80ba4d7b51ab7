//! Notes that wait to be written together, by what they are about. They may be lost with the replica: they only steer.

use std::collections::BTreeMap;

use parking_lot::Mutex;

/// Maximum number of waiting notes.
const NOTES_MAX: usize = 100_000;

/// Notes that are not stored yet.
#[derive(Debug)]
pub struct Pending<K, T>(Mutex<BTreeMap<K, Vec<T>>>);

impl<K, T> Default for Pending<K, T> {
    fn default() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }
}

impl<K: Ord, T> Pending<K, T> {
    /// Adds notes, unless too many wait already.
    pub fn add(&self, key: K, notes: Vec<T>) {
        let mut pending = self.0.lock();
        let all: usize = pending.values().map(Vec::len).sum();
        if all.saturating_add(notes.len()) <= NOTES_MAX {
            pending.entry(key).or_default().extend(notes);
        }
    }

    pub fn take(&self) -> BTreeMap<K, Vec<T>> {
        std::mem::take(&mut *self.0.lock())
    }
}
