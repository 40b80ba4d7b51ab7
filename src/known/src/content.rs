//! Facts about inputs and outputs, kept so that the content store is asked less often. Nothing of it ever changes:
//! a manifest's id says what is in it.

use std::{collections::BTreeMap, sync::Arc};

use fairlead_content::Digest;
use fairlead_dispatch::Millis;
use parking_lot::Mutex;

/// Memory limit of the remembered chunk sets, bytes.
const SETS_BYTES_MAX: usize = 64 << 20;

/// Time for which an input that a submit found and pinned is not checked again, ms. The pin lasts longer.
pub const FOUND_MS: u64 = 3_600_000;
/// Most inputs that are remembered as found.
const FOUND_MAX: usize = 65_536;

/// Cached facts about manifests.
#[derive(Debug)]
pub struct KnownContent {
    /// Chunks of manifests, sorted.
    pub sets: Mutex<Recent<Arc<[Digest]>>>,
    /// Inputs of recent submits.
    pub found: Mutex<FoundInputs>,
    /// Amounts of content by account with a limit, with the time of the sum.
    pub used: Mutex<BTreeMap<String, (Millis, ContentUsed)>>,
}

/// Amount of content of an account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ContentUsed {
    /// Bytes of all its content.
    pub kept: u64,
    /// Bytes that it stored within a day.
    pub day: u64,
}

/// Facts about an input that a submit needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundInput {
    /// Total size of its files, bytes.
    pub bytes: u64,
    /// Words of its chunks, by which hosts with these chunks are preferred.
    pub words: Arc<[String]>,
}

/// Inputs that accounts have and that are pinned, by digest and account.
#[derive(Debug, Default)]
pub struct FoundInputs(BTreeMap<(Digest, String), (Millis, FoundInput)>);

impl FoundInputs {
    /// Returns an input that was recently found under this id for an account.
    pub fn get(&self, id: Digest, account: &str, now: Millis) -> Option<FoundInput> {
        let (since, found) = self.0.get(&(id, account.to_owned()))?;
        (now.0 < since.0.saturating_add(FOUND_MS)).then(|| found.clone())
    }

    /// Remembers an input that was just found and pinned.
    pub fn add(&mut self, id: Digest, account: &str, found: FoundInput, now: Millis) {
        if self.0.len() >= FOUND_MAX {
            self.0
                .retain(|_, (since, _)| now.0 < since.0.saturating_add(FOUND_MS));
        }
        if self.0.len() < FOUND_MAX {
            self.0.insert((id, account.to_owned()), (now, found));
        }
    }
}

impl Default for KnownContent {
    fn default() -> Self {
        Self {
            sets: Mutex::new(Recent::new(SETS_BYTES_MAX)),
            found: Mutex::default(),
            used: Mutex::default(),
        }
    }
}

/// Cache of values by digest, with a limit of weight. It drops the least recently used values first.
#[derive(Debug)]
pub struct Recent<T> {
    weight_max: usize,
    weight: usize,
    /// Counter of uses.
    now: u64,
    values: BTreeMap<Digest, Remembered<T>>,
    /// Digests by the counter at their last use.
    order: BTreeMap<u64, Digest>,
}

#[derive(Debug)]
struct Remembered<T> {
    value: T,
    weight: usize,
    used: u64,
}

impl<T: Clone> Recent<T> {
    pub fn new(weight_max: usize) -> Self {
        Self {
            weight_max,
            weight: 0,
            now: 0,
            values: BTreeMap::new(),
            order: BTreeMap::new(),
        }
    }

    /// Returns the value of a digest and counts this as a use.
    pub fn get(&mut self, digest: Digest) -> Option<T> {
        self.now += 1;
        let found = self.values.get_mut(&digest)?;
        self.order.remove(&found.used);
        found.used = self.now;
        self.order.insert(self.now, digest);
        Some(found.value.clone())
    }

    /// Caches a value, unless it alone exceeds the limit.
    pub fn put(&mut self, digest: Digest, value: T, weight: usize) {
        self.forget(digest);
        if weight > self.weight_max {
            return;
        }
        self.now += 1;
        let used = self.now;
        self.order.insert(used, digest);
        self.weight += weight;
        let remembered = Remembered {
            value,
            weight,
            used,
        };
        self.values.insert(digest, remembered);
        while self.weight > self.weight_max {
            let Some((_, oldest)) = self.order.first_key_value() else {
                return;
            };
            self.forget(*oldest);
        }
    }

    /// Removes a value.
    pub fn forget(&mut self, digest: Digest) {
        if let Some(gone) = self.values.remove(&digest) {
            self.order.remove(&gone.used);
            self.weight -= gone.weight;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_remembered_for_an_hour_and_for_its_account() {
        let mut inputs = FoundInputs::default();
        let (id, found) = (Digest::from_bytes([1; 32]), FoundInput::default());
        inputs.add(id, "ann", found.clone(), Millis(5));
        assert_eq!(inputs.get(id, "ann", Millis(6)), Some(found));
        assert_eq!(inputs.get(id, "bob", Millis(6)), None);
        assert_eq!(inputs.get(id, "ann", Millis(5 + FOUND_MS)), None);
    }

    #[test]
    fn what_was_used_least_lately_is_forgotten_first() {
        let of = |n: u8| Digest::from_bytes([n; 32]);
        let mut recent = Recent::new(10);
        recent.put(of(1), 'a', 4);
        recent.put(of(2), 'b', 4);
        assert_eq!(recent.get(of(1)), Some('a'));
        recent.put(of(3), 'c', 4);
        assert_eq!(
            [1, 2, 3].map(|n| recent.get(of(n))),
            [Some('a'), None, Some('c')]
        );
        recent.put(of(4), 'd', 11);
        assert_eq!(recent.get(of(4)), None);
        recent.put(of(3), 'e', 10);
        assert_eq!(
            [1, 3].map(|n| recent.get(of(n))),
            [None, Some('e')],
            "a new weight counts instead of the old one"
        );
        recent.forget(of(3));
        assert_eq!((recent.weight, recent.order.len()), (0, 0));
    }
}
