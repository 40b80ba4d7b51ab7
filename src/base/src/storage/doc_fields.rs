//! How fields of small documents are read and written where serde has no word for it.

use serde::{Deserialize, Deserializer};

/// Reads a field that is absent or has a value. Null is malformed, and does not stand for absence. Use with
/// `#[serde(default)]`.
pub fn no_null<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    field: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(field).map(Some)
}

/// Returns true for 0, which is left out. Use with `skip_serializing_if`.
pub fn is_zero(number: &u64) -> bool {
    *number == 0
}
