//! Tracks which changes of the store this replica knows of, by their sequence numbers, and which it must read.
//!
//! Four replicas write to one store. Each must learn the changes of the others: a job was submitted, claimed, or ended.
//! Replicas tell each other their writes (*hints*), but a hint may be lost. If each replica read all changes every
//! second, that would cost the store more than the claims themselves. And it would bring almost only changes that are
//! known.
//!
//! Elasticsearch numbers the changes of a shard without gaps. The replica's own writes and the hints bear these
//! numbers. So a number that is missing among them is a change that nobody told, and only such are read. For example,
//! everything up to 9 is known. Then 10, 13 and 20 are told, and searches see changes up to 16:
//!
//! ```text
//! number   10  11  12  13  14  15  16 | 17  18  19  20
//! told     x           x              |             x
//! read now     11..12      14 .. 16   | later: no search can find these yet
//! ```
//!
//! Missing numbers are read three times: when they are found missing, in the next round, and ten seconds later. A
//! single read is not enough, because a change may become visible long after a later one. A number that is still
//! missing after the third read is given up. Such numbers exist: they belonged to writes that were on their way when a
//! primary fell.
//!
//! A new primary has all that was acknowledged, and uses greater numbers anew. Its term is greater than that of the old
//! one. So when the term rises, all numbers above the last acknowledged one are missing again, even if a search found
//! them.
//!
//! Limits:
//!
//! - At most 200 ranges of missing numbers are kept apart for each read. Beyond that, known numbers between them are
//!   read.
//! - In an index of several shards a number does not tell its shard. Then all changes are missing, and all are read.
//! - A late or missed change costs time and never a job. No decision relies on this module alone.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use fairlead_dispatch::Millis;
use fairlead_store::{ChangeMark, ChangeRanges, Version};
use parking_lot::Mutex;

/// Delay before missing numbers are read for the last time, ms. A change may become visible long after a later one.
const AGAIN_MS: u64 = 10_000;
/// Number of reads of missing numbers: at once, in the next round, and after [`AGAIN_MS`].
const READS: u8 = 3;
/// Maximum number of separate ranges of missing numbers. Beyond it, known numbers between them are read as well.
const RANGES_MAX: usize = 200;

/// Ranges of numbers, by their first number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// Adds a range behind all others.
    fn push(&mut self, first: u64, last: u64) {
        if self.0.len() >= RANGES_MAX
            && let Some(mut final_one) = self.0.last_entry()
        {
            *final_one.get_mut() = last;
        } else {
            self.0.insert(first, last);
        }
    }

    /// Removes a number, unless splitting its range would exceed the limit of ranges.
    fn remove(&mut self, number: u64) {
        let Some((&first, &last)) = self.0.range(..=number).next_back() else {
            return;
        };
        let splits = first < number && number < last;
        if number > last || (splits && self.0.len() >= RANGES_MAX) {
            return;
        }
        self.0.remove(&first);
        if first < number {
            self.0.insert(first, number - 1);
        }
        if number < last {
            self.0.insert(number + 1, last);
        }
    }

    /// Removes and returns all numbers up to `most`.
    fn take_until(&mut self, most: u64) -> Self {
        let behind = match most.checked_add(1) {
            Some(next) => self.0.split_off(&next),
            None => BTreeMap::new(),
        };
        let mut taken = std::mem::replace(&mut self.0, behind);
        if let Some(mut final_one) = taken.last_entry()
            && *final_one.get() > most
        {
            let last = std::mem::replace(final_one.get_mut(), most);
            self.0.insert(most + 1, last);
        }
        Self(taken)
    }
}

/// Missing numbers that are read together.
#[derive(Debug)]
struct Missing {
    since: Millis,
    reads: u8,
    ranges: Ranges,
}

impl Missing {
    fn is_due(&self, now: Millis) -> bool {
        self.reads + 1 < READS || now.0.saturating_sub(self.since.0) >= AGAIN_MS
    }
}

/// The changes of one place.
#[derive(Debug, Default)]
struct Track {
    /// Greatest term of an acknowledged write.
    term: u64,
    /// Greatest number of an acknowledged write.
    acknowledged: Option<u64>,
    /// First number of which nothing is known.
    next: u64,
    /// Missing numbers that no search can find yet.
    ahead: Ranges,
    /// Missing numbers that must be read, oldest first.
    missing: VecDeque<Missing>,
}

impl Track {
    /// Marks a number as known, from a write or a search.
    fn know(&mut self, number: u64) {
        if number >= self.next {
            if number > self.next {
                self.ahead.push(self.next, number - 1);
            }
            self.next = number + 1;
            return;
        }
        self.ahead.remove(number);
        for missing in &mut self.missing {
            missing.ranges.remove(number);
        }
    }

    /// Notes a write that the store acknowledged to this replica or to a peer.
    fn acknowledge(&mut self, version: Version) {
        if version.primary_term > self.term {
            if self.term > 0 {
                self.promoted();
            }
            self.term = version.primary_term;
        }
        self.know(version.seq_no);
        self.acknowledged = self.acknowledged.max(Some(version.seq_no));
    }

    /// Notes that another primary numbers the changes from now on. It has every acknowledged write, but reuses greater
    /// numbers, even those that a search saw.
    fn promoted(&mut self) {
        let kept = self.acknowledged.map_or(0, |number| number + 1);
        self.next = self.next.min(kept);
        if let Some(last) = self.acknowledged {
            self.ahead = self.ahead.take_until(last);
            for missing in &mut self.missing {
                missing.ranges = missing.ranges.take_until(last);
            }
        }
    }

    /// Notes that searches see changes up to `last`.
    fn visible(&mut self, last: u64, now: Millis) {
        if last >= self.next {
            self.ahead.push(self.next, last);
            self.next = last + 1;
        }
        let ranges = self.ahead.take_until(last);
        if !ranges.0.is_empty() {
            self.missing.push_back(Missing {
                since: now,
                reads: 0,
                ranges,
            });
        }
        self.missing.retain(|missing| !missing.ranges.0.is_empty());
    }

    /// Returns the ranges to read now.
    fn due(&self, now: Millis) -> Vec<(u64, u64)> {
        let due = self.missing.iter().filter(|missing| missing.is_due(now));
        let mut ranges: Vec<(u64, u64)> = due
            .flat_map(|missing| missing.ranges.0.iter().map(|(first, last)| (*first, *last)))
            .collect();
        ranges.sort_unstable();
        ranges
    }

    /// Notes that the due ranges were read, completely or up to `end`.
    fn was_read(&mut self, now: Millis, end: Option<u64>) {
        let mut unread = Vec::new();
        for missing in self.missing.iter_mut().filter(|one| one.is_due(now)) {
            if let Some(end) = end {
                let read = missing.ranges.take_until(end);
                unread.push(Missing {
                    ranges: std::mem::replace(&mut missing.ranges, read),
                    ..*missing
                });
            }
            missing.reads += 1;
        }
        self.missing.extend(unread);
        self.missing
            .retain(|one| one.reads < READS && !one.ranges.0.is_empty());
    }
}

/// The changes of all places.
#[derive(Debug, Default)]
pub struct Feed {
    tracks: Mutex<BTreeMap<Arc<str>, Track>>,
    /// Time of the last complete read on this replica's clock, ms. 0: never.
    caught_up_ms: AtomicU64,
}

impl Feed {
    /// Marks all numbers up to these marks as known or irrelevant.
    pub fn begin(&self, marks: &ChangeMark) {
        let mut all = self.tracks.lock();
        for (place, last) in &marks.0 {
            all.entry(place.as_str().into()).or_default().next = last + 1;
        }
    }

    /// Notes a write that the store acknowledged in this place, to this replica or a peer. Its effects are known here.
    pub fn acknowledge(&self, place: &Arc<str>, version: Version) {
        let mut all = self.tracks.lock();
        let track = match all.get_mut(place) {
            Some(track) => track,
            None => all.entry(Arc::clone(place)).or_default(),
        };
        track.acknowledge(version);
    }

    /// Notes that all changes visible to searches at this time are known here.
    pub fn caught_up(&self, at: Millis) {
        self.caught_up_ms.fetch_max(at.0, Ordering::Relaxed);
    }

    /// Returns the time since all changes were known here, ms. `None`: they never were.
    pub fn lag_ms(&self, now: Millis) -> Option<u64> {
        let at_ms = self.caught_up_ms.load(Ordering::Relaxed);
        (at_ms > 0).then(|| now.0.saturating_sub(at_ms))
    }

    /// Returns the changes to read now, given that searches see changes up to these marks.
    pub fn due(&self, visible: &ChangeMark, now: Millis) -> ChangeRanges {
        let mut all = self.tracks.lock();
        all.retain(|place, _| visible.0.contains_key(&**place));
        let each = visible.0.iter().map(|(place, last)| {
            let track = all.entry(place.as_str().into()).or_default();
            track.visible(*last, now);
            (place.clone(), track.due(now))
        });
        each.filter(|(_, ranges)| !ranges.is_empty()).collect()
    }

    /// Notes that the answer of [`Self::due`] at this time was read, completely or up to these marks.
    pub fn was_read(&self, now: Millis, ends: Option<&ChangeMark>) {
        let mut all = self.tracks.lock();
        for (place, track) in &mut *all {
            let end = ends.map(|ends| ends.0.get(&**place).copied().unwrap_or(0));
            track.was_read(now, end);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const PLACE: &str = "p";

    fn visible(last: u64) -> ChangeMark {
        ChangeMark([(PLACE.to_owned(), last)].into())
    }

    fn at(primary_term: u64, seq_no: u64) -> Version {
        Version {
            primary_term,
            seq_no,
        }
    }

    /// Reads what is due.
    fn read(feed: &Feed, last: u64, now: u64) -> Vec<(u64, u64)> {
        let due = feed.due(&visible(last), Millis(now)).remove(PLACE);
        feed.was_read(Millis(now), None);
        due.unwrap_or_default()
    }

    fn began(last: u64) -> (Feed, Arc<str>) {
        let feed = Feed::default();
        feed.begin(&visible(last));
        (feed, PLACE.into())
    }

    #[test]
    fn what_is_told_in_any_order_is_not_read() {
        let (feed, place) = began(9);
        for number in [12, 10, 14, 11, 13] {
            feed.acknowledge(&place, at(1, number));
        }
        assert_eq!(read(&feed, 14, 0), []);
        assert_eq!(read(&feed, 14, 60_000), []);
    }

    #[test]
    fn what_nobody_told_is_read_three_times() {
        let (feed, place) = began(9);
        for number in [10, 13, 20] {
            feed.acknowledge(&place, at(1, number));
        }
        // No search can find 17 yet.
        assert_eq!(read(&feed, 16, 0), [(11, 12), (14, 16)]);
        feed.acknowledge(&place, at(1, 15));
        assert_eq!(
            read(&feed, 21, 1_000),
            [(11, 12), (14, 14), (16, 16), (17, 19), (21, 21)]
        );
        assert_eq!(read(&feed, 21, 2_000), [(17, 19), (21, 21)]);
        assert_eq!(read(&feed, 21, 3_000), []);
        assert_eq!(read(&feed, 21, 10_000), [(11, 12), (14, 14), (16, 16)]);
        assert_eq!(read(&feed, 21, 12_000), [(17, 19), (21, 21)]);
        assert_eq!(read(&feed, 21, 60_000), []);
    }

    #[test]
    fn a_failed_read_is_repeated() {
        let (feed, _) = began(9);
        for now in [0, 1, 2] {
            let due = feed.due(&visible(10), Millis(now));
            assert_eq!(due[PLACE], [(10, 10)]);
        }
    }

    #[test]
    fn what_was_left_of_many_is_read_next() {
        let (feed, _) = began(9);
        feed.due(&visible(99), Millis(0));
        feed.was_read(Millis(0), Some(&visible(40)));
        feed.was_read(Millis(0), Some(&visible(40)));
        assert_eq!(read(&feed, 99, 1), [(41, 99)]);
        assert_eq!(read(&feed, 99, 20_000), [(10, 40), (41, 99)]);
    }

    #[test]
    fn numbers_that_another_primary_uses_anew_are_read() {
        let (feed, place) = began(9);
        feed.acknowledge(&place, at(1, 10));
        // A search saw 11 and 12 of a primary that was cut off.
        assert_eq!(read(&feed, 12, 0), [(11, 12)]);
        for now in [1, 10, 20] {
            read(&feed, 12, now * 1_000);
        }
        assert_eq!(read(&feed, 12, 30_000), []);
        feed.acknowledge(&place, at(2, 13));
        assert_eq!(read(&feed, 13, 31_000), [(11, 12)]);
    }

    #[test]
    fn a_place_that_is_gone_is_forgotten_and_a_new_one_is_read_from_its_beginning() {
        let (feed, place) = began(9);
        feed.acknowledge(&place, at(1, 30));
        assert!(feed.due(&ChangeMark::default(), Millis(0)).is_empty());
        assert_eq!(read(&feed, 5, 0), [(0, 5)]);
    }

    #[test]
    fn many_holes_take_bounded_memory_and_all_of_them_are_read() {
        let (feed, place) = began(0);
        for number in (2..10_000).step_by(2) {
            feed.acknowledge(&place, at(1, number));
        }
        let due = read(&feed, 10_000, 0);
        assert!(due.len() <= RANGES_MAX, "{}", due.len());
        let is_in = |number: u64| {
            due.iter()
                .any(|(first, last)| (*first..=*last).contains(&number))
        };
        assert!((1..10_000).step_by(2).all(is_in));
    }

    proptest! {
        /// Checks that a change that was not told is read after it became visible, for any changes told in any order.
        #[test]
        fn every_change_is_told_or_read(
            told in proptest::collection::vec((0..200_u64, any::<bool>()), 0..300),
            looks in 1..20_u64,
        ) {
            let (feed, place) = began(0);
            let (mut known, mut done): (BTreeSet<u64>, _) = (BTreeSet::new(), 0);
            let step = told.len() / usize::try_from(looks).unwrap_or(1) + 1;
            let mut now = 0;
            for (n, (number, is_told)) in told.iter().enumerate() {
                if *is_told && *number > 0 {
                    feed.acknowledge(&place, at(1, *number));
                    known.insert(*number);
                }
                if n % step == 0 {
                    done += 7;
                    now += 1_000;
                    for (first, last) in read(&feed, done, now) {
                        known.extend(first..=last);
                    }
                }
            }
            for (first, last) in read(&feed, 200, now + 1_000) {
                known.extend(first..=last);
            }
            prop_assert!((1..=200).all(|number| known.contains(&number)), "{known:?}");
        }
    }
}
