//! Sets of queues as bits, with counts: which queues have something of a kind.

use crate::ledger::QueueId;
use slotmap::Key;
use std::collections::BTreeMap;

/// Queues, each a bit.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Bits(Vec<u64>);

fn place(queue: QueueId) -> (usize, u64) {
    // The low half of a key is its slot: dense, and used by one living queue at a time.
    let slot = queue.data().as_ffi() & u64::from(u32::MAX);
    (
        usize::try_from(slot / 64).unwrap_or(usize::MAX),
        1 << (slot % 64),
    )
}

impl Bits {
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

/// Queues that have at least one of something, and how many.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    counts: BTreeMap<QueueId, u32>,
    pub bits: Bits,
}

impl Counted {
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

    /// Whether both have the same queues, as often.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.counts == other.counts && self.counts.keys().all(|queue| other.bits.contains(*queue))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }
}
