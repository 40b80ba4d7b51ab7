//! Budget of one call for patterns: the number to compile, and the work of matching.

use std::cell::Cell;

use super::limits::{PATTERN_WORK_MAX, PATTERNS_MAX};

/// Work of one call's templates on patterns.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    patterns: Cell<usize>,
    work: Cell<u64>,
}

impl Budget {
    /// Counts one more pattern; false when there are too many.
    pub(crate) fn admits_pattern(&self) -> bool {
        self.patterns.set(self.patterns.get().saturating_add(1));
        self.patterns.get() <= PATTERNS_MAX
    }

    /// Counts more matching; false when it is too much.
    pub(crate) fn admits_work(&self, work: u64) -> bool {
        self.work.set(self.work.get().saturating_add(work));
        self.work.get() <= PATTERN_WORK_MAX
    }
}
