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
    let slips = if b.chars().count() >= LONG { 2 } else { 1 };
    a.chars().count().abs_diff(b.chars().count()) <= slips
        && (1..=slips).contains(&osa_distance(a, b))
}

#[cfg(test)]
mod tests {
    use super::*;

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
