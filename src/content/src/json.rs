//! JSON as objects hold it.

use bytes::Bytes;
use serde::Serialize;

use crate::ContentError;

/// The JSON of a value.
pub(crate) fn json(value: &impl Serialize) -> Result<Bytes, ContentError> {
    let bytes = serde_json::to_vec(value).map_err(|error| ContentError::Bug(error.to_string()))?;
    Ok(bytes.into())
}
