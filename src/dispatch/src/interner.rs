//! Interner of shared values, mostly names: equal values are one allocation.
//!
//! It owns only the table. Each new value also checks a few others and drops those without users. So memory follows the
//! values in use (I7), and no single event pays for all of them.

use crate::requirement::Name;
use indexmap::IndexSet;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::Arc;

/// Number of values below which unused ones are not looked for.
const SWEEP_FROM: usize = 1_024;

/// Values looked at for each new one.
const LOOKED_AT: usize = 4;

/// A shared string.
pub(crate) type Atom = Arc<str>;

/// A hash for names, the same on every run.
pub(crate) type Fixed = foldhash::fast::FixedState;

/// A hash for keys that are numbers already: one multiplication, both halves folded.
#[derive(Debug, Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, n: u32) {
        self.write_u64(u64::from(n));
    }

    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(5) ^ n).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

/// Hasher of maps whose keys are numbers.
pub(crate) type Numbers = BuildHasherDefault<NumberHasher>;

/// Table of values in which equal values are shared.
#[derive(Debug)]
pub(crate) struct Interner<T: ?Sized> {
    known: IndexSet<Arc<T>, Fixed>,
    /// Index of the value to look at next.
    next: usize,
}

/// The table of names.
pub(crate) type Atoms = Interner<str>;

impl<T: ?Sized> Default for Interner<T> {
    fn default() -> Self {
        Self {
            known: IndexSet::default(),
            next: 0,
        }
    }
}

impl<T: ?Sized + Eq + Hash> Interner<T> {
    /// Returns the shared form of `value`.
    pub(crate) fn get<'a>(&mut self, value: &'a T) -> Arc<T>
    where
        Arc<T>: From<&'a T>,
    {
        if let Some(known) = self.known.get(value) {
            return Arc::clone(known);
        }
        self.drop_unused();
        let shared = Arc::from(value);
        self.known.insert(Arc::clone(&shared));
        shared
    }

    fn drop_unused(&mut self) {
        if self.known.len() < SWEEP_FROM {
            return;
        }
        for _ in 0..LOOKED_AT {
            // The walk goes backwards: the value that replaces a dropped one was looked at before.
            self.next = self.next.checked_sub(1).unwrap_or(self.known.len() - 1);
            let one = self.known.get_index(self.next);
            if one.is_some_and(|shared| Arc::strong_count(shared) == 1) {
                self.known.swap_remove_index(self.next);
            }
        }
    }

    /// Returns the number of values in the table.
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }
}

impl Atoms {
    /// Returns the shared forms of `names`, sorted and without duplicates.
    pub(crate) fn set(&mut self, names: &[String]) -> Box<[Atom]> {
        let mut atoms: Vec<Atom> = names.iter().map(|name| self.get(name)).collect();
        atoms.sort_unstable();
        atoms.dedup();
        atoms.into_boxed_slice()
    }

    /// Returns a table of those `names` that are in this one.
    pub(crate) fn those_of<'a>(&self, names: impl Iterator<Item = &'a str>) -> Self {
        let known = names.filter_map(|name| self.known.get(name));
        Self {
            known: known.cloned().collect(),
            ..Self::default()
        }
    }
}

/// Names of one table: equal names have equal addresses, and lists are sorted. No text is compared.
impl Name for Atom {
    fn is_same(&self, other: &Self) -> bool {
        Self::ptr_eq(self, other)
    }

    fn is_subset(inner: &[Self], outer: &[Self]) -> bool {
        let mut outer = outer.iter();
        let mut inner = inner.iter();
        inner.all(|name| outer.any(|other| name.is_same(other)))
    }
}

/// Returns the address of a name, which identifies it within one table.
pub(crate) fn address(name: &Atom) -> usize {
    Arc::as_ptr(name).cast::<u8>().addr()
}

/// Returns the number of names that two sorted lists have in common.
pub(crate) fn common(a: &[Atom], b: &[Atom]) -> usize {
    a.iter()
        .filter(|name| b.binary_search(name).is_ok())
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_share_and_unused_ones_go() {
        let mut atoms = Atoms::default();
        let kept = atoms.get("kept");
        assert!(Arc::ptr_eq(&kept, &atoms.get("kept")));
        for n in 0..10 * SWEEP_FROM {
            atoms.get(&n.to_string());
        }
        assert!(atoms.len() <= 2 * SWEEP_FROM, "{}", atoms.len());
        assert!(Arc::ptr_eq(&kept, &atoms.get("kept")));
    }

    #[test]
    fn subsets_and_common_names() {
        let mut atoms = Atoms::default();
        let mut set = |names: &str| {
            atoms.set(
                &names
                    .split_whitespace()
                    .map(str::to_owned)
                    .collect::<Vec<_>>(),
            )
        };
        let (none, a, ab, abc, bd) = (set(""), set("a"), set("b a b"), set("a b c"), set("b d"));
        for (inner, outer) in [(&none, &none), (&none, &abc), (&ab, &abc), (&a, &ab)] {
            assert!(Name::is_subset(inner, outer));
        }
        for (inner, outer) in [(&bd, &abc), (&a, &none), (&abc, &ab)] {
            assert!(!Name::is_subset(inner, outer));
        }
        assert_eq!(common(&abc, &bd), 1);
        assert_eq!(common(&ab, &abc), 2);
    }
}
