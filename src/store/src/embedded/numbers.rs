//! Converts numbers and versions to and from SQLite's.

use crate::Version;

/// Returns a number that must not be negative. A negative one is an error: the file is damaged.
pub(super) fn unsigned(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(column)?;
    u64::try_from(number).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, number))
}

/// Returns a number in SQLite's form.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Returns a version of the embedded store, where every version has term 1.
pub(super) fn version(seq: u64) -> Version {
    Version {
        primary_term: 1,
        seq_no: seq,
    }
}
