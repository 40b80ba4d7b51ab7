//! Tells which values stored documents leave out, and what their absence means.
#![expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]

/// The CPUs that a job needs that does not say.
pub(crate) fn one() -> u32 {
    1
}

pub(crate) fn is_one(number: &u32) -> bool {
    *number == 1
}

/// Whether a count stands for one that nobody said.
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
