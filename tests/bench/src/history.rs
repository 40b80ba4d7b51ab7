//! Jobs that ended in the months before, written straight into a scheduler's indices.

use anyhow::Context;
use serde_json::{Map, Value};

use super::sample::{Sample, create_body_line, create_line};

/// Number of months over which the jobs are spread.
const MONTHS: u32 = 10;
const DAY_MS: u64 = 86_400_000;
const DAYS_OF_MONTH: u64 = 31;
/// Number of seconds in the shortest month.
const SECONDS_OF_MONTH: usize = 28 * 86_400;
/// Number of ids of one replica in a second.
const NUMBERS_OF_SECOND: usize = 100_000;
/// Minimum of the numbers that are times, UTC epoch ms.
const TIME_MS: u64 = 1_000_000_000_000;

/// A month: the digits at the end of its indices and at the start of its ids, and a state from then.
#[derive(Debug)]
struct Month {
    digits: String,
    state: String,
}

/// Finished jobs to write.
#[derive(Debug)]
pub(super) struct History {
    prefix: String,
    /// Number of jobs.
    count: usize,
    /// Id in the documents that they are made from.
    job_id: String,
    body: String,
    months: Vec<Month>,
}

impl History {
    /// Returns `count` jobs for the scheduler whose indices begin with `prefix`.
    pub(super) fn new(sample: &Sample, prefix: &str, count: usize) -> anyhow::Result<Self> {
        let job_id = sample.job_id.clone();
        let now = job_id.get(..4).context("a job's id is too short")?;
        let months = (1..=MONTHS).map(|back| {
            let state = earlier(&sample.finished, u64::from(back) * DAYS_OF_MONTH * DAY_MS);
            Ok(Month {
                digits: before(now, back)?,
                state: Value::Object(state).to_string(),
            })
        });
        Ok(Self {
            prefix: prefix.to_owned(),
            count,
            months: months.collect::<anyhow::Result<_>>()?,
            body: sample.body.clone(),
            job_id,
        })
    }

    /// Returns the indices of the jobs.
    pub(super) fn indices(&self) -> Vec<String> {
        self.months.iter().map(|month| self.index(month)).collect()
    }

    fn index(&self, month: &Month) -> String {
        format!("{}-jobs-{}", self.prefix, month.digits)
    }

    /// Returns the lines that create the nth job: two documents. The months follow one another, because a bulk syncs
    /// each of its indices separately.
    pub(super) fn create(&self, n: usize) -> String {
        let each = self.count.div_ceil(self.months.len()).max(1);
        let Some(month) = self.months.get(n / each) else {
            return String::new();
        };
        let index = self.index(month);
        let id = format!("{}{}", month.digits, born(n % each, each));
        format!(
            "{}\n{}\n{}\n{}\n",
            create_line(&index, &id),
            month.state.replace(&self.job_id, &id),
            create_body_line(&index, &id),
            self.body
        )
    }
}

/// Returns the digits of an id behind its month, for the nth of `of` jobs of the month. The jobs are spread over the
/// month.
fn born(n: usize, of: usize) -> String {
    let s = n * SECONDS_OF_MONTH / of;
    let (day, hour, minute) = (s / 86_400 + 1, s / 3_600 % 24, s / 60 % 60);
    let number = n % NUMBERS_OF_SECOND;
    format!("{day:02}{hour:02}{minute:02}{:02}00{number:05}", s % 60)
}

/// Returns the digits of the month (YYMM) this number of months before.
fn before(digits: &str, back: u32) -> anyhow::Result<String> {
    let number: u32 = digits.parse()?;
    let month = (number / 100 * 12 + number % 100 - 1)
        .checked_sub(back)
        .context("no such month")?;
    Ok(format!("{:02}{:02}", month / 12, month % 12 + 1))
}

/// Returns a state with all its times moved back.
fn earlier(state: &Map<String, Value>, by_ms: u64) -> Map<String, Value> {
    let moved = |value: &Value| match value.as_u64() {
        Some(ms) if ms > TIME_MS => Value::from(ms - by_ms),
        _ => value.clone(),
    };
    let fields = state.iter().map(|(name, value)| {
        let is_time = name.ends_with("_ms");
        let value = if is_time { moved(value) } else { value.clone() };
        (name.clone(), value)
    });
    fields.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_months_before_have_their_digits() {
        assert_eq!(before("2611", 1).unwrap(), "2610");
        assert_eq!(before("2611", 10).unwrap(), "2601");
        assert_eq!(before("2602", 2).unwrap(), "2512");
        assert!(before("0001", 1).is_err() && before("", 1).is_err());
    }

    #[test]
    fn jobs_are_born_all_the_month_long_in_order() {
        assert_eq!(born(0, 1), "010000000000000");
        let ids: Vec<String> = (0..50_000).map(|n| born(n, 50_000)).collect();
        assert!(ids.is_sorted_by(|one, next| one < next));
        assert_eq!(ids.last().unwrap(), "282359110049999");
    }

    #[test]
    fn only_times_move() {
        let state =
            json!({"end_ms": TIME_MS + 9, "attempt": 1, "memory_mb": TIME_MS + 9, "alarm_ms": 0});
        let moved = earlier(state.as_object().unwrap(), 5);
        let wanted =
            json!({"end_ms": TIME_MS + 4, "attempt": 1, "memory_mb": TIME_MS + 9, "alarm_ms": 0});
        assert_eq!(Value::Object(moved), wanted);
    }
}
