//! Jobs that wait for a time: put back after a lost lease, with a pause that grows.
//!
//! Such a job is stored with `ready: false` and the time in `waits`. Every replica knows of it; whoever put
//! it back makes it ready first, the others a little later if it is still parked.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use fairlead_job::{JobId, Stage};
use fairlead_store::JobState;
use serde_json::{Value, json};

use crate::core::Core;

/// The name of the time in `waits`.
const UNTIL: &str = "until_ms";
/// The pause after the first lost attempt, ms; doubled with each.
const PAUSE_MS: u64 = 1_000;
/// The longest pause, ms.
const PAUSE_MAX_MS: u64 = 300_000;
/// How much later than its time a replica looks that did not put the job back, ms.
const OTHERS_LATER_MS: u64 = 2_000;
/// How often the clock is looked at, ms.
const TICK_MS: u64 = 250;

/// What a job waits for that may run from `until_ms`, UTC epoch ms.
pub(crate) fn until(until_ms: u64) -> Value {
    json!({ UNTIL: until_ms })
}

/// Until when this job is parked; `None`: it waits for no time.
pub(crate) fn until_of(state: &JobState) -> Option<u64> {
    state.waits.as_ref()?.get(UNTIL)?.as_u64()
}

/// The pause before attempt `next` of a job, ms: twice the one before, half of it at the most by chance, so
/// that jobs that were lost together do not come back together.
pub(crate) fn pause_ms(id: JobId, next: u16) -> u64 {
    let doublings = u32::from(next.saturating_sub(2)).min(20);
    let whole = PAUSE_MS.saturating_mul(1 << doublings).min(PAUSE_MAX_MS);
    let hash = blake3::hash(format!("{id}/{next}").as_bytes());
    let chance = u64::from(hash.as_bytes().first().copied().unwrap_or(0));
    whole / 2 + whole / 2 * chance / 255
}

/// Parked jobs, by when they are looked at, UTC epoch ms.
#[derive(Debug, Default)]
pub(crate) struct Parked(Mutex<BTreeSet<(u64, JobId)>>);

impl Parked {
    /// Somebody else put it back: remembers it, if it is parked.
    pub(crate) fn add(&self, state: &JobState) {
        if let Some(until_ms) = until_of(state) {
            self.insert(until_ms.saturating_add(OTHERS_LATER_MS), state.job_id);
        }
    }

    /// This replica put it back.
    pub(crate) fn add_own(&self, state: &JobState) {
        if let Some(until_ms) = until_of(state) {
            self.insert(until_ms, state.job_id);
        }
    }

    fn insert(&self, at_ms: u64, id: JobId) {
        self.with(|all| all.insert((at_ms, id)));
    }

    pub(crate) fn due(&self, now_ms: u64) -> Vec<JobId> {
        self.with(|all| {
            let later = all.split_off(&(now_ms.saturating_add(1), JobId::new(0)));
            std::mem::replace(all, later)
                .into_iter()
                .map(|(_, id)| id)
                .collect()
        })
    }

    fn with<R>(&self, work: impl FnOnce(&mut BTreeSet<(u64, JobId)>) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Core {
    /// Makes parked jobs ready when their time has come, until the replica stops.
    pub(crate) async fn watch_parked(self: Arc<Self>) {
        loop {
            tokio::select! {
                biased;
                () = self.draining.cancelled() => return,
                () = self.clock.sleep(Duration::from_millis(TICK_MS)) => {}
            }
            for id in self.parked.due(self.clock.wall_ms()) {
                self.unpark(id).await;
            }
        }
    }

    async fn unpark(self: &Arc<Self>, id: JobId) {
        let now_ms = self.clock.wall_ms();
        let outcome = self
            .change(id, |state| {
                let parked = state.stage == Stage::Submit && !state.ready;
                let due = until_of(state).is_some_and(|until_ms| until_ms <= now_ms);
                Ok((parked && due).then(|| JobState {
                    ready: true,
                    ready_ms: now_ms,
                    waits: None,
                    ..state.clone()
                }))
            })
            .await;
        if let Err(refusal) = outcome {
            let error = refusal.body.message;
            tracing::warn!(job_id = %id, error, "a parked job is looked at later");
            self.parked
                .insert(now_ms.saturating_add(OTHERS_LATER_MS), id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::state;

    #[test]
    fn pauses_double_and_differ() {
        let id = JobId::new(5);
        let pauses: Vec<u64> = (2..=12).map(|next| pause_ms(id, next)).collect();
        assert!((500..=1_000).contains(&pauses[0]), "{pauses:?}");
        assert!((4_000..=8_000).contains(&pauses[3]), "{pauses:?}");
        assert!(
            pauses.iter().all(|ms| *ms <= PAUSE_MAX_MS) && pauses[10] >= PAUSE_MAX_MS / 2,
            "{pauses:?}"
        );
        let others: BTreeSet<u64> = (1..=50).map(|n| pause_ms(JobId::new(n), 9)).collect();
        assert!(others.len() > 30, "jobs come back at times of their own");
    }

    #[test]
    fn jobs_come_due_in_time_and_once() {
        let parked = Parked::default();
        let of = |n, until_ms| JobState {
            waits: Some(until(until_ms)),
            ..state(n)
        };
        parked.add_own(&of(1, 10));
        parked.add(&of(2, 10));
        parked.add(&state(3));
        assert_eq!(parked.due(9), []);
        assert_eq!(parked.due(10), [JobId::new(1)]);
        assert_eq!(parked.due(10 + OTHERS_LATER_MS), [JobId::new(2)]);
        assert_eq!(parked.due(u64::MAX - 1), []);
    }
}
