//! Tells which values stored documents leave out, and what their absence means.
#![expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]

/// Returns the default number of CPUs that a job needs.
pub(crate) fn one() -> u32 {
    1
}

pub(crate) fn is_one(number: &u32) -> bool {
    *number == 1
}

/// Returns true if 0 stands for "not specified".
pub(crate) fn is_unknown(number: &u32) -> bool {
    *number == 0
}

pub(crate) fn is_false(flag: &bool) -> bool {
    !*flag
}

pub(crate) fn is_zero(number: &u64) -> bool {
    *number == 0
}

pub(crate) fn is_no_number(number: &u16) -> bool {
    *number == 0
}
