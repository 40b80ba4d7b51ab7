//! Timers: their stored documents, and pure rules for what is due.
//!
//! A run starts in three steps, and the replica may die after each of them:
//!
//! 1. A compare-and-set writes the run's id into the document, which thereby moves to its next time. So only one
//!    replica does it.
//! 2. A create makes the job under that id. So it is made once, whichever replica makes it.
//! 3. Another write notes in the document that the run exists.
//!
//! Between the first and the last step the document stays due, so another replica finds it and continues.

use std::{collections::BTreeMap, sync::Arc};

use fairlead_job::{FieldError, JobId, Missed, Overlap, Schedule, Spec};
use fairlead_store::{Doc, DocWrite, Expect, Version};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use fairlead_base::{clock::utc_text, storage::controller::Controller};

/// Delay after its due time beyond which a run counts as missed, ms. Restart or loss of a replica takes less.
pub const MISSED_MS: u64 = 60_000;
/// Maximum number of runs of one timer that wait for each other.
pub const QUEUED_MAX: usize = 16;
/// Maximum number of handled intervals that a timer remembers. The two oldest are merged beyond it.
pub const STRETCHES_MAX: usize = 8;
/// Time for which a handled version of a timer is remembered, ms. It exceeds the lag of searches.
pub const SEEN_MS: u64 = 10_000;

/// One run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Due time, UTC epoch ms.
    pub due_ms: u64,
    pub job_id: JobId,
}

/// Stored timer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Timer {
    /// Time of the next check, UTC epoch ms. 0: never. Derived by [`Timer::to_write`].
    pub at_ms: u64,
    pub account: String,
    pub name: String,
    /// Account in whose name it is submitted, if not the timer's own. The operator's name is empty.
    pub submitter: String,
    /// Fields `every` or `cron`, `timezone`, `overlap` and `missed`, as written.
    pub when: Spec,
    /// Job to submit, with sealed secrets.
    pub job: Spec,
    /// Start of the period, UTC epoch ms.
    pub from_ms: u64,
    pub paused: bool,
    /// Due time of the next run, UTC epoch ms. 0: none.
    pub next_ms: u64,
    /// A run whose job may not exist yet.
    pub pending: Option<Run>,
    pub last: Option<Run>,
    /// Handled intervals of due times without a gap, first and last, UTC epoch ms, oldest first. A clock that is set
    /// back reaches these times again, and none may run twice. Empty: all times up to the last run.
    pub done: Vec<(u64, u64)>,
    /// Unfinished runs at its last due time, oldest first.
    pub open: Vec<JobId>,
    /// Number of runs.
    pub runs: u64,
    /// Number of due times skipped because an earlier run had not ended.
    pub skipped: u64,
    /// Number of due times that passed while no replica could start a run.
    pub missed: u64,
    /// Number of runs refused by the checks of submits.
    pub refused: u64,
    /// Reason why the latest due time had no run. Empty: it had one.
    pub why: String,
}

impl Timer {
    pub fn schedule(&self) -> Result<Schedule, FieldError> {
        Schedule::required(&self.when)
    }

    /// Returns true if it must be checked. A started run is always due, even if the clock was set back.
    pub fn is_due(&self, now_ms: u64) -> bool {
        self.pending.is_some() || (1..=now_ms).contains(&self.at_ms)
    }

    /// Returns its next due time from `now_ms` on, without times that had their run. Clocks of replicas may differ.
    pub fn next_from(&self, schedule: &Schedule, now_ms: u64) -> u64 {
        if self.paused {
            return 0;
        }
        let mut next_ms = schedule.next_ms(self.from_ms, now_ms);
        for (first_ms, last_ms) in self.stretches() {
            if next_ms.is_some_and(|next_ms| (first_ms..=last_ms).contains(&next_ms)) {
                next_ms = schedule.next_ms(self.from_ms, last_ms);
            }
        }
        next_ms.unwrap_or(0)
    }

    pub fn stretches(&self) -> Vec<(u64, u64)> {
        let last = self.last.filter(|_| self.done.is_empty());
        let until_last = last.map(|run| (0, run.due_ms));
        self.done.iter().copied().chain(until_last).collect()
    }

    /// Notes that a due time was handled.
    pub fn see_to(&mut self, schedule: &Schedule, due_ms: u64) {
        let mut done = self.stretches();
        let follows = |last_ms| schedule.next_ms(self.from_ms, last_ms) == Some(due_ms);
        match done.iter_mut().find(|(_, last_ms)| follows(*last_ms)) {
            Some((_, last_ms)) => *last_ms = due_ms,
            None => done.push((due_ms, due_ms)),
        }
        done.sort_unstable();
        while done.len() > STRETCHES_MAX {
            // The gap between the two oldest intervals counts as handled too: it is better to skip a time than to run
            // it twice.
            let (first_ms, _) = done.remove(0);
            if let Some(oldest) = done.first_mut() {
                oldest.0 = first_ms;
            }
        }
        self.done = done;
    }

    /// Returns the timer after this machine's clock was set back. It is due at the next time by the new clock that was
    /// not handled. `None`: no change.
    pub fn follow(&self, schedule: &Schedule, now_ms: u64, is_step: bool) -> Option<Self> {
        if self.paused || self.pending.is_some() || self.next_ms == 0 {
            return None;
        }
        let mut timer = self.clone();
        if is_step && self.from_ms > now_ms {
            // The shift is in whole periods, so that the due times stay the same (seed 4355).
            let period_ms = schedule.shortest_ms(now_ms).max(1);
            let periods = (self.from_ms - now_ms).div_ceil(period_ms);
            timer.from_ms = self
                .from_ms
                .saturating_sub(periods.saturating_mul(period_ms));
        }
        timer.next_ms = timer.next_from(schedule, now_ms);
        (1..self.next_ms).contains(&timer.next_ms).then_some(timer)
    }

    /// Returns the id of its document.
    pub fn id(&self) -> String {
        id_of(&self.account, &self.name)
    }

    /// Returns the write that stores it over this version.
    pub fn to_write(&self, expect: Expect) -> DocWrite {
        let due = self.pending.map_or(self.next_ms, |run| run.due_ms);
        let timer = Self {
            at_ms: due,
            ..self.clone()
        };
        DocWrite {
            id: self.id(),
            expect,
            body: serde_json::to_value(timer).ok(),
        }
    }

    /// Returns the timer after a due time has come. `open` are its unfinished runs, and `job_id` is the id for the new
    /// run, if there is one.
    #[must_use]
    pub fn advance(
        mut self,
        schedule: &Schedule,
        open: Vec<JobId>,
        now_ms: u64,
        job_id: JobId,
    ) -> Self {
        if self.pending.is_some() || self.next_ms == 0 {
            return self;
        }
        // Handled times are not due again.
        let ahead = self.stretches().into_iter().map(|(first_ms, _)| first_ms);
        let stretch_ms = ahead.filter(|first_ms| *first_ms > self.next_ms).min();
        let until_ms = stretch_ms.map_or(now_ms, |first_ms| now_ms.min(first_ms - 1));
        let Some(due) = schedule.due(self.from_ms, self.next_ms, until_ms) else {
            return self;
        };
        self.next_ms = self.next_from(schedule, until_ms.max(due.latest_ms));
        self.open = open;
        let due_text = utc_text(due.latest_ms);
        let too_late = now_ms.saturating_sub(due.latest_ms) > MISSED_MS;
        if too_late && schedule.missed == Missed::Skip {
            self.missed += due.times;
            self.why = format!("the run due at {due_text} was missed: no scheduler could start it");
            return self;
        }
        self.see_to(schedule, due.latest_ms);
        self.next_ms = self.next_from(schedule, until_ms);
        self.missed += due.times - 1;
        let behind = self.open.last().filter(|_| match schedule.overlap {
            Overlap::Skip => true,
            Overlap::Queue => self.open.len() >= QUEUED_MAX,
            Overlap::Replace => false,
        });
        if let Some(job) = behind {
            let count = self.open.len();
            let runs = if count == 1 {
                format!("job {job} has not ended")
            } else {
                format!("{count} runs have not ended, the last is job {job}")
            };
            self.skipped += 1;
            self.why = format!("the run due at {due_text} was skipped: {runs}");
            return self;
        }
        self.pending = Some(Run {
            due_ms: due.latest_ms,
            job_id,
        });
        self
    }

    /// Returns the timer after the job of its pending run was stored.
    #[must_use]
    pub fn started(mut self) -> Self {
        if let Some(run) = self.pending.take() {
            self.runs += 1;
            self.open.push(run.job_id);
            self.last = Some(run);
            self.why = String::new();
        }
        self
    }

    /// Returns the timer after its pending run was refused.
    #[must_use]
    pub fn turned_down(mut self, why: &str) -> Self {
        if let Some(run) = self.pending.take() {
            self.refused += 1;
            let due = utc_text(run.due_ms);
            self.why = format!("the run due at {due} was refused: {why}");
        }
        self
    }
}

/// Returns the id of an account's timer. All timers of an account share a prefix.
pub fn id_of(account: &str, name: &str) -> String {
    format!("{account}/{name}")
}

/// A timer as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    pub version: Version,
    pub timer: Timer,
}

impl Stored {
    /// Returns the timer of a document. `None`: it is unreadable, which is logged.
    pub fn of(doc: Doc) -> Option<Self> {
        match Timer::deserialize(doc.body) {
            Ok(timer) => Some(Self {
                version: doc.version,
                timer,
            }),
            Err(error) => {
                tracing::error!(timer = doc.id, %error, "the stored timer is malformed and was skipped");
                None
            }
        }
    }
}

/// A timer that is due soon.
#[derive(Debug, Clone, PartialEq)]
pub enum Known {
    /// This replica wrote it.
    Written(Box<Stored>),
    /// A search found it.
    Seen {
        id: String,
        version: Version,
        /// True if this replica handles it first. The others skip it if it has changed since.
        is_first: bool,
    },
}

impl Known {
    pub fn id(&self) -> String {
        match self {
            Self::Written(stored) => stored.timer.id(),
            Self::Seen { id, .. } => id.clone(),
        }
    }

    pub fn version(&self) -> Version {
        match self {
            Self::Written(stored) => stored.version,
            Self::Seen { version, .. } => *version,
        }
    }

    pub fn is_first(&self) -> bool {
        match self {
            Self::Written(_) => true,
            Self::Seen { is_first, .. } => *is_first,
        }
    }
}

/// Timers that are due soon, and recently handled versions.
#[derive(Debug)]
pub struct Timers {
    pub book: Arc<Controller<String, Known>>,
    pub seen: Mutex<BTreeMap<String, (Version, u64)>>,
}

impl Timers {
    pub fn new(book: Arc<Controller<String, Known>>) -> Self {
        Self {
            book,
            seen: Mutex::default(),
        }
    }

    /// Remembers that this version was handled at `now_ms`, because a search may still find it.
    pub fn see_to(&self, id: &str, version: Version, now_ms: u64) {
        let mut seen = self.seen.lock();
        seen.insert(id.to_owned(), (version, now_ms.saturating_add(SEEN_MS)));
    }

    pub fn was_seen_to(&self, id: &str, version: Version) -> bool {
        let seen = self.seen.lock();
        seen.get(id).is_some_and(|(seen, _)| *seen >= version)
    }

    /// Forgets handled versions that searches no longer find.
    pub fn sweep(&self, now_ms: u64) {
        let mut seen = self.seen.lock();
        seen.retain(|_, (_, until_ms)| *until_ms > now_ms);
    }

    /// Forgets everything, so that it is read again.
    pub fn clear(&self) {
        self.book.clear();
        let mut seen = self.seen.lock();
        seen.clear();
    }
}

/// Returns a field of a body, as text.
pub fn text_of<'s>(spec: &'s Spec, field: &str) -> Option<&'s str> {
    spec.get(field).and_then(Value::as_str)
}

#[cfg(test)]
mod rules {
    use serde_json::json;

    use super::*;

    pub(crate) const MIN: u64 = 60_000;

    pub(crate) fn timer(when: &Value) -> Timer {
        Timer {
            account: "ann".to_owned(),
            name: "nightly".to_owned(),
            when: when.as_object().unwrap().clone(),
            next_ms: 10 * MIN,
            ..Timer::default()
        }
    }

    pub(crate) fn advance(timer: &Timer, open: &[u64], now_ms: u64) -> Timer {
        let schedule = timer.schedule().unwrap();
        let open = open.iter().map(|id| JobId::new(*id)).collect();
        timer
            .clone()
            .advance(&schedule, open, now_ms, JobId::new(7))
    }

    pub(crate) fn pending(timer: &Timer) -> Option<(u64, u64)> {
        timer.pending.map(|run| (run.due_ms, run.job_id.get()))
    }

    #[test]
    pub(crate) fn a_run_comes_at_its_time_and_the_timer_moves_on() {
        let timer = timer(&json!({"every": "10m"}));
        assert_eq!(advance(&timer, &[], 10 * MIN - 1), timer);
        let next = advance(&timer, &[], 10 * MIN + 5);
        assert_eq!(
            (pending(&next), next.next_ms),
            (Some((10 * MIN, 7)), 20 * MIN)
        );
        // The run stays due until its job exists, and has no other effect.
        let write = next.to_write(Expect::Any);
        assert_eq!(write.body.unwrap()["at_ms"], 10 * MIN);
        assert_eq!(advance(&next, &[], 30 * MIN), next);
        let done = next.clone().started();
        assert_eq!(
            (done.runs, done.pending, done.last),
            (1, None, next.pending)
        );
        assert_eq!(done.open, [JobId::new(7)]);
        assert_eq!(done.to_write(Expect::Any).body.unwrap()["at_ms"], 20 * MIN);
        let refused = next.turned_down("no such account");
        assert_eq!(
            (refused.refused, refused.pending, refused.last),
            (1, None, None)
        );
        assert!(refused.why.contains("refused: no such account"));
    }

    #[test]
    pub(crate) fn what_is_missed_is_run_once_or_not_at_all() {
        let late = 35 * MIN;
        let once = advance(&timer(&json!({"every": "10m"})), &[], late);
        assert_eq!((pending(&once), once.missed), (Some((30 * MIN, 7)), 2));
        let skip = timer(&json!({"every": "10m", "missed": "skip"}));
        let skipped = advance(&skip, &[], late);
        assert_eq!(
            (pending(&skipped), skipped.missed, skipped.next_ms),
            (None, 3, 40 * MIN)
        );
        assert!(skipped.why.contains("missed"), "{}", skipped.why);
        // A restart causes no missed run. A run that is not late starts, even if earlier ones were missed.
        let soon = advance(&skip, &[], 31 * MIN);
        assert_eq!((pending(&soon), soon.missed), (Some((30 * MIN, 7)), 2));
    }

    #[test]
    pub(crate) fn an_earlier_run_that_goes_on_is_minded() {
        let with = |overlap| timer(&json!({"every": "10m", "overlap": overlap}));
        let skipped = advance(&with("skip"), &[3], 10 * MIN);
        assert_eq!(
            (pending(&skipped), skipped.skipped, skipped.next_ms),
            (None, 1, 20 * MIN)
        );
        assert!(skipped.why.contains("has not ended"), "{}", skipped.why);
        let queued = advance(&with("queue"), &[3], 10 * MIN);
        assert_eq!(
            (pending(&queued), queued.open.len()),
            (Some((10 * MIN, 7)), 1)
        );
        let full: Vec<u64> = (1..=16).collect();
        let full = advance(&with("queue"), &full, 10 * MIN);
        assert_eq!((pending(&full), full.skipped), (None, 1));
        let replaced = advance(&with("replace"), &[3, 4], 10 * MIN);
        assert_eq!(pending(&replaced), Some((10 * MIN, 7)));
    }

    #[test]
    pub(crate) fn a_timer_comes_back_from_its_document() {
        let mut timer = timer(&json!({"cron": "@daily"}));
        timer.pending = Some(Run {
            due_ms: 5,
            job_id: JobId::new(8),
        });
        timer.at_ms = 5;
        let body = timer.to_write(Expect::Any).body.unwrap();
        let doc = Doc {
            id: timer.id(),
            version: Version::default(),
            body,
        };
        assert_eq!(Stored::of(doc).unwrap().timer, timer);
    }
}
