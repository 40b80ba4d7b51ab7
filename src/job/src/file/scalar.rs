//! Types an unquoted scalar: YAML 1.1 as the lab's files use it, without its traps.
//!
//! `0644` is 420 and `1_000` is 1000. `yes`, `no`, `on`, `off`, `12:30`, `1e3` and dates stay text, because a job file
//! with `on` means the word. Numbers that do not fit stay text and are never rounded.

use serde_json::{Number, Value};

/// The value of an unquoted scalar.
pub(crate) fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => integer(text)
            .or_else(|| float(text))
            .unwrap_or_else(|| Value::String(text.to_owned())),
    }
}

/// An integer in base 10, 16 (`0x`), 8 (`0`, `0o`) or 2 (`0b`), with `_` between digits.
pub(crate) fn integer(text: &str) -> Option<Value> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text),
    };
    let (base, digits) = if let Some(rest) = digits.strip_prefix("0x") {
        (16, rest)
    } else if let Some(rest) = digits.strip_prefix("0b") {
        (2, rest)
    } else if let Some(rest) = digits.strip_prefix("0o") {
        (8, rest)
    } else if digits.len() > 1 && digits.starts_with('0') {
        (8, digits.get(1..)?)
    } else {
        (10, digits)
    };
    let clean: String = digits.chars().filter(|&c| c != '_').collect();
    if clean.is_empty() || digits.starts_with('_') || !clean.chars().all(|c| c.is_digit(base)) {
        return None;
    }
    let size = i128::from_str_radix(&clean, base).ok()?;
    let value = if negative { -size } else { size };
    if let Ok(value) = i64::try_from(value) {
        return Some(Value::from(value));
    }
    u64::try_from(value).ok().map(Value::from)
}

/// A float: needs a point, as in YAML 1.1, so that `1e3` and commit ids such as `12e4567` stay text.
pub(crate) fn float(text: &str) -> Option<Value> {
    let body = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = body
        .split_once(['e', 'E'])
        .map_or((body, None), |(m, e)| (m, Some(e)));
    let (whole, part) = mantissa.split_once('.')?;
    let digits = |t: &str| t.chars().all(|c| c.is_ascii_digit() || c == '_');
    if !digits(whole) || !digits(part) || whole.starts_with('_') || whole.len() + part.len() == 0 {
        return None;
    }
    if let Some(exponent) = exponent {
        let power = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        if power.is_empty() || !power.chars().all(|c| c.is_ascii_digit()) {
            return None;
        }
    }
    let clean: String = text.chars().filter(|&c| c != '_').collect();
    Number::from_f64(clean.parse().ok()?).map(Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn plain_scalars_mean_what_the_lab_s_files_mean() {
        for (text, value) in [
            ("", json!(null)),
            ("~", json!(null)),
            ("true", json!(true)),
            ("False", json!(false)),
            ("8", json!(8)),
            ("-8", json!(-8)),
            ("+8", json!(8)),
            ("0", json!(0)),
            ("0644", json!(420)),
            ("0o17", json!(15)),
            ("0x10", json!(16)),
            ("0b101", json!(5)),
            ("1_000", json!(1000)),
            ("5.10", json!(5.1)),
            ("-.5", json!(-0.5)),
            ("1.5e3", json!(1500.0)),
            ("18446744073709551615", json!(u64::MAX)),
        ] {
            assert_eq!(plain(text), value, "{text:?}");
        }
    }

    #[test]
    fn what_only_looks_like_a_value_stays_text() {
        let long = "9".repeat(60);
        for text in [
            "yes",
            "no",
            "on",
            "off",
            "y",
            "n",
            "12:30",
            "1e3",
            "12e4567",
            "08",
            "0x",
            "1.2.3",
            ".",
            "-",
            "+",
            "_1",
            "100%",
            "2024-01-01",
            ".inf",
            ".nan",
            "1.0e999",
            "-.",
            "0xzz",
            "1,5",
            "_.5",
            long.as_str(),
        ] {
            assert_eq!(plain(text), json!(text), "{text:?}");
        }
    }
}
