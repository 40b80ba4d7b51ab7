//! Schedules of timers: parses them, and computes the due times.
//!
//! `every` counts from a moment. `cron` is a line for the clocks of `timezone`. All results depend only on the given
//! times.

use jiff::{Timestamp, tz::TimeZone};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    FieldError, Spec,
    cron::Cron,
    fields::read::{present, refuse},
    units::{duration_s, shown},
};

/// The field of a period.
pub const EVERY: &str = "every";
/// The field of a cron line.
pub const CRON: &str = "cron";
/// The field of the zone whose clocks a cron line means.
pub const TIMEZONE: &str = "timezone";
/// The field that says what happens while the run before has not ended.
pub const OVERLAP: &str = "overlap";
/// The field that says what becomes of runs that came due while nobody could start them.
pub const MISSED: &str = "missed";

/// So many missed times are counted one by one; of more, only those of the last day.
const COUNTED_MAX: u64 = 1_000;
const DAY_MS: u64 = 86_400_000;

/// Rule for a run that comes due while an earlier one has not ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Overlap {
    /// It is left out.
    #[default]
    Skip,
    /// It begins when the earlier ones have ended.
    Queue,
    /// The earlier ones are stopped; it begins when they have ended.
    Replace,
}

/// Rule for runs that came due while no replica could start them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Missed {
    /// One run for all of them.
    #[default]
    Once,
    /// None.
    Skip,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Rule {
    Every { ms: u64 },
    Cron { cron: Cron, zone: TimeZone },
}

/// When a job is run again and again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    rule: Rule,
    /// While an earlier run has not ended.
    pub overlap: Overlap,
    /// Rule for missed runs.
    pub missed: Missed,
}

/// Runs that have come due by a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// The latest time that has come, UTC epoch ms.
    pub latest_ms: u64,
    /// How many times have come, that one among them; a lower bound when there are more than a thousand.
    pub times: u64,
}

impl Schedule {
    /// Reads the schedule of a job. `None`: it is not to be repeated.
    ///
    /// # Errors
    /// A field cannot be used, or says nothing without `every` or `cron`.
    pub fn of(spec: &Spec) -> Result<Option<Self>, FieldError> {
        let line = present(spec, CRON);
        let every = present(spec, EVERY);
        let rule = match (every, line) {
            (None, None) => return Ok(None),
            (Some(_), Some(_)) => {
                return refuse(
                    CRON,
                    "both every and cron are given".to_owned(),
                    "give only one of them",
                );
            }
            (Some(every), None) => Rule::Every { ms: period(every)? },
            (None, Some(line)) => Rule::Cron {
                cron: cron(line)?,
                zone: zone(spec)?,
            },
        };
        if matches!(rule, Rule::Every { .. }) && present(spec, TIMEZONE).is_some() {
            return refuse(
                TIMEZONE,
                "every has no timezone, because it counts real time".to_owned(),
                "leave timezone out; only cron uses it",
            );
        }
        Ok(Some(Self {
            rule,
            overlap: word(spec, OVERLAP, "skip, queue or replace")?,
            missed: word(spec, MISSED, "once or skip")?,
        }))
    }

    /// The same of a job that is to be repeated.
    ///
    /// # Errors
    /// Fails if `every` and `cron` are both missing, or if [`Schedule::of`] fails.
    pub fn required(spec: &Spec) -> Result<Self, FieldError> {
        match Self::of(spec)? {
            Some(schedule) => Ok(schedule),
            None => refuse(
                EVERY,
                "every or cron is missing".to_owned(),
                "every: 6h, or cron: \"0 2 * * *\"",
            ),
        }
    }

    /// The first time after `after_ms`; both UTC epoch ms. A period is counted from `from_ms`.
    pub fn next_ms(&self, from_ms: u64, after_ms: u64) -> Option<u64> {
        match &self.rule {
            Rule::Every { ms } => {
                let passed = after_ms.saturating_sub(from_ms) / ms;
                from_ms.checked_add(passed.checked_add(1)?.checked_mul(*ms)?)
            }
            Rule::Cron { cron, zone } => {
                let after = Timestamp::from_millisecond(i64::try_from(after_ms).ok()?).ok()?;
                let next = cron.next(after, zone)?;
                u64::try_from(next.as_millisecond()).ok()
            }
        }
    }

    /// Returns the runs due from `first_ms`, which is a time of its own, to `now_ms`. `None`: nothing has.
    pub fn due(&self, from_ms: u64, first_ms: u64, now_ms: u64) -> Option<Due> {
        if first_ms > now_ms {
            return None;
        }
        if let Rule::Every { ms } = &self.rule {
            let more = (now_ms - first_ms) / ms;
            return Some(Due {
                latest_ms: first_ms.saturating_add(more.saturating_mul(*ms)),
                times: more.saturating_add(1),
            });
        }
        let mut due = Due {
            latest_ms: first_ms,
            times: 1,
        };
        let mut seek_ms = first_ms;
        while let Some(next_ms) = self
            .next_ms(from_ms, seek_ms)
            .filter(|next| *next <= now_ms)
        {
            due.latest_ms = next_ms;
            due.times += 1;
            seek_ms = next_ms;
            if due.times == COUNTED_MAX {
                seek_ms = seek_ms.max(now_ms.saturating_sub(DAY_MS));
            }
        }
        Some(due)
    }

    /// The shortest pause between two of its next times after `after_ms`, ms.
    pub fn shortest_ms(&self, after_ms: u64) -> u64 {
        /// Enough to see each pattern of a day's hours and minutes that matters.
        const LOOKED_AT: usize = 64;
        match &self.rule {
            Rule::Every { ms } => *ms,
            Rule::Cron { .. } => {
                let mut shortest_ms = u64::MAX;
                let mut at_ms = self.next_ms(0, after_ms);
                for _ in 0..LOOKED_AT {
                    let Some(this_ms) = at_ms else { break };
                    at_ms = self.next_ms(0, this_ms);
                    if let Some(next_ms) = at_ms {
                        shortest_ms = shortest_ms.min(next_ms - this_ms);
                    }
                }
                shortest_ms
            }
        }
    }
}

fn period(value: &Value) -> Result<u64, FieldError> {
    match duration_s(value) {
        Ok(Some(seconds)) if seconds > 0 => Ok(seconds.saturating_mul(1_000)),
        Ok(_) => refuse(
            EVERY,
            format!("{} is no period", shown(value)),
            "write 30m, 6h or 1d",
        ),
        Err(error) => refuse(EVERY, error.to_string(), "write 30m, 6h or 1d"),
    }
}

fn cron(value: &Value) -> Result<Cron, FieldError> {
    let hint = "five fields, minute hour day month weekday: \"0 2 * * *\" is each night at two";
    match value.as_str().map(str::parse) {
        Some(Ok(cron)) => Ok(cron),
        Some(Err(error)) => refuse(CRON, error.to_string(), hint),
        None => refuse(CRON, format!("{} is not a line", shown(value)), hint),
    }
}

fn zone(spec: &Spec) -> Result<TimeZone, FieldError> {
    let Some(value) = present(spec, TIMEZONE) else {
        return Ok(TimeZone::UTC);
    };
    let known = value.as_str().map(|name| TimeZone::get(name.trim()));
    match known {
        Some(Ok(zone)) => Ok(zone),
        _ => refuse(
            TIMEZONE,
            format!("{} is not a time zone", shown(value)),
            "a name like Europe/Berlin or Asia/Shanghai; the default is UTC",
        ),
    }
}

/// One word of a few; the default when nothing is said.
fn word<T: Default + serde::de::DeserializeOwned>(
    spec: &Spec,
    field: &str,
    words: &str,
) -> Result<T, FieldError> {
    match present(spec, field) {
        None => Ok(T::default()),
        Some(value) => match serde_json::from_value(value.clone()) {
            Ok(word) => Ok(word),
            Err(_) => refuse(
                field,
                format!("{} is not known", shown(value)),
                &format!("one of: {words}"),
            ),
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const HOUR_MS: u64 = 3_600_000;

    fn of(fields: &Value) -> Result<Option<Schedule>, FieldError> {
        Schedule::of(fields.as_object().unwrap())
    }

    fn schedule(fields: &Value) -> Schedule {
        of(fields).unwrap().unwrap()
    }

    #[test]
    fn a_period_counts_from_its_beginning() {
        let every = schedule(&json!({"every": "6h"}));
        assert_eq!(every.next_ms(500, 500), Some(500 + 6 * HOUR_MS));
        assert_eq!(
            every.next_ms(500, 499 + 6 * HOUR_MS),
            Some(500 + 6 * HOUR_MS)
        );
        assert_eq!(
            every.next_ms(500, 500 + 6 * HOUR_MS),
            Some(500 + 12 * HOUR_MS)
        );
        assert_eq!((every.overlap, every.missed), (Overlap::Skip, Missed::Once));
        assert_eq!(every.shortest_ms(0), 6 * HOUR_MS);
    }

    #[test]
    fn what_came_due_is_counted() {
        let every = schedule(&json!({"every": "1h", "overlap": "queue", "missed": "skip"}));
        assert_eq!(
            (every.overlap, every.missed),
            (Overlap::Queue, Missed::Skip)
        );
        assert_eq!(every.due(0, HOUR_MS, HOUR_MS - 1), None);
        let due = |latest_ms, times| Some(Due { latest_ms, times });
        assert_eq!(every.due(0, HOUR_MS, HOUR_MS), due(HOUR_MS, 1));
        assert_eq!(every.due(0, HOUR_MS, 4 * HOUR_MS - 1), due(3 * HOUR_MS, 3));
        let hourly = schedule(&json!({"cron": "0 * * * *", "timezone": "Europe/Berlin"}));
        assert_eq!(hourly.due(0, HOUR_MS, 4 * HOUR_MS - 1), due(3 * HOUR_MS, 3));
        assert_eq!(hourly.shortest_ms(0), HOUR_MS);
        // Years of it: the latest is right, the number is a lower bound.
        let minutely = schedule(&json!({"cron": "* * * * *"}));
        let far = minutely.due(0, 60_000, 1_000 * DAY_MS).unwrap();
        assert_eq!(far.latest_ms, 1_000 * DAY_MS);
        assert!(
            far.times > COUNTED_MAX && far.times < 3 * COUNTED_MAX,
            "{far:?}"
        );
    }

    #[test]
    fn nothing_said_is_no_schedule_and_nonsense_names_its_field() {
        assert_eq!(of(&json!({"suite": "x", "overlap": 5})), Ok(None));
        assert_eq!(of(&json!({"every": null, "cron": ""})), Ok(None));
        for (fields, field) in [
            (json!({"every": "6h", "cron": "@daily"}), CRON),
            (json!({"every": "soon"}), EVERY),
            (json!({"every": 0}), EVERY),
            (json!({"every": "1h", "timezone": "UTC"}), TIMEZONE),
            (json!({"cron": "daily"}), CRON),
            (json!({"cron": 5}), CRON),
            (json!({"cron": "@daily", "timezone": "Mars/Base"}), TIMEZONE),
            (json!({"cron": "@daily", "timezone": 8}), TIMEZONE),
            (json!({"every": "1h", "overlap": "both"}), OVERLAP),
            (json!({"every": "1h", "missed": true}), MISSED),
        ] {
            let error = of(&fields).unwrap_err();
            assert_eq!(error.field, field, "{fields}: {error}");
            assert!(!error.hint.is_empty());
        }
    }

    proptest! {
        #[test]
        fn what_is_due_ends_just_before_what_is_next(
            line in prop::sample::select(vec!["*/7 * * * *", "30 2 * * *", "0 0 1 * 0"]),
            period_s in 1_u64..100_000,
            from_ms in 0_u64..2_000_000_000_000,
            later_ms in 0_u64..10 * DAY_MS,
        ) {
            let zone = "America/New_York";
            for schedule in [schedule(&json!({"every": period_s})), schedule(&json!({"cron": line, "timezone": zone}))] {
                let first_ms = schedule.next_ms(from_ms, from_ms).unwrap();
                prop_assert!(first_ms > from_ms);
                let now_ms = first_ms + later_ms;
                let due = schedule.due(from_ms, first_ms, now_ms).unwrap();
                prop_assert!((first_ms..=now_ms).contains(&due.latest_ms) && due.times >= 1);
                let next_ms = schedule.next_ms(from_ms, now_ms).unwrap();
                prop_assert!(next_ms > now_ms);
                prop_assert_eq!(schedule.next_ms(from_ms, due.latest_ms), Some(next_ms));
            }
        }
    }
}
