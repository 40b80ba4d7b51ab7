//! When a waiting job must be looked at.

use fairlead_job::{Alternative, Stage};

use crate::JobState;

impl JobState {
    /// Returns the end of its wait for a testbox, UTC epoch ms; `None`: no limit, or it is not ready yet.
    pub fn queue_until_ms(&self) -> Option<u64> {
        let limit_ms = self.queue_timeout_s.saturating_mul(1000);
        (self.ready && limit_ms > 0).then(|| self.ready_ms.saturating_add(limit_ms))
    }

    /// Returns the time until which `not_on` holds, UTC epoch ms; `None`: it is empty, or the job is not ready yet.
    pub fn elsewhere_until_ms(&self) -> Option<u64> {
        let waits = self.ready && !self.not_on.is_empty();
        waits.then(|| self.ready_ms.saturating_add(Self::ELSEWHERE_MS))
    }

    /// Returns the time from which its `else` holds as well, UTC epoch ms; `None`: it has none, or the job is not
    /// ready yet.
    pub fn otherwise_ms(&self) -> Option<u64> {
        let otherwise = self.otherwise.as_ref().filter(|_| self.ready)?;
        let after_ms = otherwise.after_s.saturating_mul(1000);
        Some(self.ready_ms.saturating_add(after_ms))
    }

    /// Returns its alternatives once its `else` holds; without an `else` the present ones.
    pub fn widest_any_of(&self) -> Vec<Alternative> {
        let mut any_of = self.any_of.clone();
        match self.otherwise.as_deref() {
            None => {}
            // Every host meets it.
            Some(last) if last.tags.is_empty() && last.not_tags.is_empty() => any_of.clear(),
            Some(last) => any_of.push(Alternative {
                tags: last.tags.clone(),
                not_tags: last.not_tags.clone(),
            }),
        }
        any_of
    }

    /// Time after their release at which a replica checks that all shards are in the store, ms.
    pub const SHARDS_CHECK_MS: u64 = 5_000;

    /// Returns the time at which a parent must be looked at because shards are missing or must stop; `None`: not for
    /// that.
    fn shards_ms(&self) -> Option<u64> {
        let shards = self
            .shards
            .as_ref()
            .filter(|shards| shards.released_ms > 0)?;
        let since_ms = if self.stop_asked {
            self.stop_ms
        } else {
            let is_due = !shards.made && !shards.is_open();
            Some(shards.released_ms.max(shards.closed_ms)).filter(|_| is_due)?
        };
        Some(since_ms.saturating_add(Self::SHARDS_CHECK_MS))
    }

    /// Computes `alarm_ms`: the first time at which the job changes without an event. Each writer of a state calls
    /// this last.
    #[must_use]
    pub fn set_alarm(mut self) -> Self {
        let start = Some(self.start_ms).filter(|_| !self.ready);
        let times = [
            start,
            self.queue_until_ms(),
            self.elsewhere_until_ms(),
            self.otherwise_ms(),
            self.shards_ms(),
            Some(self.finish_by_ms).filter(|_| !self.stop_asked),
        ];
        let first = times.into_iter().flatten().filter(|ms| *ms > 0).min();
        self.alarm_ms = first.filter(|_| self.stage == Stage::Submit).unwrap_or(0);
        self
    }
}
