//! Counted bit sets: which queues have something of a kind.

use crate::ids::QueueId;
use crate::interner::{Atom, Numbers, address};
use indexmap::IndexMap;
use slotmap::Key;
use std::collections::BTreeMap;

/// Set of queues, one bit each.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Bitset(Vec<u64>);

fn place(queue: QueueId) -> (usize, u64) {
    // The low half of a key is its slot: dense, and used by one living queue at a time.
    let slot = queue.data().as_ffi() & u64::from(u32::MAX);
    (
        usize::try_from(slot / 64).unwrap_or(usize::MAX),
        1 << (slot % 64),
    )
}

impl Bitset {
    pub(crate) fn contains(&self, queue: QueueId) -> bool {
        let (word, bit) = place(queue);
        self.0.get(word).is_some_and(|bits| bits & bit != 0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|bits| *bits == 0)
    }

    pub(crate) fn add(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (bits, more) in self.0.iter_mut().zip(&other.0) {
            *bits |= more;
        }
    }

    /// Returns true if both contain the same queues. Their capacities may differ.
    fn is_like(&self, other: &Self) -> bool {
        let words = self.0.len().max(other.0.len());
        let word = |bits: &Self, at: usize| bits.0.get(at).copied().unwrap_or(0);
        (0..words).all(|at| word(self, at) == word(other, at))
    }

    fn set(&mut self, queue: QueueId, on: bool) {
        let (word, bit) = place(queue);
        if word >= self.0.len() {
            self.0.resize(word.saturating_add(1), 0);
        }
        if let Some(bits) = self.0.get_mut(word) {
            *bits = if on { *bits | bit } else { *bits & !bit };
        }
    }
}

/// Queues with a positive count, and their counts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct CountedBitset {
    counts: BTreeMap<QueueId, u32>,
    pub bits: Bitset,
}

impl CountedBitset {
    pub(crate) fn one_more(&mut self, queue: QueueId) {
        let count = self.counts.entry(queue).or_insert(0);
        *count = count.saturating_add(1);
        self.bits.set(queue, true);
    }

    pub(crate) fn one_less(&mut self, queue: QueueId) {
        let Some(count) = self.counts.get_mut(&queue) else {
            return;
        };
        *count = count.saturating_sub(1);
        if *count == 0 {
            self.counts.remove(&queue);
            self.bits.set(queue, false);
        }
    }

    /// Returns true if both contain the same queues with the same counts.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.counts == other.counts && self.counts.keys().all(|queue| other.bits.contains(*queue))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }
}

/// Queues by needed memory, as its number of binary digits.
#[derive(Debug, Default, PartialEq, Eq)]
struct ByMemory {
    /// Queues of any memory.
    all: Bitset,
    /// Queues by number of digits, in order, without empty sets.
    by_digits: Vec<(u32, CountedBitset)>,
}

impl ByMemory {
    fn one_more(&mut self, digits: u32, queue: QueueId) {
        let at = self.by_digits.partition_point(|(known, _)| *known < digits);
        if self
            .by_digits
            .get(at)
            .is_none_or(|(known, _)| *known != digits)
        {
            self.by_digits
                .insert(at, (digits, CountedBitset::default()));
        }
        if let Some((_, counted)) = self.by_digits.get_mut(at) {
            counted.one_more(queue);
        }
        self.all.set(queue, true);
    }

    fn one_less(&mut self, digits: u32, queue: QueueId) {
        let Ok(at) = self
            .by_digits
            .binary_search_by_key(&digits, |(known, _)| *known)
        else {
            return;
        };
        if let Some((_, counted)) = self.by_digits.get_mut(at) {
            counted.one_less(queue);
            if counted.is_empty() {
                self.by_digits.remove(at);
            }
        }
        let has = |(_, counted): &(u32, CountedBitset)| counted.bits.contains(queue);
        if !self.by_digits.iter().any(has) {
            self.all.set(queue, false);
        }
    }

    fn add_to(&self, bits: &mut Bitset, digits_max: u32) {
        if self
            .by_digits
            .last()
            .is_none_or(|(most, _)| *most <= digits_max)
        {
            bits.add(&self.all);
            return;
        }
        let enough = |(digits, _): &&(u32, CountedBitset)| *digits <= digits_max;
        for (_, counted) in self.by_digits.iter().take_while(enough) {
            bits.add(&counted.bits);
        }
    }
}

/// Queues by a requirement that few hosts meet, then by memory.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ByNeed {
    plain: ByMemory,
    /// Queues with such a requirement, by the address of its name.
    anchored: IndexMap<usize, (Atom, ByMemory), Numbers>,
}

impl ByNeed {
    /// Adds one job with this need to a queue.
    pub(crate) fn one_more(&mut self, anchor: Option<&Atom>, digits: u32, queue: QueueId) {
        let group = match anchor {
            None => &mut self.plain,
            Some(name) => {
                let new = || (Atom::clone(name), ByMemory::default());
                &mut self.anchored.entry(address(name)).or_insert_with(new).1
            }
        };
        group.one_more(digits, queue);
    }

    /// Removes one job with this need from a queue.
    pub(crate) fn one_less(&mut self, anchor: Option<&Atom>, digits: u32, queue: QueueId) {
        let Some(name) = anchor else {
            self.plain.one_less(digits, queue);
            return;
        };
        let Some((_, group)) = self.anchored.get_mut(&address(name)) else {
            return;
        };
        group.one_less(digits, queue);
        if group.by_digits.is_empty() {
            self.anchored.swap_remove(&address(name));
        }
    }

    /// Adds the queues that need at most this much memory, and either no requirement or one of `own`.
    pub(crate) fn add_to<'a>(
        &self,
        bits: &mut Bitset,
        own: impl Iterator<Item = &'a Atom>,
        digits_max: u32,
    ) {
        self.plain.add_to(bits, digits_max);
        if self.anchored.is_empty() {
            return;
        }
        for (_, group) in own.filter_map(|name| self.anchored.get(&address(name))) {
            group.add_to(bits, digits_max);
        }
    }

    /// Panics if it differs from `other`, which was counted anew. For tests and simulation.
    pub(crate) fn check_like(&self, other: &Self) {
        let same = |a: &ByMemory, b: &ByMemory| {
            let (of_a, of_b) = (a.by_digits.iter(), b.by_digits.iter());
            let alike = of_a.zip(of_b).all(|(a, b)| a.0 == b.0 && a.1.is_like(&b.1));
            let mut union = Bitset::default();
            a.by_digits
                .iter()
                .for_each(|(_, counted)| union.add(&counted.bits));
            alike && a.by_digits.len() == b.by_digits.len() && union.is_like(&a.all)
        };
        assert!(
            same(&self.plain, &other.plain),
            "queues counted wrongly under a key"
        );
        assert_eq!(self.anchored.len(), other.anchored.len());
        for (at, (name, group)) in &other.anchored {
            assert!(
                self.anchored
                    .get(at)
                    .is_some_and(|(_, known)| same(known, group)),
                "queues that need {name} counted wrongly"
            );
        }
    }
}
