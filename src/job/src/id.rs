//! Job ids: an int64 shown as a string, sortable by time.
//!
//! Digits: UTC `yyMMddHHmmss` (12), replica number (2), sequence (5). So an id names the monthly index of its job, and
//! an operation by id needs no look-up.

use std::{fmt, str::FromStr};

use jiff::{civil::DateTime, tz::TimeZone};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// How many ids one replica can make in one second before it borrows from the next.
const SEQUENCES: u64 = 100_000;
/// How many replica numbers there are.
const REPLICAS: u64 = 100;

/// The id of a job. Shown and sent as a decimal string, never as a JSON number (2^53 is too small).
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(u64);

impl JobId {
    /// Wraps a raw number, as it comes from a store or an engine.
    pub const fn new(raw: u64) -> Self {
        Self(raw)
    }

    /// The number itself.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The month in which the job was born, as `YYMM`: the suffix of its index.
    pub fn month(self) -> String {
        format!("{:04}", self.0 / (REPLICAS * SEQUENCES * 100_000_000))
    }

    /// The id `n` places behind this one in its block, see [`IdMaker::block`].
    #[must_use]
    pub fn behind(self, n: u16) -> Self {
        Self(self.0.saturating_add(u64::from(n)))
    }

    /// The least id of a month, as [`Self::month`] says it; `None`: the text is no month.
    pub fn first_of_month(month: &str) -> Option<Self> {
        let is_month = month.len() == 4 && month.bytes().all(|b| b.is_ascii_digit());
        let number: u64 = month.parse().ok().filter(|_| is_month)?;
        (1..=12)
            .contains(&(number % 100))
            .then(|| Self((number * 100 + 1) * 1_000_000 * REPLICAS * SEQUENCES))
    }

    /// The least id of the month after the one of this id.
    #[must_use]
    pub fn next_month(self) -> Self {
        let first_day = Self::first_of_month(&self.month()).unwrap_or(self);
        let next = Self::first_of(first_day.born_s() + 31 * 86_400).month();
        Self::first_of_month(&next).unwrap_or(self)
    }

    /// The least id of this second, UTC Unix time.
    pub fn first_of(unix_s: u64) -> Self {
        Self(stamp(unix_s) * REPLICAS * SEQUENCES)
    }

    /// The second of its birth, UTC Unix time, as its digits say it; 0: they are no time.
    pub fn born_s(self) -> u64 {
        let stamp = self.0 / (REPLICAS * SEQUENCES);
        let two = |place: u64| i8::try_from(stamp / place % 100).unwrap_or(0);
        let year = 2000 + i16::from(two(10_000_000_000));
        let (month, day) = (two(100_000_000), two(1_000_000));
        let born = DateTime::new(year, month, day, two(10_000), two(100), two(1), 0);
        let born = born.and_then(|born| born.to_zoned(TimeZone::UTC));
        let born_s = born.map(|born| born.timestamp().as_second());
        born_s.map_or(0, |s| u64::try_from(s).unwrap_or(0))
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:019}", self.0)
    }
}

impl fmt::Debug for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JobId({self})")
    }
}

/// The text is not a job id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a job id: '{0}' (a job id is 1 to 19 decimal digits)")]
pub struct ParseJobIdError(String);

impl FromStr for JobId {
    type Err = ParseJobIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = || ParseJobIdError(text.chars().take(40).collect());
        if text.is_empty() || text.len() > 19 || !text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(refuse());
        }
        let raw: u64 = text.parse().map_err(|_| refuse())?;
        if raw == 0 || i64::try_from(raw).is_err() {
            return Err(refuse());
        }
        Ok(Self(raw))
    }
}

impl Serialize for JobId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for JobId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

/// Makes ids that only go up, whatever the clock does.
#[derive(Debug)]
pub struct IdMaker {
    replica: u64,
    second: u64,
    sequence: u64,
}

impl IdMaker {
    /// Creates a maker. `replica` is this process's leased number, 0 to 99. `start_s` is the present UTC time in Unix
    /// seconds. The first id belongs to the next second, so that a process restarted within one second never repeats
    /// an id.
    pub fn new(replica: u8, start_s: u64) -> Self {
        Self {
            replica: u64::from(replica) % REPLICAS,
            second: start_s + 1,
            sequence: 0,
        }
    }

    /// The next id. `now_s` is the present UTC time in Unix seconds; a clock that steps back is ignored.
    pub fn next(&mut self, now_s: u64) -> JobId {
        self.block(now_s, 1)
    }

    /// The first of `many` ids (1 to 100,000) that follow each other within one second, so that they are of one month.
    pub fn block(&mut self, now_s: u64, many: u32) -> JobId {
        let many = u64::from(many).clamp(1, SEQUENCES);
        if now_s > self.second {
            self.second = now_s;
            self.sequence = 0;
        } else if self.sequence + many > SEQUENCES {
            self.second += 1;
            self.sequence = 0;
        }
        let stamp = stamp(self.second);
        let id = (stamp * REPLICAS + self.replica) * SEQUENCES + self.sequence;
        self.sequence += many;
        JobId(id)
    }
}

/// `yyMMddHHmmss` of a Unix time, UTC. Years 2000 to 2091 (what an int64 id has room for).
fn stamp(unix_s: u64) -> u64 {
    let (year, month, day) = civil(unix_s / 86_400);
    let rest = unix_s % 86_400;
    let date = (year % 100) * 10_000 + month * 100 + day;
    date * 1_000_000 + (rest / 3600) * 10_000 + (rest / 60 % 60) * 100 + rest % 60
}

/// Year, month and day of a day count since 1970-01-01 (proleptic Gregorian, days from civil inverted).
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_as_its_time_replica_and_sequence() {
        // 2026-11-21T02:36:11Z
        let mut maker = IdMaker::new(7, 0);
        let id = maker.next(1_795_228_571);
        assert_eq!(id.to_string(), "2611210236110700000");
        assert_eq!(id.month(), "2611");
        assert_eq!(maker.next(1_795_228_571).to_string(), "2611210236110700001");
    }

    #[test]
    fn ids_only_go_up_when_the_clock_steps_back_or_a_second_is_full() {
        let mut maker = IdMaker::new(0, 1_795_228_571);
        let mut last = maker.next(1_795_228_571);
        for step in 0..250_000u64 {
            let id = maker.next(1_795_228_571 - step % 3);
            assert!(id > last);
            last = id;
        }
    }

    #[test]
    fn a_block_of_ids_is_of_one_second() {
        let mut maker = IdMaker::new(3, 0);
        let first = maker.block(1_795_228_571, 99_000);
        let next = maker.block(1_795_228_571, 1_001);
        assert_eq!(first.to_string(), "2611210236110300000");
        assert_eq!(next.to_string(), "2611210236120300000");
        assert_eq!(next.behind(1_000).born_s(), next.born_s());
        assert_eq!(maker.next(1_795_228_571), next.behind(1_001));
    }

    #[test]
    fn a_restart_within_one_second_makes_no_id_twice() {
        let first = IdMaker::new(0, 1_795_228_570).next(1_795_228_571);
        let second = IdMaker::new(0, 1_795_228_571).next(1_795_228_571);
        assert!(second > first);
    }

    #[test]
    fn an_id_tells_when_it_was_born() {
        let years_2000_to_2091 = (946_684_800..3_849_984_000).step_by(86_399);
        for unix_s in years_2000_to_2091 {
            let first = JobId::first_of(unix_s);
            assert_eq!((first.born_s(), first.get() % 10_000_000), (unix_s, 0));
        }
        let month = JobId::first_of_month("2612").unwrap();
        assert_eq!(
            (month.month(), month.born_s()),
            ("2612".to_owned(), 1_796_083_200)
        );
        assert_eq!(month.next_month().month(), "2701");
        let february = JobId::new(2_402_290_236_110_700_000);
        assert_eq!(
            february.next_month(),
            JobId::first_of_month("2403").unwrap()
        );
        for nonsense in ["", "2600", "2613", "261", "26120", "+612"] {
            assert_eq!(JobId::first_of_month(nonsense), None, "{nonsense}");
        }
        let odd = [1, 9_999_999_999, i64::MAX.unsigned_abs()].map(JobId::new);
        assert!(
            odd.iter().all(|id| id.born_s() < u64::from(u32::MAX) * 2),
            "no time, and no harm"
        );
    }

    #[test]
    fn nonsense_is_not_an_id() {
        for text in [
            "",
            "abc",
            "-1",
            "+1",
            "0",
            "1 ",
            "99999999999999999999",
            "9999999999999999999",
            "1\0",
        ] {
            assert!(text.parse::<JobId>().is_err(), "{text:?}");
        }
    }
}
