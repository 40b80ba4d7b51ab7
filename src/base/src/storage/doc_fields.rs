//! How fields of small documents are read and written where serde has no word for it.

use serde::{Deserialize, Deserializer};

/// A field that is absent or has a value: null is malformed, and does not stand for absence. To be used with
/// `#[serde(default)]`.
pub fn no_null<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    field: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(field).map(Some)
}

/// A number that is left out where it is 0. To be used with `skip_serializing_if`.
pub fn is_zero(number: &u64) -> bool {
    *number == 0
}
