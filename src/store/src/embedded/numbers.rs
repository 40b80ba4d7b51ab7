//! Converts numbers and versions to and from SQLite's.

use crate::Version;

/// A number that is never negative here; one that is means damage.
pub(super) fn unsigned(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(column)?;
    u64::try_from(number).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, number))
}

/// A number as SQLite has it.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Every version of the embedded store is of term 1.
pub(super) fn version(seq: u64) -> Version {
    Version {
        primary_term: 1,
        seq_no: seq,
    }
}
