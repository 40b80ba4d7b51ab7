//! Queue by due time, in memory. The store has the truth; this queue only saves reads.

use std::collections::{BTreeMap, BTreeSet};

use fairlead_store::Version;

/// Entries by the times of their next looks, ms.
#[derive(Debug)]
pub(super) struct DueQueue<K, V> {
    by_time: BTreeSet<(u64, K)>,
    entries: BTreeMap<K, Entry<V>>,
    /// Keys of looks in progress. They are not due again before their look has ended.
    looked_at: BTreeSet<K>,
    /// Maximum number of entries; beyond it the latest are forgotten.
    entries_max: usize,
}

/// Facts about one key.
#[derive(Debug, Clone)]
pub(super) struct Entry<V> {
    /// Time of its look, ms.
    pub(super) at_ms: u64,
    /// Version of the value; the same for all if there is none.
    pub(super) version: Version,
    pub(super) value: V,
}

impl<K: Ord + Clone, V> DueQueue<K, V> {
    pub(super) fn new(entries_max: usize) -> Self {
        Self {
            by_time: BTreeSet::new(),
            entries: BTreeMap::new(),
            looked_at: BTreeSet::new(),
            entries_max,
        }
    }

    /// Replaces an entry, unless the known one is as new. Returns true if it is the first one.
    pub(super) fn set(&mut self, key: K, entry: Entry<V>) -> bool {
        let same = self.entries.get(&key);
        same.is_none_or(|same| same.version < entry.version) && self.replace(key, entry)
    }

    /// Schedules a look by `at_ms`, or sooner if that was scheduled before. Returns true if it is the first one.
    pub(super) fn look_at(&mut self, key: K, at_ms: u64, value: V) -> bool {
        let before = self.entries.get(&key);
        let entry = Entry {
            at_ms: before.map_or(at_ms, |before| before.at_ms.min(at_ms)),
            version: Version::default(),
            value,
        };
        self.replace(key, entry)
    }

    /// Puts back a taken entry for another look. An entry that came meanwhile stays, unless it is older; of the same
    /// version, the sooner time counts. Returns true if it is the first one.
    pub(super) fn put_back(&mut self, key: K, entry: Entry<V>) -> bool {
        let entry = match self.remove(&key) {
            Some(came) if came.version == entry.version => Entry {
                at_ms: came.at_ms.min(entry.at_ms),
                ..came
            },
            Some(came) if came.version > entry.version => came,
            _ => entry,
        };
        self.replace(key, entry)
    }

    /// Returns the value of a key.
    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key).map(|entry| &entry.value)
    }

    /// Forgets a key that needs no more looks as of this version.
    pub(super) fn forget(&mut self, key: &K, version: Version) {
        let entry = self.entries.get(key);
        if entry.is_some_and(|entry| entry.version <= version) {
            self.remove(key);
        }
    }

    /// Forgets all keys without a look in progress.
    pub(super) fn clear(&mut self) {
        self.by_time.clear();
        self.entries.clear();
    }

    /// Removes and returns due entries in the order of time, at most `many`. Their looks begin.
    pub(super) fn take(&mut self, now_ms: u64, many: usize) -> Vec<(K, Entry<V>)> {
        let due = self
            .by_time
            .iter()
            .take_while(|(at_ms, _)| *at_ms <= now_ms);
        let due = due.filter(|(_, key)| !self.looked_at.contains(key));
        let keys: Vec<K> = due.map(|(_, key)| key.clone()).take(many).collect();
        let mut taken = Vec::with_capacity(keys.len());
        for key in keys {
            if let Some(entry) = self.remove(&key) {
                self.looked_at.insert(key.clone());
                taken.push((key, entry));
            }
        }
        taken
    }

    /// Notes the end of a look.
    pub(super) fn looked_at(&mut self, key: &K) {
        self.looked_at.remove(key);
    }

    /// Returns true if an entry is due.
    pub(super) fn is_due(&self, now_ms: u64) -> bool {
        let first = self.by_time.first();
        first.is_some_and(|(at_ms, _)| *at_ms <= now_ms)
    }

    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the earliest time of an entry without a look in progress.
    pub(super) fn next_ms(&self) -> Option<u64> {
        let mut waiting = self.by_time.iter();
        let next = waiting.find(|(_, key)| !self.looked_at.contains(key));
        next.map(|(at_ms, _)| *at_ms)
    }

    fn replace(&mut self, key: K, entry: Entry<V>) -> bool {
        self.remove(&key);
        let place = (entry.at_ms, key.clone());
        self.by_time.insert(place.clone());
        self.entries.insert(key, entry);
        if self.by_time.len() > self.entries_max
            && let Some((_, latest)) = self.by_time.last().cloned()
        {
            self.remove(&latest);
        }
        self.by_time.first() == Some(&place)
    }

    fn remove(&mut self, key: &K) -> Option<Entry<V>> {
        let entry = self.entries.remove(key)?;
        self.by_time.remove(&(entry.at_ms, key.clone()));
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry<V>(seq_no: u64, at_ms: u64, value: V) -> Entry<V> {
        let version = Version {
            primary_term: 1,
            seq_no,
        };
        Entry {
            at_ms,
            version,
            value,
        }
    }

    fn due<K: Ord + Clone, V>(queue: &mut DueQueue<K, V>, now_ms: u64) -> Vec<V> {
        let due = queue.take(now_ms, usize::MAX).into_iter();
        due.map(|(key, entry)| {
            queue.looked_at(&key);
            entry.value
        })
        .collect()
    }

    #[test]
    fn what_is_due_comes_by_time_and_once() {
        let mut queue: DueQueue<&str, char> = DueQueue::new(10);
        assert!(queue.set("late", entry(1, 30, 'l')));
        assert!(queue.set("b", entry(1, 10, 'b')));
        assert!(!queue.set("a", entry(1, 20, 'a')));
        assert!(due(&mut queue, 9).is_empty());
        assert_eq!((queue.next_ms(), queue.len()), (Some(10), 3));
        assert!(queue.is_due(10) && !queue.is_due(9));
        assert_eq!(due(&mut queue, 20), ['b', 'a']);
        assert!(due(&mut queue, 20).is_empty());
        assert_eq!(due(&mut queue, u64::MAX), ['l']);
    }

    #[test]
    fn only_what_is_newer_replaces_and_forgets() {
        let mut queue: DueQueue<&str, char> = DueQueue::new(10);
        queue.set("a", entry(2, 10, 'x'));
        queue.set("a", entry(1, 5, 'o'));
        queue.set("a", entry(2, 5, 's'));
        queue.put_back("a", entry(1, 5, 'o'));
        queue.put_back("a", entry(2, 50, 's'));
        assert!(due(&mut queue, 9).is_empty());
        queue.set("a", entry(3, 20, 'n'));
        queue.forget(&"a", entry(2, 0, ()).version);
        assert!(due(&mut queue, 10).is_empty());
        assert_eq!(due(&mut queue, 20), ['n']);
        queue.set("a", entry(4, 30, 'g'));
        queue.forget(&"a", entry(5, 0, ()).version);
        assert!(due(&mut queue, 30).is_empty());
    }

    #[test]
    fn the_sooner_time_and_the_last_value_count_without_versions() {
        let mut queue: DueQueue<&str, char> = DueQueue::new(10);
        queue.look_at("a", 20, 'o');
        assert!(queue.look_at("a", 10, 'x'));
        queue.look_at("a", 30, 'n');
        assert_eq!((queue.next_ms(), queue.get(&"a")), (Some(10), Some(&'n')));
        assert_eq!(due(&mut queue, 10), ['n']);
        assert!(due(&mut queue, u64::MAX).is_empty());
    }

    #[test]
    fn the_latest_are_forgotten_when_there_are_too_many() {
        let mut queue = DueQueue::new(100);
        for n in 0..=100 {
            queue.set(n, entry(1, 100 - n, n));
        }
        let due = due(&mut queue, u64::MAX);
        assert_eq!((due.len(), due.last()), (100, Some(&1)));
    }
}
