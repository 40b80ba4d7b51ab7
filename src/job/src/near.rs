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

/// Whether `a` is `b` with one slip: a letter too many, too few, wrong, or swapped with its neighbour; in words of nine
/// letters and more, two.
pub(crate) fn is_slip(a: &str, b: &str) -> bool {
    /// From so many letters on, two slips are likelier than another word.
    const LONG: usize = 9;
    let (ours, theirs) = (a.chars().count(), b.chars().count());
    let slips = if theirs >= LONG { 2 } else { 1 };
    ours.abs_diff(theirs) <= slips
        && may_be_within(slips, a, b)
        && (1..=slips).contains(&osa_distance(a, b))
}

/// Whether `a` may be `b` with so many slips, by the letters that occur: a slip brings one and takes one at most. It is
/// far cheaper than the distance.
fn may_be_within(slips: usize, a: &str, b: &str) -> bool {
    let letters = |word: &str| {
        let bit = |letter: char| 1_u64 << (u32::from(letter) % u64::BITS);
        word.chars().map(bit).fold(0, |all, bit| all | bit)
    };
    (letters(a) ^ letters(b)).count_ones() as usize <= 2 * slips
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        /// Few letters, so that near words are common.
        #[test]
        fn words_that_are_near_may_be_near(a in "[a-dä]{0,12}", b in "[a-dä]{0,12}", slips in 0..6_usize) {
            if osa_distance(&a, &b) <= slips {
                proptest::prop_assert!(may_be_within(slips, &a, &b));
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
        assert!(is_slip("runtme", "runtime") && is_slip("need_memroy", "need_memory"));
        assert!(is_slip("targetmachine", "target_machines"));
        assert!(!is_slip("retries", "retry") && !is_slip("queue", "queue"));
    }
}
