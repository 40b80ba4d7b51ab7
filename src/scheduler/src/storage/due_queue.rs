//! Queue by due time, in memory. The store has the truth; this queue only saves reads.

use std::collections::{BTreeMap, BTreeSet};

use fairlead_store::Version;
use parking_lot::Mutex;

/// Most entries at one time; the latest are forgotten, and read again when they are the next ones.
const KNOWN_MAX: usize = 20_000;

/// Things by when they must be looked at, UTC epoch ms.
#[derive(Debug)]
pub(crate) struct DueQueue<K, V>(Mutex<Known<K, V>>);

#[derive(Debug)]
struct Known<K, V> {
    by_time: BTreeSet<(u64, K)>,
    entries: BTreeMap<K, Entry<V>>,
}

#[derive(Debug)]
struct Entry<V> {
    at_ms: u64,
    version: Version,
    value: V,
}

impl<K, V> Default for DueQueue<K, V> {
    fn default() -> Self {
        Self(Mutex::new(Known {
            by_time: BTreeSet::new(),
            entries: BTreeMap::new(),
        }))
    }
}

impl<K: Ord + Clone, V> Known<K, V> {
    fn forget(&mut self, key: &K) -> Option<V> {
        let entry = self.entries.remove(key)?;
        self.by_time.remove(&(entry.at_ms, key.clone()));
        Some(entry.value)
    }
}

impl<K: Ord + Clone, V> DueQueue<K, V> {
    /// Looks at it at `at_ms`. What is known of it already is replaced unless it is as new.
    pub(crate) fn set(&self, key: K, version: Version, at_ms: u64, value: V) {
        self.with(|known| {
            let same = known.entries.get(&key);
            if same.is_some_and(|same| same.version >= version) {
                return;
            }
            known.forget(&key);
            known.by_time.insert((at_ms, key.clone()));
            let entry = Entry {
                at_ms,
                version,
                value,
            };
            known.entries.insert(key, entry);
            if known.by_time.len() > KNOWN_MAX
                && let Some((_, latest)) = known.by_time.last().cloned()
            {
                known.forget(&latest);
            }
        });
    }

    /// Reads what is known of it.
    pub(crate) fn look<R>(&self, key: &K, read: impl FnOnce(&V) -> R) -> Option<R> {
        self.with(|known| known.entries.get(key).map(|entry| read(&entry.value)))
    }

    /// There is nothing more to do for it, as of this version.
    pub(crate) fn forget(&self, key: &K, version: Version) {
        self.with(|known| {
            let entry = known.entries.get(key);
            if entry.is_some_and(|entry| entry.version <= version) {
                known.forget(key);
            }
        });
    }

    /// Forgets everything: it is read again.
    pub(crate) fn clear(&self) {
        self.with(|known| {
            known.by_time.clear();
            known.entries.clear();
        });
    }

    /// Takes out what must be done by now, in the order of time.
    pub(crate) fn due(&self, now_ms: u64) -> Vec<V> {
        self.with(|known| {
            let mut due = Vec::new();
            while let Some((at_ms, key)) = known.by_time.first().cloned() {
                if at_ms > now_ms {
                    break;
                }
                known.by_time.pop_first();
                due.extend(known.entries.remove(&key).map(|entry| entry.value));
            }
            due
        })
    }

    fn with<R>(&self, work: impl FnOnce(&mut Known<K, V>) -> R) -> R {
        work(&mut self.0.lock())
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

    #[test]
    fn what_is_due_comes_by_time_and_once() {
        let book: DueQueue<&str, char> = DueQueue::default();
        book.set("late", at(1), 30, 'l');
        book.set("b", at(1), 10, 'b');
        book.set("a", at(1), 20, 'a');
        assert!(book.due(9).is_empty());
        assert_eq!(book.due(20), ['b', 'a']);
        assert!(book.due(20).is_empty());
        assert_eq!(book.due(u64::MAX), ['l']);
    }

    #[test]
    fn only_what_is_newer_replaces_and_forgets() {
        let book: DueQueue<&str, char> = DueQueue::default();
        book.set("a", at(2), 10, 'x');
        book.set("a", at(1), 5, 'o');
        book.set("a", at(2), 5, 's');
        assert!(book.due(9).is_empty());
        book.set("a", at(3), 20, 'n');
        book.forget(&"a", at(2));
        assert!(book.due(10).is_empty());
        assert_eq!(book.due(20), ['n']);
        book.set("a", at(4), 30, 'g');
        book.forget(&"a", at(5));
        assert!(book.due(30).is_empty());
    }

    #[test]
    fn the_latest_are_forgotten_when_there_are_too_many() {
        let book = DueQueue::default();
        for n in 0..=KNOWN_MAX {
            book.set(n, at(1), u64::try_from(KNOWN_MAX - n).unwrap(), n);
        }
        let due = book.due(u64::MAX);
        assert_eq!((due.len(), due.last()), (KNOWN_MAX, Some(&1)));
    }
}
