//! The history of a run: written by the submitters, the testboxes and the fault lanes, and read by the judge.
//!
//! All times are microseconds on one monotonic clock from the start of the run. [`History::at`] converts the replicas'
//! logs, which use the machine's wall clock.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use fairlead_cluster::clock;
use parking_lot::{Mutex, MutexGuard};

/// Microseconds since the start of the run.
pub(super) type Micros = u64;

/// A job whose submit was acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Acked {
    pub(super) job: String,
    /// Number that the submitter gave it.
    pub(super) number: u64,
    pub(super) vip: bool,
    pub(super) hw: bool,
    pub(super) at: Micros,
}

/// Interval during which a job ran on a testbox. A pause of the testbox ends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) job: String,
    pub(super) attempt: u16,
    pub(super) token: String,
    pub(super) host: String,
    pub(super) memory_mb: u32,
    pub(super) start: Micros,
    /// End of the interval. `None`: it still runs.
    pub(super) end: Option<Micros>,
}

/// A report that a job ended well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finish {
    pub(super) job: String,
    pub(super) attempt: u16,
    /// True if the scheduler confirmed it. False: it refused, so another attempt counts.
    pub(super) confirmed: bool,
    pub(super) at: Micros,
}

/// A file that a job left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Upload {
    pub(super) job: String,
    pub(super) attempt: u16,
    /// Path of the file.
    pub(super) path: String,
    pub(super) bytes: usize,
    /// True if the scheduler confirmed it. False: it refused, or the testbox gave up.
    pub(super) acked: bool,
}

impl Upload {
    /// Returns the content of the file, which follows from its path.
    pub(super) fn content(&self) -> Vec<u8> {
        self.path.bytes().cycle().take(self.bytes).collect()
    }
}

/// Facts of the whole run.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) acked: Vec<Acked>,
    /// Numbers of jobs whose submit got no conclusive answer.
    pub(super) unknown: Vec<u64>,
    /// Numbers of jobs that were certainly refused.
    pub(super) refused: Vec<u64>,
    pub(super) intervals: Vec<Interval>,
    /// Reports of good ends that were sent, answered or not, by job and attempt.
    pub(super) finishes_sent: Vec<(String, u16)>,
    pub(super) finishes: Vec<Finish>,
    pub(super) uploads: Vec<Upload>,
    /// Grants to a testbox that had no room for them.
    pub(super) overgranted: Vec<String>,
    /// Durations of submits, with all their retries.
    pub(super) submit_took: Vec<Micros>,
    /// Durations of requests for work that brought some.
    pub(super) consume_took: Vec<Micros>,
    /// Number of each kind of trouble at the testboxes.
    pub(super) agent_troubles: BTreeMap<&'static str, u64>,
    /// Faults: time, kind, description.
    pub(super) faults: Vec<(Micros, &'static str, String)>,
}

/// Records the facts of a run.
#[derive(Debug)]
pub(super) struct History {
    start: Instant,
    start_unix: Duration,
    facts: Mutex<Facts>,
}

impl History {
    pub(super) fn begin() -> Self {
        #[expect(clippy::disallowed_methods, reason = "to place logs on our clock")]
        let wall = SystemTime::now();
        Self {
            start: clock::now(),
            start_unix: wall.duration_since(UNIX_EPOCH).unwrap_or_default(),
            facts: Mutex::default(),
        }
    }

    pub(super) fn now(&self) -> Micros {
        micros(clock::now().saturating_duration_since(self.start))
    }

    /// Converts a wall time in microseconds since the epoch to our clock. Times before the start give 0.
    pub(super) fn at(&self, unix: Duration) -> Micros {
        micros(unix.saturating_sub(self.start_unix))
    }

    pub(super) fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock()
    }

    /// Notes that a job starts or goes on. Returns the number for [`History::stopped`].
    pub(super) fn started(&self, interval: Interval) -> usize {
        let mut facts = self.facts();
        facts.intervals.push(interval);
        facts.intervals.len() - 1
    }

    /// Notes that it runs no more.
    pub(super) fn stopped(&self, number: usize) {
        let now = self.now();
        if let Some(interval) = self.facts().intervals.get_mut(number) {
            interval.end = Some(now);
        }
    }

    /// Notes a trouble at a testbox.
    pub(super) fn trouble(&self, what: &'static str) {
        *self.facts().agent_troubles.entry(what).or_default() += 1;
    }

    /// Notes the start of a fault.
    pub(super) fn fault(&self, kind: &'static str, what: String) {
        let now = self.now();
        self.facts().faults.push((now, kind, what));
    }
}

pub(super) fn micros(time: Duration) -> Micros {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
