//! Reads one field of a spec: checks type, length and characters. Errors name the field and the value.

use serde_json::Value;

use crate::{
    FieldError, Spec,
    fields::{
        error::Fault,
        table::{Field, Kind},
    },
    units::{is_nothing, shown},
};

/// Bytes of a name: account, queue, suite, testbox, machine, tag, device.
pub(crate) const NAME_BYTES_MAX: usize = 128;
/// Bytes of a cache directory.
pub(crate) const CACHE_DIR_BYTES_MAX: usize = 256;
/// Items of `tags`, `devices` and `cache_dirs` each.
pub(crate) const LIST_ITEMS_MAX: usize = 64;
/// Items of `target_machines`.
pub(crate) const MACHINES_MAX: usize = 1024;

/// Characters that a name may contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Charset {
    /// Anything that can be printed.
    Text,
    /// Also no `/`, and not `.` or `..`: it becomes part of paths.
    Path,
    /// Also no blanks, `@` and `,`: it becomes part of host keys.
    Machine,
}

/// An error about `field`.
pub(crate) fn refuse<T>(field: &str, problem: String, hint: &str) -> Result<T, FieldError> {
    Err(FieldError {
        field: field.to_owned(),
        problem,
        hint: hint.to_owned(),
        fault: Fault::Value,
    })
}

/// Checks a name that becomes part of paths and tables, as of an account, a queue or a host.
///
/// # Errors
/// It has other bytes than 1 to 128 of the plain ones; `what` says whose name it is.
pub fn check_name(what: &str, name: &str) -> Result<(), FieldError> {
    let good = |c: char| c.is_alphanumeric() || "._-@+~:".contains(c);
    let fits = (1..=NAME_BYTES_MAX).contains(&name.len());
    if fits && name.chars().all(good) && name != "." && name != ".." {
        return Ok(());
    }
    Err(FieldError {
        field: what.to_owned(),
        problem: format!("{} is not a name", shown(&Value::from(name))),
        hint: "1 to 128 bytes of letters, digits and ._-@+~:".to_owned(),
        fault: Fault::Name,
    })
}

/// The value of a field; `None` when it is absent, null or empty text.
pub(crate) fn present<'s>(spec: &'s Spec, field: &str) -> Option<&'s Value> {
    spec.get(field).filter(|value| !is_nothing(value))
}

/// A name; empty when nothing is said. A number counts as its digits.
pub(crate) fn name(spec: &Spec, field: &str, charset: Charset) -> Result<String, FieldError> {
    match present(spec, field) {
        None => Ok(String::new()),
        Some(value) => checked(field, value, charset, NAME_BYTES_MAX),
    }
}

/// One name out of a value.
pub(crate) fn checked(
    field: &str,
    value: &Value,
    charset: Charset,
    bytes_max: usize,
) -> Result<String, FieldError> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        other => {
            return refuse(
                field,
                format!("{} where text was expected", shown(other)),
                "write one word",
            );
        }
    };
    if text.len() > bytes_max {
        let problem = format!(
            "{} is {} bytes long; at most {bytes_max} are allowed",
            shown(value),
            text.len()
        );
        return refuse(field, problem, "use a shorter name");
    }
    let is_wrong = |c: char| {
        c.is_control()
            || (c == '/' && charset != Charset::Text)
            || ((c.is_whitespace() || c == '@' || c == ',') && charset == Charset::Machine)
    };
    if let Some(wrong) = text.chars().find(|&c| is_wrong(c)) {
        let problem = format!(
            "{} holds the character '{}'",
            shown(value),
            wrong.escape_default()
        );
        return refuse(field, problem, "use letters, digits, '-', '_' and '.'");
    }
    if text.is_empty() || (charset != Charset::Text && matches!(text.as_str(), "." | "..")) {
        return refuse(
            field,
            format!("{} is not a name", shown(value)),
            "use letters, digits, '-', '_' and '.'",
        );
    }
    Ok(text)
}

/// A list of names, or text split on commas and blanks. Nothing said is an empty list.
pub(crate) fn names(
    field: &str,
    value: Option<&Value>,
    charset: Charset,
    bytes_max: usize,
    items_max: usize,
) -> Result<Vec<String>, FieldError> {
    let words: Vec<Value>;
    let items: &[Value] = match value {
        None => &[],
        Some(Value::Array(items)) => items,
        Some(Value::String(text)) => {
            let parts = text.split(|c: char| c == ',' || c.is_whitespace());
            words = parts
                .filter(|part| !part.is_empty())
                .take(items_max + 1)
                .map(Value::from)
                .collect();
            &words
        }
        Some(number @ Value::Number(_)) => std::slice::from_ref(number),
        Some(other) => {
            let problem = format!("{} where a list of names was expected", shown(other));
            return refuse(field, problem, "write [a, b], or a,b");
        }
    };
    if items.len() > items_max {
        let problem = format!("more than {items_max} items");
        return refuse(field, problem, "name fewer");
    }
    let mut names: Vec<String> = Vec::with_capacity(items.len());
    for item in items {
        let name = checked(field, item, charset, bytes_max)?;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

/// Refuses keys of a map that mean nothing there.
pub(crate) fn known_keys(
    field: &str,
    map: &Spec,
    known: &[&str],
    example: &str,
) -> Result<(), FieldError> {
    let Some(other) = map.keys().find(|key| !known.contains(&key.as_str())) else {
        return Ok(());
    };
    let problem = format!(
        "{} is not a key of {field}",
        shown(&Value::from(other.as_str()))
    );
    refuse(field, problem, &format!("write {example}"))
}

/// A whole number within bounds, or its digits as text.
pub(crate) fn whole(field: &str, value: &Value, least: i64, most: i64) -> Result<i64, FieldError> {
    let number = match value {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    match number {
        Some(number) if (least..=most).contains(&number) => Ok(number),
        _ => {
            let problem = format!(
                "{} where a whole number from {least} to {most} was expected",
                shown(value)
            );
            refuse(field, problem, "write the number alone")
        }
    }
}

/// A whole number within the bounds of its field; `None`: nothing is said.
pub(crate) fn number(spec: &Spec, field: &str) -> Result<Option<i64>, FieldError> {
    let (least, most) = match Field::of(field).map(|field| field.kind) {
        Some(Kind::Whole(least, most)) => (least, most),
        _ => (i64::MIN, i64::MAX),
    };
    let said = present(spec, field);
    said.map(|value| whole(field, value, least, most))
        .transpose()
}

/// A yes or no; no when nothing is said.
pub(crate) fn yes(spec: &Spec, field: &str) -> Result<bool, FieldError> {
    let Some(value) = present(spec, field) else {
        return Ok(false);
    };
    match value {
        Value::Bool(yes) => Ok(*yes),
        Value::String(text) if matches!(text.trim(), "true" | "yes") => Ok(true),
        Value::String(text) if matches!(text.trim(), "false" | "no") => Ok(false),
        other => refuse(
            field,
            format!("{} where true or false was expected", shown(other)),
            "write true or false",
        ),
    }
}
