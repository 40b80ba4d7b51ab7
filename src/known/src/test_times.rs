//! The history of tests: how often each passed and failed, and how long it takes, by suite and group of hosts.

use std::collections::BTreeMap;

use fairlead_cases::Run;
use fairlead_store::DocKind;
use serde::{Deserialize, Serialize};

use crate::pending::Pending;
use fairlead_base::storage::small_doc::SmallDoc;

/// Maximum number of remembered tests of a suite in a host group. The least recently run tests are dropped first.
const TESTS_MAX: usize = 20_000;
/// Weight of a new time in the moving average.
const NEW: f64 = 0.3;

/// Record of one test.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TestRecord {
    #[serde(default)]
    pub passed: u64,
    #[serde(default)]
    pub failed: u64,
    /// Average recent duration, seconds. `None`: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Time of its last run, UTC epoch ms.
    #[serde(default)]
    pub last_ms: u64,
}

/// Stored tests of a suite in a group of hosts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TestTimes {
    pub suite: String,
    pub group: String,
    #[serde(default)]
    pub tests: BTreeMap<String, TestRecord>,
}

impl SmallDoc for TestTimes {
    const KIND: DocKind = DocKind::TestTimes;
}

/// Returns the prefix of the ids of a suite's documents, for all groups.
pub fn prefix_of(suite: &str) -> String {
    let hash = blake3::hash(suite.as_bytes()).to_hex();
    format!("{}.", hash.get(..16).unwrap_or_default())
}

impl TestTimes {
    /// Adds runs.
    pub fn learn(&mut self, runs: &[Run], now_ms: u64) {
        for run in runs {
            let record = self.tests.entry(run.name.clone()).or_default();
            if run.is_bad {
                record.failed = record.failed.saturating_add(1);
            } else {
                record.passed = record.passed.saturating_add(1);
            }
            record.last_ms = now_ms;
            let seconds = run.seconds.filter(|s| s.is_finite() && *s >= 0.0);
            record.seconds = match (record.seconds, seconds) {
                (Some(before), Some(new)) => Some(before + NEW * (new - before)),
                (before, new) => new.or(before),
            };
        }
        let over = self.tests.len().saturating_sub(TESTS_MAX);
        if over > 0 {
            let times = self.tests.iter();
            let mut times: Vec<(u64, String)> = times
                .map(|(name, record)| (record.last_ms, name.clone()))
                .collect();
            times.sort_unstable();
            for (_, name) in times.into_iter().take(over) {
                self.tests.remove(&name);
            }
        }
    }
}

/// Suite and host group.
pub type Key = (String, String);

/// Runs that are not stored yet.
pub type PendingTimes = Pending<Key, Run>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_follow_what_is_measured_and_nonsense_changes_nothing() {
        let sample = |seconds, is_bad| Run {
            name: "a".to_owned(),
            is_bad,
            seconds,
        };
        let mut times = TestTimes::default();
        times.learn(&[sample(None, false), sample(Some(10.0), true)], 5);
        times.learn(
            &[sample(Some(20.0), false), sample(Some(f64::NAN), false)],
            6,
        );
        times.learn(&[sample(Some(-1.0), false)], 7);
        let record = &times.tests["a"];
        assert_eq!((record.passed, record.failed, record.last_ms), (4, 1, 7));
        assert_eq!(record.seconds, Some(13.0));
    }
}
