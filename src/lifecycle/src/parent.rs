//! A parent of shards: when its shards are released, and how it is told to stop. Pure.

use fairlead_job::{Health, Stage};
use fairlead_store::JobState;

/// Returns the parent released: it waits for nothing more, so its shards may be made.
pub fn released(mut state: JobState, now_ms: u64) -> JobState {
    if let Some(shards) = state.shards.as_mut().filter(|it| it.released_ms == 0) {
        shards.released_ms = now_ms;
    }
    state
}

/// Returns true if the shards of a parent were released.
pub fn is_released(state: &JobState) -> bool {
    let shards = state.shards.as_ref();
    shards.is_some_and(|shards| shards.released_ms > 0)
}

/// Returns a parent whose shards must stop, so that it ends with this health. A parent that stops already is unchanged.
pub fn stopping(parent: &JobState, health: Health, now_ms: u64, reason: &str) -> JobState {
    if parent.stop_asked {
        return parent.clone();
    }
    JobState {
        stop_asked: true,
        stop_ms: now_ms,
        stop_health: Some(health),
        reason: reason.to_owned(),
        ..parent.clone()
    }
    .set_alarm()
}

/// Returns a group that no job may join from now on. A closed group is unchanged.
pub fn closed(parent: &JobState, now_ms: u64) -> JobState {
    let mut next = parent.clone();
    if let Some(shards) = next.shards.as_mut().filter(|shards| shards.is_open()) {
        shards.closed_ms = now_ms.max(1);
    }
    next.set_alarm()
}

/// Returns a closed group with its final number of shards.
pub fn counted(parent: &JobState, count: u16) -> JobState {
    let mut next = parent.clone();
    if let Some(shards) = next.shards.as_mut().filter(|shards| shards.is_uncounted()) {
        shards.count = count;
    }
    next.set_alarm()
}

/// Returns the stage of a parent that ends with this health.
pub fn end_stage(health: Health) -> Stage {
    if health == Health::Cancel {
        Stage::Cancel
    } else {
        Stage::Finish
    }
}
