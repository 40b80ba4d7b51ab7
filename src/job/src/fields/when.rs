//! Times as people write them: a moment, or a duration from now.

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};
use serde_json::Value;

use crate::{
    FieldError, Spec,
    fields::read::{present, refuse},
    units::{duration_s, shown},
};

/// A time that a job names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// So many seconds after its submit.
    After(u64),
    /// A moment, UTC epoch milliseconds.
    At(u64),
}

impl When {
    /// Reads `+2h`, `2026-11-22T05:00:00+08:00`, or `2026-11-22 05:00`, which is UTC. `None`: it is not a time.
    pub fn parse(text: &str) -> Option<Self> {
        read(text.trim())
    }

    /// The moment for a job that is submitted at `submit_ms`, UTC epoch milliseconds.
    pub fn moment_ms(self, submit_ms: u64) -> u64 {
        match self {
            Self::After(seconds) => submit_ms.saturating_add(seconds.saturating_mul(1000)),
            Self::At(ms) => ms,
        }
    }
}

/// When a job may begin and must be over, UTC epoch milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// Not before; 0: at once.
    pub start_ms: u64,
    /// Over by; 0: no such time.
    pub finish_by_ms: u64,
}

impl Times {
    /// The times of a job that is submitted at `now_ms`.
    pub(crate) fn of(
        start: Option<When>,
        deadline: Option<When>,
        now_ms: u64,
    ) -> Result<Self, FieldError> {
        let moment = |when: Option<When>| when.map_or(0, |when| when.moment_ms(now_ms));
        let (start_ms, finish_by_ms) = (moment(start), moment(deadline));
        if deadline.is_some() && finish_by_ms <= start_ms.max(now_ms) {
            let after = if start_ms > now_ms {
                "its start_at"
            } else {
                "now"
            };
            return refuse(
                "deadline",
                format!("{} is not after {after}", utc_text(finish_by_ms)),
                "set a later deadline, or omit it",
            );
        }
        Ok(Self {
            // A time that has passed is no reason to wait.
            start_ms: if start_ms > now_ms { start_ms } else { 0 },
            finish_by_ms,
        })
    }
}

/// `2026-11-21T02:36:11+0000`, as compass-ci writes times, but with the true zone.
pub fn utc_text(ms: u64) -> String {
    let moment = Timestamp::from_millisecond(i64::try_from(ms).unwrap_or(0));
    let text = moment.map(|moment| moment.strftime("%Y-%m-%dT%H:%M:%S+0000").to_string());
    text.unwrap_or_default()
}

/// A time in a field: `+2h`, `2026-11-22T05:00:00+08:00`, or `2026-11-22 05:00`, which is UTC. `None` when nothing
/// is said.
///
/// # Errors
/// Anything else, with the value.
pub(crate) fn when(spec: &Spec, field: &str) -> Result<Option<When>, FieldError> {
    let Some(value) = present(spec, field) else {
        return Ok(None);
    };
    match value.as_str().and_then(When::parse) {
        Some(when) => Ok(Some(when)),
        None => refuse(
            field,
            format!("{} is not a time", shown(value)),
            "write +2h for two hours from now, or a time: 2026-11-22T05:00:00+08:00; without a zone it is UTC",
        ),
    }
}

fn read(text: &str) -> Option<When> {
    if let Some(span) = text.strip_prefix('+') {
        return duration_s(&Value::from(span)).ok()?.map(When::After);
    }
    let moment = text.parse::<Timestamp>().ok().or_else(|| {
        let civil: DateTime = text.parse().ok()?;
        Some(civil.to_zoned(TimeZone::UTC).ok()?.timestamp())
    })?;
    u64::try_from(moment.as_millisecond()).ok().map(When::At)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(value: Value) -> Result<Option<When>, FieldError> {
        when(
            &Spec::from_iter([("start_at".to_owned(), value)]),
            "start_at",
        )
    }

    #[test]
    fn moments_and_spans_are_read() {
        let five = 1_795_323_600_000_u64;
        for (text, expected) in [
            ("+2h", When::After(7_200)),
            ("+90", When::After(90)),
            ("2026-11-22T05:00:00Z", When::At(five)),
            ("2026-11-22T13:00:00+08:00", When::At(five)),
            ("2026-11-22 05:00", When::At(five)),
            (" 2026-11-22 05:00:30 ", When::At(five + 30_000)),
            ("2026-11-22", When::At(five - 5 * 3_600_000)),
        ] {
            assert_eq!(of(json!(text)), Ok(Some(expected)), "{text}");
        }
        assert_eq!(of(json!(null)), Ok(None));
        assert_eq!(When::After(2).moment_ms(10), 2_010);
    }

    #[test]
    fn a_deadline_comes_after_now_and_after_the_start() {
        let times = |start, deadline| Times::of(start, deadline, 10_000);
        let at = |start_ms, finish_by_ms| {
            Ok(Times {
                start_ms,
                finish_by_ms,
            })
        };
        assert_eq!(times(None, None), at(0, 0));
        assert_eq!(times(Some(When::At(9_000)), None), at(0, 0));
        let both = times(Some(When::After(5)), Some(When::After(6)));
        assert_eq!(both, at(15_000, 16_000));
        for (start, deadline, word) in [
            (None, When::At(10_000), "is not after now"),
            (
                Some(When::After(5)),
                When::After(5),
                "is not after its start_at",
            ),
        ] {
            let error = times(start, Some(deadline)).unwrap_err();
            assert!(error.to_string().contains(word), "{error}");
        }
    }

    #[test]
    fn nonsense_names_field_and_value() {
        for bad in [
            json!("+"),
            json!("tomorrow"),
            json!("+2x"),
            json!(5),
            json!("1969-01-01"),
            json!([1]),
        ] {
            let error = of(bad.clone()).unwrap_err();
            assert_eq!(error.field, "start_at", "{bad}");
        }
    }
}
