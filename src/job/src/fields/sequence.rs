//! `sequence`, `sequence_host` and `concurrency`: how many jobs of one name run beside each other.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    FieldError, Spec,
    fields::read::{known_keys, present, refuse},
    units::shown,
};

/// The longest key, bytes.
const KEY_BYTES_MAX: usize = 256;
/// The most jobs of one group that may run beside each other.
pub const CONCURRENCY_MAX: u16 = 500;
/// The most jobs of one group that may start in a minute.
pub const PER_MINUTE_MAX: u16 = 1000;

const CONCURRENCY: &str = "concurrency";
const EXAMPLE: &str =
    "concurrency: NAME, or concurrency: {group: NAME, limit: 2, per_minute: 10, replace: waiting}";

/// Which older jobs of its group a job replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Replace {
    /// Those that wait for a testbox: they are cancelled.
    Waiting,
    /// Those that run, too: they are stopped.
    All,
}

/// The sequence that a job belongs to: so many jobs of one account and key run beside each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequence {
    /// Its key, 1 to 256 bytes.
    pub key: String,
    /// True if its jobs run on one host.
    pub same_host: bool,
    /// This job begins only while fewer than so many others run, 1 to [`CONCURRENCY_MAX`]; of a `sequence` 1.
    pub limit: u16,
    /// This job begins only if fewer than so many began within the last minute, 1 to [`PER_MINUTE_MAX`]; 0: whenever.
    pub per_minute: u16,
    /// Which older jobs it replaces; none: none.
    pub replace: Option<Replace>,
}

impl Sequence {
    /// Reads the sequence of a job. `None`: the job belongs to no sequence.
    ///
    /// # Errors
    /// Fails if the key is no text or too long, a number is out of range, or a word is unknown. Fails if
    /// `sequence_host` stands without a sequence, or `sequence` beside `concurrency`.
    pub(crate) fn of(spec: &Spec) -> Result<Option<Self>, FieldError> {
        const FIELD: &str = "sequence";
        let key = key(present(spec, FIELD), FIELD)?;
        let same_host = same_host(spec)?;
        if let Some(concurrency) = Self::of_group(spec)? {
            return if key.is_some() {
                refuse(
                    CONCURRENCY,
                    "concurrency and sequence exclude each other".to_owned(),
                    "a sequence is a concurrency of one: keep one of both",
                )
            } else if same_host {
                refuse(
                    "sequence_host",
                    "the job names no sequence".to_owned(),
                    "jobs that run beside each other run on any host: omit it, or use sequence",
                )
            } else {
                Ok(Some(concurrency))
            };
        }
        match key {
            Some(key) => Ok(Some(Self {
                same_host,
                ..Self::named(key)
            })),
            None if same_host => refuse(
                "sequence_host",
                "the job names no sequence".to_owned(),
                "write sequence: NAME beside it",
            ),
            None => Ok(None),
        }
    }

    fn named(key: String) -> Self {
        Self {
            key,
            same_host: false,
            limit: 1,
            per_minute: 0,
            replace: None,
        }
    }

    /// Reads `concurrency`.
    fn of_group(spec: &Spec) -> Result<Option<Self>, FieldError> {
        const KEYS: [&str; 4] = ["group", "limit", "per_minute", "replace"];
        let map = match present(spec, CONCURRENCY) {
            None => return Ok(None),
            Some(Value::Object(map)) => map,
            other => return Ok(key(other, CONCURRENCY)?.map(Self::named)),
        };
        known_keys(CONCURRENCY, map, &KEYS, EXAMPLE)?;
        let Some(key) = key(present(map, "group"), "concurrency.group")? else {
            return refuse(CONCURRENCY, "group is missing".to_owned(), EXAMPLE);
        };
        let per_minute = number(map, "per_minute", PER_MINUTE_MAX)?;
        let limit = number(map, "limit", CONCURRENCY_MAX)?;
        let usual = if per_minute.is_some() {
            CONCURRENCY_MAX
        } else {
            1
        };
        Ok(Some(Self {
            limit: limit.unwrap_or(usual),
            per_minute: per_minute.unwrap_or(0),
            replace: replace(map)?,
            ..Self::named(key)
        }))
    }
}

fn key(value: Option<&Value>, field: &'static str) -> Result<Option<String>, FieldError> {
    let key = match value {
        None => return Ok(None),
        Some(Value::String(key)) => key.clone(),
        Some(Value::Number(key)) => key.to_string(),
        Some(other) => {
            return refuse(
                field,
                format!("{} where text was expected", shown(other)),
                "write a name; the jobs of one name wait for each other",
            );
        }
    };
    if key.len() > KEY_BYTES_MAX {
        return refuse(
            field,
            format!("{} bytes; up to {KEY_BYTES_MAX} are allowed", key.len()),
            "use a shorter name, or a hash of it",
        );
    }
    Ok(Some(key))
}

/// A number from 1 to `most`.
fn number(map: &Map<String, Value>, name: &str, most: u16) -> Result<Option<u16>, FieldError> {
    let Some(value) = present(map, name) else {
        return Ok(None);
    };
    let number = value.as_u64().and_then(|number| u16::try_from(number).ok());
    match number.filter(|number| (1..=most).contains(number)) {
        Some(number) => Ok(Some(number)),
        None => refuse(
            &format!("{CONCURRENCY}.{name}"),
            format!("{} is not from 1 to {most}", shown(value)),
            EXAMPLE,
        ),
    }
}

fn replace(map: &Map<String, Value>) -> Result<Option<Replace>, FieldError> {
    match present(map, "replace") {
        None | Some(Value::Bool(false)) => Ok(None),
        Some(Value::Bool(true)) => Ok(Some(Replace::All)),
        Some(Value::String(word)) if word == "all" => Ok(Some(Replace::All)),
        Some(Value::String(word)) if word == "waiting" => Ok(Some(Replace::Waiting)),
        Some(other) => refuse(
            "concurrency.replace",
            format!("{} is none of waiting, all, true, false", shown(other)),
            "waiting cancels older jobs that wait; all stops those that run, too",
        ),
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
            Ok(Some(Sequence {
                same_host,
                ..Sequence::named(key)
            }))
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

    #[test]
    fn a_concurrency_is_a_name_or_a_map() {
        let read = |value: Value| {
            let fields = json!({ "concurrency": value });
            Sequence::of(fields.as_object().unwrap())
        };
        let plain = Sequence::named("g".to_owned());
        assert_eq!(read(json!("g")), Ok(Some(plain.clone())));
        assert_eq!(read(json!({"group": "g"})), Ok(Some(plain.clone())));
        let rated = read(json!({"group": "g", "per_minute": 10}))
            .unwrap()
            .unwrap();
        assert_eq!((rated.limit, rated.per_minute), (CONCURRENCY_MAX, 10));
        let all = json!({"group": "g", "limit": 3, "per_minute": 1000, "replace": true});
        let all = read(all).unwrap().unwrap();
        let wanted = Sequence {
            limit: 3,
            per_minute: 1000,
            replace: Some(Replace::All),
            ..plain
        };
        assert_eq!(all, wanted);
        for (wrong, field) in [
            (json!({}), "concurrency"),
            (json!(["g"]), "concurrency"),
            (json!({"group": "g", "max": 3}), "concurrency"),
            (json!({"group": "g", "limit": 0}), "concurrency.limit"),
            (json!({"group": "g", "limit": 501}), "concurrency.limit"),
            (
                json!({"group": "g", "per_minute": "x"}),
                "concurrency.per_minute",
            ),
            (
                json!({"group": "g", "replace": "old"}),
                "concurrency.replace",
            ),
            (json!({"group": "g".repeat(257)}), "concurrency.group"),
        ] {
            let error = read(wrong.clone()).unwrap_err();
            assert_eq!(error.field, field, "{wrong}: {error:?}");
        }
        for beside in [json!({"sequence": "k"}), json!({"sequence_host": "same"})] {
            let mut fields = beside.as_object().unwrap().clone();
            fields.insert("concurrency".to_owned(), json!("g"));
            assert!(Sequence::of(&fields).is_err(), "{beside}");
        }
    }
}
