//! Tables of figures, printed row by row.

use std::{
    fmt::Display,
    io::{self, Write},
    time::Duration,
};

/// Prints a line. A closed output is no error.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}

/// Prints the head of a table.
pub(crate) fn head(columns: &[&str]) {
    say(&format!("| {} |", columns.join(" | ")));
    say(&format!("|{}", "---|".repeat(columns.len())));
}

/// Prints one row.
pub(crate) fn row(cells: &[&dyn Display]) {
    let cells: Vec<String> = cells.iter().map(|cell| format!(" {cell} |")).collect();
    say(&format!("|{}", cells.concat()));
}

/// Returns the value at this per mille of the sorted values; 1,000 is the maximum. Returns zero if there are none.
pub(crate) fn permille<T: Copy + Default + Ord>(values: &[T], permille: usize) -> T {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let at = (sorted.len() * permille / 1_000).min(sorted.len().saturating_sub(1));
    sorted.get(at).copied().unwrap_or_default()
}

/// Returns such a value, ms.
pub(crate) fn permille_ms(times: &[Duration], nth: usize) -> u128 {
    permille(times, nth).as_millis()
}

/// Converts a count to a floating-point number.
pub(crate) fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_their_place() {
        assert_eq!(permille(&[3, 1, 2, 4], 0), 1);
        assert_eq!(permille(&[3, 1, 2, 4], 500), 3);
        assert_eq!(permille(&[3, 1, 2, 4], 1_000), 4);
        assert_eq!(permille(&[0; 0], 500), 0);
        assert_eq!(permille_ms(&[Duration::from_secs(2)], 990), 2_000);
    }
}
