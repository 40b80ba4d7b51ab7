//! Suggests the nearest known word for a misspelt one.

use strsim::{damerau_levenshtein, osa_distance};

/// The known word that differs least from `word`, if it differs in no more than a third of its letters. Among equals the
/// first.
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let letters = word.chars().count();
    let near = known.into_iter().filter_map(|candidate| {
        let distance = damerau_levenshtein(word, candidate);
        (distance * 3 <= letters.max(candidate.chars().count())).then_some((distance, candidate))
    });
    near.min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// A word, and what tells cheaply of most others that they are not near.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Word<'w> {
    pub(crate) text: &'w str,
    letters: usize,
    /// Which letters occur, a bit for each; some share one.
    kinds: u64,
}

impl<'w> Word<'w> {
    pub(crate) fn new(text: &'w str) -> Self {
        let bit = |letter: char| 1_u64 << (u32::from(letter) % u64::BITS);
        let (letters, kinds) = text.chars().fold((0, 0), |(letters, kinds), letter| {
            (letters + 1, kinds | bit(letter))
        });
        Self {
            text,
            letters,
            kinds,
        }
    }

    /// Returns true if it is `other` with one slip: a letter too many, too few, wrong, or swapped with its neighbour.
    /// Words of nine or more letters may have two slips.
    pub(crate) fn is_slip_of(&self, other: &Word<'_>) -> bool {
        /// From so many letters on, two slips are likelier than another word.
        const LONG: usize = 9;
        let slips = if other.letters >= LONG { 2 } else { 1 };
        self.may_be_within(slips, other)
            && (1..=slips).contains(&osa_distance(self.text, other.text))
    }

    /// Returns true if it may be `other` with so many slips: each brings one letter and takes one at most. It is far
    /// cheaper than the distance.
    fn may_be_within(&self, slips: usize, other: &Word<'_>) -> bool {
        self.letters.abs_diff(other.letters) <= slips
            && (self.kinds ^ other.kinds).count_ones() as usize <= 2 * slips
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        /// Few letters, so that near words are common.
        #[test]
        fn words_that_are_near_may_be_near(a in "[a-dä]{0,12}", b in "[a-dä]{0,12}", slips in 0..6_usize) {
            if osa_distance(&a, &b) <= slips {
                proptest::prop_assert!(Word::new(&a).may_be_within(slips, &Word::new(&b)));
            }
        }
    }

    #[test]
    fn the_nearest_is_found_unless_nothing_is_near() {
        let known = ["health", "host", "stage", "submit_id"];
        assert_eq!(nearest("helth", known), Some("health"));
        assert_eq!(nearest("sumbit_id", known), Some("submit_id"));
        assert_eq!(nearest("hots", known), Some("host"));
        assert_eq!(nearest("colour", known), None);
    }

    #[test]
    fn a_slip_is_one_letter_or_two_in_a_long_word() {
        let is_slip = |a, b| Word::new(a).is_slip_of(&Word::new(b));
        assert!(is_slip("runtme", "runtime") && is_slip("need_memroy", "need_memory"));
        assert!(is_slip("targetmachine", "target_machines"));
        assert!(!is_slip("retries", "retry") && !is_slip("queue", "queue"));
    }
}
