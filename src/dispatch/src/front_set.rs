//! A sorted set that is mostly read and shortened at its front.
//!
//! Its first members are adjacent in memory, so the first one costs one read and no path down a tree. The tree has the
//! others. It refills the front once in [`FRONT_MAX`] removals.

use std::collections::BTreeSet;

/// Maximum number of members kept side by side in a vector.
const FRONT_MAX: usize = 16;

/// A sorted set.
#[derive(Debug)]
pub(crate) struct FrontSet<T> {
    /// First members, in reverse order.
    front: Vec<T>,
    /// Members after the front; empty if the front is empty.
    rest: BTreeSet<T>,
}

impl<T> Default for FrontSet<T> {
    fn default() -> Self {
        Self {
            front: Vec::new(),
            rest: BTreeSet::new(),
        }
    }
}

impl<T: Copy + Ord> FrontSet<T> {
    pub(crate) fn is_empty(&self) -> bool {
        self.front.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.front.len().saturating_add(self.rest.len())
    }

    pub(crate) fn first(&self) -> Option<&T> {
        self.front.last()
    }

    pub(crate) fn last(&self) -> Option<&T> {
        self.rest.last().or_else(|| self.front.first())
    }

    /// Returns the members in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.front.iter().rev().chain(&self.rest)
    }

    pub(crate) fn insert(&mut self, new: T) {
        let at = self.front.partition_point(|member| *member > new);
        if self.front.get(at) == Some(&new) {
            return;
        }
        let is_full = self.front.len() >= FRONT_MAX;
        if at == 0 && (is_full || !self.rest.is_empty()) {
            self.rest.insert(new);
            return;
        }
        self.front.insert(at, new);
        if is_full {
            self.rest.insert(self.front.remove(0));
        }
    }

    pub(crate) fn remove(&mut self, member: &T) {
        if let Ok(at) = self.front.binary_search_by(|known| member.cmp(known)) {
            self.front.remove(at);
        } else {
            self.rest.remove(member);
        }
        if self.front.is_empty() {
            let next = std::iter::from_fn(|| self.rest.pop_first());
            self.front.extend(next.take(FRONT_MAX));
            self.front.reverse();
        }
    }

    /// Panics if the front and the rest do not make one order. For tests and simulation.
    pub(crate) fn sanity_check(&self) {
        assert!(self.front.len() <= FRONT_MAX);
        assert!(self.iter().is_sorted_by(|a, b| a < b));
        assert!(!self.front.is_empty() || self.rest.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn is_a_sorted_set(steps in prop::collection::vec((any::<bool>(), 0..60_u8), 0..400)) {
            let (mut set, mut model) = (FrontSet::default(), BTreeSet::new());
            for (comes, member) in steps {
                // A removed member is often the first.
                let first = model.first().copied().filter(|_| member % 2 == 0);
                let member = first.filter(|_| !comes).unwrap_or(member);
                if comes {
                    set.insert(member);
                    model.insert(member);
                } else {
                    set.remove(&member);
                    model.remove(&member);
                }
                set.sanity_check();
                prop_assert!(set.iter().eq(&model));
                prop_assert_eq!((set.first(), set.last()), (model.first(), model.last()));
                prop_assert_eq!((set.len(), set.is_empty()), (model.len(), model.is_empty()));
            }
        }
    }

    #[test]
    fn few_removals_ask_the_tree() {
        let mut set = FrontSet::default();
        (0..1_000).for_each(|n| set.insert(n));
        let mut asked = 0;
        for n in 0..1_000 {
            let before = set.rest.len();
            set.remove(&n);
            asked += usize::from(set.rest.len() != before);
        }
        assert!(set.is_empty() && asked <= 1_000 / FRONT_MAX, "{asked}");
    }
}
