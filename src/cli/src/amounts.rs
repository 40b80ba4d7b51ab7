//! Reads amounts of the command line: lengths of time, memory.

use serde_json::Value;

const UNITS: [(&str, u64); 7] = [
    ("ms", 1),
    ("s", 1000),
    ("m", 60_000),
    ("min", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
    ("w", 604_800_000),
];

/// Parses `1500ms`, `90s`, `10m`, `2h`, `7d` or `1w` to milliseconds. A bare number is seconds.
pub(crate) fn length_ms(text: &str) -> Result<u64, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "" => Some(1000),
        _ => UNITS
            .iter()
            .find(|(name, _)| *name == unit)
            .map(|(_, factor)| *factor),
    };
    number
        .parse::<u64>()
        .ok()
        .zip(factor)
        .and_then(|(number, factor)| number.checked_mul(factor))
        .ok_or_else(|| {
            "expected a number with ms, s, m, h, d or w, for example 90s or 2h".to_owned()
        })
}

/// Parses `8` (GB), `8g` or `512M` to MB, as in job files.
pub(crate) fn memory_mb(text: &str) -> Result<u32, String> {
    fairlead_job::units::memory_mb(&Value::from(text)).map_err(|error| error.to_string())
}

/// Parses `5%` or `2.5%` to per mille.
pub(crate) fn permille(text: &str) -> Result<u16, String> {
    let number = text.strip_suffix('%').map(|number| {
        let (whole, tenths) = number.split_once('.').unwrap_or((number, "0"));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let good = is_number(whole) && is_number(tenths) && tenths.len() == 1;
        let parsed = whole.parse::<u16>().ok().zip(tenths.parse::<u16>().ok());
        parsed.filter(|_| good)
    });
    let (whole, tenths) = number
        .flatten()
        .ok_or("expected a share such as 5% or 2.5%")?;
    let share = whole
        .checked_mul(10)
        .and_then(|ten| ten.checked_add(tenths));
    share.ok_or_else(|| "expected at most 50%".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, ms) in [
            ("90", 90_000),
            ("1500ms", 1500),
            ("90s", 90_000),
            ("2h", 7_200_000),
            ("1w", 604_800_000),
        ] {
            assert_eq!(length_ms(text), Ok(ms));
        }
        for text in [
            "",
            "h",
            "-1s",
            "1.5h",
            "99999999999999999d",
            "1y",
            "1 s",
            "+1",
        ] {
            assert!(length_ms(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shares_are_in_percent() {
        for (text, share) in [("5%", 50), ("2.5%", 25), ("0%", 0), ("50.0%", 500)] {
            assert_eq!(permille(text), Ok(share));
        }
        for text in ["5", "%", "-1%", "1.25%", ".5%", "5.%", "9999%", "x%"] {
            assert!(permille(text).is_err(), "{text}");
        }
    }

    #[test]
    fn memory_is_as_in_job_files() {
        assert_eq!(memory_mb("8"), Ok(8192));
        assert_eq!(memory_mb("512M"), Ok(512));
        assert!(memory_mb("lots").is_err());
    }
}
