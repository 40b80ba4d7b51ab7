//! Cron lines: five fields that give the minutes and days when a timer is due.
//!
//! The fields are `MINUTE HOUR DAY MONTH WEEKDAY`. Each is `*`, a number, a name, a range or a list, with an optional
//! `/STEP`. If day and weekday are both given, either is enough, as in every cron. A line uses the wall clock of its
//! zone:
//!
//! - A line for fixed hours is due once a day. A time that spring skips is due right after the gap. A time that comes
//!   twice in autumn is due at its first occurrence.
//! - A line for every hour follows real time. It is due in both of the two equal hours, and leaves no gap.

use std::str::FromStr;

use jiff::{
    SignedDuration, Timestamp,
    civil::{Date, DateTime},
    tz::{AmbiguousOffset, TimeZone},
};

use crate::file::printable;

/// A line that names no day within so many is never due: February 29 is a Sunday every 40 years or sooner.
const DAYS_AHEAD_MAX: usize = 41 * 366;
/// Longest line, bytes.
const LINE_BYTES_MAX: usize = 1_024;
/// Bits of all 24 hours.
const ALL_HOURS: u64 = (1 << 24) - 1;
const MINUTE: SignedDuration = SignedDuration::from_mins(1);

/// A name in a message, its range, and names for its numbers, the first for `from`.
struct Field {
    name: &'static str,
    from: u8,
    to: u8,
    words: &'static [&'static str],
}

const FIELDS: [Field; 5] = [
    field("minute", 0, 59, &[]),
    field("hour", 0, 23, &[]),
    field("day", 1, 31, &[]),
    field(
        "month",
        1,
        12,
        &[
            "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
        ],
    ),
    field(
        "weekday",
        0,
        7,
        &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
    ),
];

/// Words for whole lines.
const WORDS: [(&str, &str); 7] = [
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
];

const fn field(name: &'static str, from: u8, to: u8, words: &'static [&'static str]) -> Field {
    Field {
        name,
        from,
        to,
        words,
    }
}

/// Problem with a line, one sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CronError(String);

/// The minutes of a cron line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    /// Bit n: the number n is named.
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// True if day and weekday are both named, so that either is enough.
    either_day: bool,
}

impl FromStr for Cron {
    type Err = CronError;

    fn from_str(line: &str) -> Result<Self, CronError> {
        if line.len() > LINE_BYTES_MAX {
            return Err(CronError(format!(
                "the line has {} bytes; at most {LINE_BYTES_MAX} are allowed",
                line.len()
            )));
        }
        let word = line.trim().to_ascii_lowercase();
        let known = WORDS.iter().find(|(known, _)| *known == word);
        let line = known.map_or(word.as_str(), |(_, line)| line);
        let texts: Vec<&str> = line.split_ascii_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = texts.as_slice() else {
            return Err(CronError(format!(
                "'{}' has {} fields where five are expected",
                printable(line, 60),
                texts.len()
            )));
        };
        let [minute, hour, day, month, weekday] = &FIELDS;
        let named = weekday.read(weekdays)?;
        let cron = Self {
            minutes: minute.read(minutes)?,
            hours: hour.read(hours)?,
            days: day.read(days)?,
            months: month.read(months)?,
            // Sunday is 0 and 7.
            weekdays: (named | (named >> 7)) & 0x7f,
            either_day: !days.starts_with('*') && !weekdays.starts_with('*'),
        };
        if cron.next(Timestamp::UNIX_EPOCH, &TimeZone::UTC).is_none() {
            return Err(CronError(format!(
                "'{}' names a day that never comes",
                printable(line, 60)
            )));
        }
        Ok(cron)
    }
}

impl Field {
    /// The numbers that a list of ranges names, as bits.
    fn read(&self, list: &str) -> Result<u64, CronError> {
        let mut bits = 0;
        for item in list.split(',') {
            let wrong = || {
                CronError(format!(
                    "{}: '{}' is none of {} to {}, a range, a list, or a step like */5",
                    self.name,
                    printable(item, 30),
                    self.from,
                    self.to
                ))
            };
            let (range, step) = match item.split_once('/') {
                None => (item, None),
                Some((range, step)) => (range, Some(step.parse().map_err(|_| wrong())?)),
            };
            let (from, to) = match range.split_once('-') {
                _ if range == "*" => (self.from, self.to),
                Some((from, to)) => (
                    self.number(from).ok_or_else(wrong)?,
                    self.number(to).ok_or_else(wrong)?,
                ),
                None => {
                    let from = self.number(range).ok_or_else(wrong)?;
                    (from, if step.is_some() { self.to } else { from })
                }
            };
            let step: u8 = step.unwrap_or(1);
            if step == 0 || from > to {
                return Err(wrong());
            }
            for number in (from..=to).step_by(usize::from(step)) {
                bits |= 1_u64 << number;
            }
        }
        Ok(bits)
    }

    /// A number or a name.
    fn number(&self, text: &str) -> Option<u8> {
        if let Some(place) = self.words.iter().position(|word| *word == text) {
            return Some(self.from + u8::try_from(place).ok()?);
        }
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = is_number.then(|| text.parse().ok()).flatten()?;
        (self.from..=self.to).contains(&number).then_some(number)
    }
}

fn has(bits: u64, number: i8) -> bool {
    u32::try_from(number).is_ok_and(|number| bits.checked_shr(number).is_some_and(|b| b & 1 == 1))
}

/// The numbers whose bits are set, below 60.
fn numbers(bits: u64) -> impl Iterator<Item = i8> {
    (0..60).filter(move |number| has(bits, *number))
}

impl Cron {
    /// The first moment after `after` at which it is due by the clocks of `zone`. `None`: not before the end of the
    /// calendar.
    pub fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let mut date = zone.to_datetime(after).date();
        for _ in 0..=DAYS_AHEAD_MAX {
            if self.is_day(date) {
                let found = if self.hours == ALL_HOURS {
                    self.any_hour(date, after, zone)
                } else {
                    self.certain_hours(date, after, zone)
                };
                if found.is_some() {
                    return found;
                }
            }
            date = date.tomorrow().ok()?;
        }
        None
    }

    fn is_day(&self, date: Date) -> bool {
        let day = has(self.days, date.day());
        let weekday = has(self.weekdays, date.weekday().to_sunday_zero_offset());
        let is_named = if self.either_day {
            day || weekday
        } else {
            day && weekday
        };
        is_named && has(self.months, date.month())
    }

    /// By real time: each minute of the day that has the number.
    fn any_hour(&self, date: Date, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let midnight = |date: Date| {
            let midnight = zone.to_ambiguous_timestamp(date.at(0, 0, 0, 0));
            midnight.compatible().ok()
        };
        let (from, to) = (midnight(date)?, midnight(date.tomorrow().ok()?)?);
        let whole = after.as_second().div_euclid(60).checked_add(1)?;
        let mut at = from.max(Timestamp::from_second(whole.checked_mul(60)?).ok()?);
        while at < to {
            if has(self.minutes, zone.to_datetime(at).minute()) {
                return Some(at);
            }
            at = at.checked_add(MINUTE).ok()?;
        }
        None
    }

    /// By the clock on the wall: each named time of the day once.
    fn certain_hours(&self, date: Date, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let times = numbers(self.hours)
            .flat_map(|hour| numbers(self.minutes).map(move |minute| (hour, minute)));
        times
            .filter_map(|(hour, minute)| moment(date.at(hour, minute, 0, 0), zone))
            .find(|at| *at > after)
    }
}

/// When the clock on the wall shows this: the first time, or when it jumps over it.
fn moment(wall: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    match zone.to_ambiguous_timestamp(wall).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(wall).ok(),
        AmbiguousOffset::Fold { before, .. } => before.to_timestamp(wall).ok(),
        AmbiguousOffset::Gap { after, .. } => {
            let shortly_before = after.to_timestamp(wall).ok()?;
            Some(zone.following(shortly_before).next()?.timestamp())
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn zone(name: &str) -> TimeZone {
        TimeZone::get(name).unwrap()
    }

    /// The first `n` times after a moment, as UTC.
    fn times(line: &str, zone_name: &str, after: &str, n: usize) -> Vec<String> {
        let (cron, zone): (Cron, _) = (line.parse().unwrap(), zone(zone_name));
        let mut at: Timestamp = after.parse().unwrap();
        let next = |_| {
            at = cron.next(at, &zone).unwrap();
            at.to_string()
        };
        (0..n).map(next).collect()
    }

    #[test]
    fn lines_are_due_when_they_say() {
        for (line, expected) in [
            (
                "0 2 * * *",
                ["2026-11-22T02:00:00Z", "2026-11-23T02:00:00Z"],
            ),
            (
                "*/20 * * * *",
                ["2026-11-21T10:40:00Z", "2026-11-21T11:00:00Z"],
            ),
            (
                "5/25 * * * *",
                ["2026-11-21T10:55:00Z", "2026-11-21T11:05:00Z"],
            ),
            (
                "30 8-18/5 * * mon-fri",
                ["2026-11-23T08:30:00Z", "2026-11-23T13:30:00Z"],
            ),
            (
                "0 0 29 FEB *",
                ["2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"],
            ),
            // Either of both days.
            (
                "0 0 1 * 7",
                ["2026-11-22T00:00:00Z", "2026-11-29T00:00:00Z"],
            ),
            // A step from a star is no day that is named.
            (
                "0 0 */2 * 0",
                ["2026-11-29T00:00:00Z", "2026-12-13T00:00:00Z"],
            ),
            ("@hourly", ["2026-11-21T11:00:00Z", "2026-11-21T12:00:00Z"]),
            (
                " @Yearly ",
                ["2027-01-01T00:00:00Z", "2028-01-01T00:00:00Z"],
            ),
            (
                "0,30 10,12 21 11 *",
                ["2026-11-21T12:00:00Z", "2026-11-21T12:30:00Z"],
            ),
        ] {
            assert_eq!(
                times(line, "UTC", "2026-11-21T10:30:00Z", 2),
                expected,
                "{line}"
            );
        }
    }

    #[test]
    fn a_zone_s_own_clock_counts() {
        let shanghai = times("0 2 * * *", "Asia/Shanghai", "2026-11-21T10:30:00Z", 1);
        assert_eq!(shanghai, ["2026-11-21T18:00:00Z"]);
        // Half an hour off.
        let kolkata = times("15 * * * *", "Asia/Kolkata", "2026-11-21T10:30:00Z", 2);
        assert_eq!(kolkata, ["2026-11-21T10:45:00Z", "2026-11-21T11:45:00Z"]);
    }

    #[test]
    fn a_time_that_the_clock_jumps_over_is_due_when_it_has_jumped() {
        // Berlin, 2026-03-29: 02:00 is 03:00, at 01:00 UTC.
        let daily = times("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z", 3);
        assert_eq!(
            daily,
            [
                "2026-03-28T01:30:00Z",
                "2026-03-29T01:00:00Z",
                "2026-03-30T00:30:00Z"
            ]
        );
        // Once, though both times of the hour are jumped over.
        let twice = times("0,30 2 * * *", "Europe/Berlin", "2026-03-28T02:00:00Z", 2);
        assert_eq!(twice, ["2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"]);
        let hourly = times("30 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", 2);
        assert_eq!(hourly, ["2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z"]);
    }

    #[test]
    fn a_time_that_comes_twice_is_due_the_first_time_and_each_hour_is_each_hour() {
        // Berlin, 2026-10-25: 03:00 is 02:00 again, at 01:00 UTC.
        let daily = times("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2);
        assert_eq!(daily, ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
        let hourly = times("30 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z", 3);
        assert_eq!(
            hourly,
            [
                "2026-10-25T00:30:00Z",
                "2026-10-25T01:30:00Z",
                "2026-10-25T02:30:00Z"
            ]
        );
    }

    #[test]
    fn what_is_no_line_says_which_field() {
        for (line, says) in [
            ("", "0 fields"),
            ("* * * *", "4 fields"),
            ("0 0 2 * * *", "6 fields"),
            ("60 * * * *", "minute: '60'"),
            ("* 24 * * *", "hour: '24'"),
            ("* * 0 * *", "day: '0'"),
            ("* * * 13 *", "month: '13'"),
            ("* * * * 8", "weekday: '8'"),
            ("* * * * fri-mon", "weekday: 'fri-mon'"),
            ("*/0 * * * *", "minute: '*/0'"),
            ("1-2-3 * * * *", "minute: '1-2-3'"),
            ("+1 * * * *", "minute: '+1'"),
            ("1,,2 * * * *", "minute: ''"),
            ("0 0 30 2 *", "never comes"),
            ("@reboot", "1 fields"),
        ] {
            let error = line.parse::<Cron>().unwrap_err().to_string();
            assert!(error.contains(says), "{line}: {error}");
        }
        assert!("1,".repeat(1_000).parse::<Cron>().is_err());
    }

    /// A field as people write it.
    fn a_field(from: u8, to: u8) -> impl Strategy<Value = String> {
        let item =
            (from..=to, from..=to, 1_u8..=20, 0..4).prop_map(|(a, b, step, how)| match how {
                0 => a.to_string(),
                1 => format!("{}-{}", a.min(b), a.max(b)),
                2 => format!("{}-{}/{step}", a.min(b), a.max(b)),
                _ => format!("{a},{b}"),
            });
        prop_oneof![Just("*".to_owned()), Just("*/7".to_owned()), item]
    }

    fn a_line() -> impl Strategy<Value = String> {
        let fields = (
            a_field(0, 59),
            a_field(0, 23),
            a_field(1, 28),
            a_field(1, 12),
            a_field(0, 7),
        );
        fields.prop_map(|(a, b, c, d, e)| format!("{a} {b} {c} {d} {e}"))
    }

    proptest! {
        #[test]
        fn the_next_time_is_after_this_one_in_order_and_named(
            line in a_line(),
            second in 1_700_000_000_i64..2_000_000_000,
            later in 0_i64..10_000_000,
            name in prop::sample::select(vec!["UTC", "Europe/Berlin", "Asia/Shanghai", "Australia/Lord_Howe", "America/New_York"]),
        ) {
            let (cron, zone): (Cron, _) = (line.parse().unwrap(), zone(name));
            let after = Timestamp::from_second(second).unwrap();
            let next = cron.next(after, &zone).unwrap();
            prop_assert!(next > after);
            // Whoever asks later gets the same or a later one; whoever asks just before gets this one.
            let at_later = cron.next(Timestamp::from_second(second + later).unwrap(), &zone).unwrap();
            prop_assert!(at_later >= next);
            let just_before = Timestamp::from_second(next.as_second() - 1).unwrap();
            prop_assert_eq!(cron.next(just_before, &zone), Some(next));
            let wall = zone.to_datetime(next);
            prop_assert!(has(cron.minutes, wall.minute()) && has(cron.hours, wall.hour()) && cron.is_day(wall.date())
                || zone.following(just_before).next().is_some_and(|jump| jump.timestamp() == next));
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,40}") {
            drop(text.parse::<Cron>());
        }
    }
}
