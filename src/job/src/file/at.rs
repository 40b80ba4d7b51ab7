//! A place in the files of one call: file, line and column.

/// A place: number of the file, line and column from 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct At {
    pub(crate) file: u32,
    pub(crate) line: u32,
    pub(crate) column: u32,
}
