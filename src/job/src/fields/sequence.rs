//! `sequence` and `sequence_host`: jobs that run one at a time.

use serde_json::Value;

use crate::{
    FieldError, Spec,
    fields::read::{present, refuse},
    units::shown,
};

/// The longest key, bytes.
const KEY_BYTES_MAX: usize = 256;

/// The sequence that a job belongs to: jobs of one account and key run one at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequence {
    /// Its key, 1 to 256 bytes.
    pub key: String,
    /// Whether its jobs run on one host.
    pub same_host: bool,
}

impl Sequence {
    /// What a job says of it. `None`: the job belongs to no sequence.
    ///
    /// # Errors
    /// The key is no text or too long, or `sequence_host` is no known word or stands alone.
    pub(crate) fn of(spec: &Spec) -> Result<Option<Self>, FieldError> {
        const FIELD: &str = "sequence";
        let key = match present(spec, FIELD) {
            None => None,
            Some(Value::String(key)) => Some(key.clone()),
            Some(Value::Number(key)) => Some(key.to_string()),
            Some(other) => {
                return refuse(
                    FIELD,
                    format!("{} where text was expected", shown(other)),
                    "write sequence: NAME; the jobs of one name run one at a time",
                );
            }
        };
        let same_host = same_host(spec)?;
        match key {
            Some(key) if key.len() > KEY_BYTES_MAX => refuse(
                FIELD,
                format!("{} bytes; up to {KEY_BYTES_MAX} are allowed", key.len()),
                "use a shorter name, or a hash of it",
            ),
            Some(key) => Ok(Some(Self { key, same_host })),
            None if same_host => refuse(
                "sequence_host",
                "the job names no sequence".to_owned(),
                "write sequence: NAME beside it",
            ),
            None => Ok(None),
        }
    }
}

fn same_host(spec: &Spec) -> Result<bool, FieldError> {
    const FIELD: &str = "sequence_host";
    let Some(value) = present(spec, FIELD) else {
        return Ok(false);
    };
    match value.as_str() {
        Some("any") => Ok(false),
        Some("same") => Ok(true),
        _ => refuse(
            FIELD,
            format!("{} is neither same nor any", shown(value)),
            "same keeps the jobs of a sequence on one host; any is the default",
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_are_checked() {
        let read = |fields: Value| Sequence::of(fields.as_object().unwrap());
        let key = |key: &str, same_host| {
            let key = key.to_owned();
            Ok(Some(Sequence { key, same_host }))
        };
        assert_eq!(read(json!({"sequence": ""})), Ok(None));
        assert_eq!(read(json!({"sequence": 7})), key("7", false));
        let same = read(json!({"sequence": "k", "sequence_host": "same"}));
        assert_eq!(same, key("k", true));
        for (fields, word) in [
            (json!({"sequence": ["k"]}), "text was expected"),
            (json!({"sequence": "k".repeat(257)}), "257 bytes"),
            (json!({"sequence": "k", "sequence_host": "h1"}), "'h1'"),
            (json!({"sequence_host": "same"}), "names no sequence"),
        ] {
            let error = read(fields).unwrap_err();
            assert!(error.to_string().contains(word), "{error}");
        }
    }
}
