//! Amounts as people write them: memory and durations. An invalid amount is an error and never a guess.

use serde_json::Value;

/// The most memory that a job may ask for, in MB: 64 TB.
pub const MEMORY_MB_MAX: u32 = 64 * 1024 * 1024;
/// The longest duration, in seconds: ten years.
pub const DURATION_S_MAX: u64 = 10 * 365 * 86_400;

/// The value is not an amount. Holds the whole sentence: value and what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnitError(String);

/// Memory in MB, rounded up. A bare number is GB: `8`, `"8"`, `8g`, `8G`, `1.5g`, `512M`, `300MB`, `2T`.
///
/// # Errors
/// Anything else: no number, a negative one, another unit, more than [`MEMORY_MB_MAX`].
pub fn memory_mb(value: &Value) -> Result<u32, UnitError> {
    let refuse = |why: &str| {
        let shown = shown(value);
        Err(UnitError(format!(
            "{shown} is not an amount of memory{why} (expected for example 8 for 8 GB, 8g, 512M)"
        )))
    };
    let Some(text) = text_of(value) else {
        return refuse("");
    };
    let Some((number, unit)) = amount(&text) else {
        return refuse("");
    };
    let kilobytes: u128 = match unit.to_ascii_lowercase().as_str() {
        "k" | "kb" | "kib" => 1,
        "m" | "mb" | "mib" => 1024,
        "" | "g" | "gb" | "gib" => 1024 * 1024,
        "t" | "tb" | "tib" => 1024 * 1024 * 1024,
        _ => return refuse(""),
    };
    let Some(megabytes) = number.times(kilobytes).map(|kb| kb.div_ceil(1024)) else {
        return refuse(": it is too large");
    };
    match u32::try_from(megabytes) {
        Ok(megabytes) if megabytes <= MEMORY_MB_MAX => Ok(megabytes),
        _ => refuse(&format!(": more than {MEMORY_MB_MAX} MB")),
    }
}

/// A duration in seconds, rounded up; `None` when nothing is said (null or empty text). A bare number is
/// seconds: `300`, `"300"`, `300s`, `10m`, `1.5h`, `1d`, `2w`.
///
/// # Errors
/// Anything else: no number, a negative one, another unit, more than [`DURATION_S_MAX`].
pub fn duration_s(value: &Value) -> Result<Option<u64>, UnitError> {
    let refuse = |why: &str| {
        let shown = shown(value);
        Err(UnitError(format!(
            "{shown} is not a duration{why} (expected for example 300, 300s, 10m, 1h, 1d or 2w)"
        )))
    };
    if is_nothing(value) {
        return Ok(None);
    }
    let Some(text) = text_of(value) else {
        return refuse("");
    };
    let Some((number, unit)) = amount(&text) else {
        return refuse("");
    };
    let seconds: u128 = match unit {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => return refuse(""),
    };
    match number.times(seconds).map(u64::try_from) {
        Some(Ok(seconds)) if seconds <= DURATION_S_MAX => Ok(Some(seconds)),
        _ => refuse(&format!(": more than {DURATION_S_MAX} seconds")),
    }
}

/// Returns true if nothing was said: null, or text of blanks.
pub(crate) fn is_nothing(value: &Value) -> bool {
    value.is_null() || value.as_str().is_some_and(|text| text.trim().is_empty())
}

/// A value for a message, cut short.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("'{}'", crate::file::printable(text, 60)),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a map".to_owned(),
        Value::Null => "nothing".to_owned(),
        other => other.to_string(),
    }
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A decimal number without loss: `digits` / 10^`places`.
struct Decimal {
    digits: u128,
    places: u32,
}

impl Decimal {
    /// The product, rounded up; `None` when it does not fit.
    fn times(&self, factor: u128) -> Option<u128> {
        Some(
            self.digits
                .checked_mul(factor)?
                .div_ceil(10u128.checked_pow(self.places)?),
        )
    }
}

/// A number and what follows it.
fn amount(text: &str) -> Option<(Decimal, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end)?;
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    // Fifteen digits are more than any amount needs, and cannot overflow.
    if whole.is_empty() || part.contains('.') || number.ends_with('.') || number.len() > 15 {
        return None;
    }
    let digits = format!("{whole}{part}").parse().ok()?;
    Some((
        Decimal {
            digits,
            places: u32::try_from(part.len()).ok()?,
        },
        unit.trim(),
    ))
}

/// "1 job", "2 jobs": a number with its word.
pub fn counted(number: impl TryInto<u64>, one: &str, many: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    format!("{number} {}", if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn memory_is_read_in_every_spelling() {
        for (value, megabytes) in [
            (json!(8), 8192),
            (json!("8"), 8192),
            (json!("8g"), 8192),
            (json!("8G"), 8192),
            (json!(" 8 GB "), 8192),
            (json!("512M"), 512),
            (json!("300MB"), 300),
            (json!("1.5g"), 1536),
            (json!(1.5), 1536),
            (json!("1k"), 1),
            (json!("2T"), 2 * 1024 * 1024),
            (json!(0), 0),
        ] {
            assert_eq!(memory_mb(&value), Ok(megabytes), "{value}");
        }
    }

    #[test]
    fn nonsense_is_no_memory_and_no_duration() {
        for value in [
            json!(-1),
            json!("-8g"),
            json!("8x"),
            json!("g"),
            json!("8gg"),
            json!("1.2.3g"),
            json!("1."),
            json!(".5"),
            json!("99999999999999999999g"),
            json!("999999999t"),
            json!(1e300),
            json!("8 apples"),
            json!("50%"),
            json!("٨g"),
            json!(true),
            json!([8]),
            json!({"a": 1}),
        ] {
            assert!(memory_mb(&value).is_err(), "memory {value}");
            assert!(duration_s(&value).is_err(), "duration {value}");
        }
        assert!(memory_mb(&json!(null)).is_err());
        assert!(memory_mb(&json!("")).is_err());
    }

    #[test]
    fn durations_are_read_in_every_spelling() {
        for (value, seconds) in [
            (json!(null), None),
            (json!(""), None),
            (json!(300), Some(300)),
            (json!("300"), Some(300)),
            (json!("30s"), Some(30)),
            (json!("10m"), Some(600)),
            (json!("1.5h"), Some(5400)),
            (json!("1d"), Some(86_400)),
            (json!("2w"), Some(1_209_600)),
            (json!("100d"), Some(8_640_000)),
            (json!("0.2s"), Some(1)),
            (json!(0), Some(0)),
        ] {
            assert_eq!(duration_s(&value), Ok(seconds), "{value}");
        }
        assert!(duration_s(&json!("20000d")).is_err());
        assert!(duration_s(&json!("1M")).is_err());
    }
}
