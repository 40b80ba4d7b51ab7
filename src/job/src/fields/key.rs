//! `idempotency_key`: the name of a submit, so that it may be repeated.

use serde_json::Value;

use crate::{FieldError, IDEMPOTENCY_KEY, Spec, fields::read::refuse, units::shown};

/// The longest key, bytes.
const KEY_BYTES_MAX: usize = 256;

/// The key that a job names. `None`: it names none.
///
/// # Errors
/// It is no text of 1 to 256 bytes.
pub fn idempotency_key(spec: &Spec) -> Result<Option<String>, FieldError> {
    let key = match spec.get(IDEMPOTENCY_KEY) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(key)) => key.clone(),
        Some(Value::Number(key)) => key.to_string(),
        Some(other) => {
            return refuse(
                IDEMPOTENCY_KEY,
                format!("{} where text was expected", shown(other)),
                "use a uuid, or a name for the action",
            );
        }
    };
    check_idempotency_key(&key)?;
    Ok(Some(key))
}

/// Checks a key, wherever it was named.
///
/// # Errors
/// It has no byte or more than 256.
pub fn check_idempotency_key(key: &str) -> Result<(), FieldError> {
    if (1..=KEY_BYTES_MAX).contains(&key.len()) {
        return Ok(());
    }
    refuse(
        IDEMPOTENCY_KEY,
        format!("{} bytes; 1 to {KEY_BYTES_MAX} are allowed", key.len()),
        "use a uuid, or a name for the action",
    )
}
