//! Effects of time on a waiting job: it becomes ready, or it has waited too long.

use fairlead_job::{Health, Stage, WaitOn, Waits};
use fairlead_store::JobState;

use crate::{
    attempt::ended,
    parent::{is_released, released},
};

/// Returns the next state of a waiting job at `now_ms`. `None`: no change yet.
pub fn at_alarm(state: &JobState, now_ms: u64) -> Option<JobState> {
    if state.stage != Stage::Submit || is_released(state) {
        // The fate of a parent depends on its shards.
        return None;
    }
    let over = |reason: &str| {
        let health = Health::TimeoutSubmit;
        Some(ended(state, Stage::Finish, health, now_ms, reason))
    };
    if state.finish_by_ms > 0 && state.finish_by_ms <= now_ms {
        return over("it had not begun by its deadline");
    }
    if state.queue_until_ms().is_some_and(|until| until <= now_ms) {
        let limit_s = state.queue_timeout_s;
        return over(&format!(
            "no testbox took it within its queue_timeout of {limit_s} s"
        ));
    }
    if state
        .elsewhere_until_ms()
        .is_some_and(|until| until <= now_ms)
    {
        return Some(anywhere(state, "no other host took it for an hour"));
    }
    if state.otherwise_ms().is_some_and(|from| from <= now_ms) {
        return Some(JobState {
            any_of: state.widest_any_of(),
            otherwise: None,
            ..state.clone()
        });
    }
    if state.ready || state.start_ms == 0 || state.start_ms > now_ms {
        return None;
    }
    Some(begin(
        JobState {
            start_ms: 0,
            ..state.clone()
        },
        now_ms,
    ))
}

/// Returns true if a waiting job waits for nothing but its turn in its sequence.
pub fn is_ripe(state: &JobState) -> bool {
    state.start_ms == 0 && state.waits.is_none() && state.held_by.is_empty()
}

/// Makes the job wait for others. Neither it nor any of its shards begins before them.
pub fn waiting(mut state: JobState, on: WaitOn) -> JobState {
    state.ready = false;
    state.waits = Some(Waits::Jobs(on));
    if let Some(shards) = state.shards.as_mut() {
        shards.released_ms = 0;
    }
    state.set_alarm()
}

/// Makes a waiting job ready, if it waits for nothing more.
pub fn begin(mut state: JobState, now_ms: u64) -> JobState {
    let has_turn = state.sequence.is_empty() || state.sequence_turn;
    let is_free = is_ripe(&state) && has_turn;
    if is_free && state.shards.is_some() {
        return released(state, now_ms);
    }
    if is_free {
        state.ready = true;
        state.ready_ms = now_ms;
    }
    state
}

/// Returns the job free to run on any host, including those on which it failed.
pub fn anywhere(state: &JobState, because: &str) -> JobState {
    let before = if state.reason.is_empty() {
        String::new()
    } else {
        format!("{}; ", state.reason)
    };
    JobState {
        not_on: Vec::new(),
        reason: format!("{before}{because}: it may run again where it failed"),
        ..state.clone()
    }
}
