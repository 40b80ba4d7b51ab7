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

/// `1500ms`, `90s`, `10m`, `2h`, `7d`, `1w` as milliseconds; a bare number is seconds.
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

/// `8` (GB), `8g`, `512M` as MB, as job files have it.
pub(crate) fn memory_mb(text: &str) -> Result<u32, String> {
    fairlead_job::units::memory_mb(&Value::from(text)).map_err(|error| error.to_string())
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
    fn memory_is_as_in_job_files() {
        assert_eq!(memory_mb("8"), Ok(8192));
        assert_eq!(memory_mb("512M"), Ok(512));
        assert!(memory_mb("lots").is_err());
    }
}
