//! Jobs that ran in each minute: additive samples by account, queue, host and suite.
//!
//! A replica counts what it wrote itself, so the samples of all replicas add up to the whole lab.

use std::collections::BTreeMap;

use fairlead_dispatch::labels;
use fairlead_job::Health;
use fairlead_store::{DocKind, JobState};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use fairlead_base::storage::small_doc::SmallDoc;

/// Length of a minute, ms.
pub const MINUTE_MS: u64 = 60_000;
/// Maximum number of names of one kind in a sample. Those with the fewest jobs are summed up.
const NAMES_MAX: usize = 200;
/// Name of the sum of unlisted names. No account, queue, host or suite has blanks or brackets in its name.
pub const OTHERS: &str = "(others)";
/// Maximum number of minutes kept while the store takes none.
const UNWRITTEN_MAX: usize = 120;

/// Dimension by which jobs are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    Account,
    Queue,
    Host,
    Suite,
}

/// Sums of the jobs of one name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Number of jobs that hosts got.
    #[serde(default, rename = "d")]
    pub dispatched: u64,
    /// Number of attempts that ended.
    #[serde(default, rename = "e")]
    pub ended: u64,
    /// Number of ended attempts that did not succeed.
    #[serde(default, rename = "f")]
    pub failed: u64,
    /// Time that hosts spent on the ended attempts, ms.
    #[serde(default, rename = "b")]
    pub busy_ms: u64,
    /// Number of dispatched jobs by wait: entry n counts waits from 2^(n-1) up to 2^n seconds.
    #[serde(default, rename = "w", skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<u64>,
}

impl Row {
    pub fn add(&mut self, other: &Self) {
        self.dispatched += other.dispatched;
        self.ended += other.ended;
        self.failed += other.failed;
        self.busy_ms += other.busy_ms;
        for (bucket, jobs) in other.waits.iter().enumerate() {
            self.waited(bucket, *jobs);
        }
    }

    fn waited(&mut self, bucket: usize, jobs: u64) {
        if self.waits.len() <= bucket {
            self.waits.resize(bucket + 1, 0);
        }
        if let Some(sum) = self.waits.get_mut(bucket) {
            *sum += jobs;
        }
    }

    /// Returns the wait that this share of the jobs (per mille) does not exceed, seconds. It is rounded up to the
    /// bucket's limit.
    pub fn wait_s(&self, permille: u64) -> Option<u64> {
        let all: u64 = self.waits.iter().sum();
        let wanted = all.saturating_mul(permille).div_ceil(1000);
        let mut seen = 0;
        let bucket = self.waits.iter().position(|jobs| {
            seen += jobs;
            seen >= wanted
        });
        bucket
            .filter(|_| all > 0)
            .map(|bucket| 1_u64 << bucket.min(63))
    }
}

/// Returns the bucket of a wait: the least n with wait < 2^n seconds.
fn bucket_of(wait_ms: u64) -> usize {
    let seconds = wait_ms / 1000;
    usize::try_from(u64::BITS - seconds.leading_zeros()).unwrap_or(0)
}

/// Stored sums of a minute or an hour.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    #[serde(default)]
    pub rows: BTreeMap<By, BTreeMap<String, Row>>,
}

impl SmallDoc for Sample {
    const KIND: DocKind = DocKind::Sample;
}

impl Sample {
    fn row(&mut self, by: By, name: &str) -> &mut Row {
        let rows = self.rows.entry(by).or_default();
        rows.entry(name.to_owned()).or_default()
    }

    fn each(&mut self, state: &JobState, mut count: impl FnMut(&mut Row)) {
        let names = [
            (By::Account, state.account.as_str()),
            (By::Queue, labels::queue_of(&state.queue)),
            (By::Host, state.host.as_str()),
            (By::Suite, state.suite.as_str()),
        ];
        for (by, name) in names {
            count(self.row(by, name));
        }
    }

    /// Adds another sample.
    pub fn add(&mut self, other: &Self) {
        for (by, rows) in &other.rows {
            for (name, row) in rows {
                self.row(*by, name).add(row);
            }
        }
    }

    /// Sums up all names except those with the most jobs.
    #[must_use]
    pub fn cut(mut self) -> Self {
        for rows in self.rows.values_mut() {
            if rows.len() <= NAMES_MAX {
                continue;
            }
            let jobs = |row: &Row| row.dispatched.max(row.ended);
            let mut order: Vec<(u64, String)> = rows
                .iter()
                .map(|(name, row)| (jobs(row), name.clone()))
                .collect();
            order.sort_by(|a, b| b.cmp(a));
            let mut others = Row::default();
            for (_, name) in order.split_off(NAMES_MAX - 1) {
                others.add(&rows.remove(&name).unwrap_or_default());
            }
            rows.entry(OTHERS.to_owned()).or_default().add(&others);
        }
        self
    }
}

/// Samples of this replica that are not stored yet, by minute since 1970.
#[derive(Debug, Default)]
pub struct Samples(Mutex<BTreeMap<u64, Sample>>, Mutex<SharesGot>);

/// Share of testbox time that each queue got, per mille.
#[derive(Debug, Clone, Default)]
pub struct SharesGot {
    /// Time of the computation on this replica's clock, ms. 0: never.
    pub at_ms: u64,
    /// Shares of the last hour.
    pub hour: BTreeMap<String, u32>,
    /// Shares of the last 24 hours.
    pub day: BTreeMap<String, u32>,
}

impl Samples {
    /// Counts a job that a host got.
    pub fn dispatched(&self, state: &JobState) {
        let wait_ms = state.dispatch_ms.saturating_sub(state.ready_ms);
        let mut minutes = self.0.lock();
        let sample = minutes.entry(state.dispatch_ms / MINUTE_MS).or_default();
        sample.each(state, |row| {
            row.dispatched += 1;
            row.waited(bucket_of(wait_ms), 1);
        });
    }

    /// Counts an attempt that ended at `end_ms`.
    pub fn ended(&self, held: &JobState, health: Health, end_ms: u64) {
        let mut minutes = self.0.lock();
        let sample = minutes.entry(end_ms / MINUTE_MS).or_default();
        sample.each(held, |row| {
            row.ended += 1;
            row.failed += u64::from(health != Health::Success);
            row.busy_ms += end_ms.saturating_sub(held.dispatch_ms);
        });
    }

    /// Returns the shares, if they were computed at or after this time.
    pub fn shares_since(&self, ms: u64) -> Option<SharesGot> {
        let known = self.1.lock();
        (known.at_ms > 0 && known.at_ms >= ms).then(|| known.clone())
    }

    /// Keeps computed shares.
    pub fn keep_shares(&self, shares: SharesGot) {
        *self.1.lock() = shares;
    }

    /// Returns the samples of past minutes. They stay until [`Samples::written`].
    pub fn over(&self, now_ms: u64) -> Vec<(u64, Sample)> {
        let mut minutes = self.0.lock();
        while minutes.len() > UNWRITTEN_MAX {
            minutes.pop_first();
        }
        let over = minutes.range(..now_ms / MINUTE_MS);
        over.map(|(minute, sample)| (*minute, sample.clone()))
            .collect()
    }

    /// Removes a stored sample, unless the minute has changed since: then it stays, and is stored again.
    pub fn written(&self, minute: u64, sample: &Sample) {
        let mut minutes = self.0.lock();
        if minutes.get(&minute) == Some(sample) {
            minutes.remove(&minute);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlead_fixtures::state;

    fn held(n: u64, account: &str) -> JobState {
        JobState {
            account: account.to_owned(),
            queue: account.to_owned(),
            host: "h".to_owned(),
            suite: "s".to_owned(),
            ready_ms: 1_000,
            dispatch_ms: 60_000 + n,
            ..state(n)
        }
    }

    #[test]
    fn what_ran_adds_up_by_every_name() {
        let samples = Samples::default();
        samples.dispatched(&held(1, "ann"));
        samples.dispatched(&held(2, "bob"));
        samples.ended(&held(1, "ann"), Health::Fail, 90_000);
        assert!(samples.over(119_999).is_empty(), "the minute is not over");
        let (minute, sample) = samples.over(120_000).remove(0);
        let of = |by, name: &str| sample.rows[&by][name].clone();
        assert_eq!(minute, 1);
        let ann = of(By::Account, "ann");
        assert_eq!(
            (ann.dispatched, ann.ended, ann.failed, ann.busy_ms),
            (1, 1, 1, 29_999)
        );
        assert_eq!(of(By::Host, "h").dispatched, 2);
        assert_eq!(of(By::Suite, "s").wait_s(500), Some(64));
        assert_eq!(Row::default().wait_s(500), None);
        // The sample is read as it was written.
        let text = serde_json::to_value(&sample).unwrap();
        assert_eq!(serde_json::from_value::<Sample>(text).unwrap(), sample);
        // A late end is not lost with the written ones.
        samples.ended(&held(2, "bob"), Health::Success, 91_000);
        samples.written(minute, &sample);
        assert_eq!(samples.over(120_000).len(), 1);
    }

    #[test]
    fn many_names_are_summed_up_and_none_is_lost() {
        let mut sample = Sample::default();
        for n in 0..1_000_u64 {
            let row = sample.row(By::Account, &format!("a{n}"));
            row.dispatched = n;
        }
        let cut = sample.cut();
        let rows = &cut.rows[&By::Account];
        assert_eq!(rows.len(), NAMES_MAX);
        assert_eq!(
            rows.values().map(|row| row.dispatched).sum::<u64>(),
            499_500
        );
        assert_eq!(rows["a999"].dispatched, 999);
        assert!(rows[OTHERS].dispatched > 0);
    }

    #[test]
    fn a_wait_falls_into_a_bucket_of_twice_the_one_before() {
        for (wait_ms, bucket) in [
            (0, 0),
            (999, 0),
            (1_000, 1),
            (1_999, 1),
            (2_000, 2),
            (3_999, 2),
            (4_000, 3),
        ] {
            assert_eq!(bucket_of(wait_ms), bucket, "{wait_ms}");
        }
    }
}
