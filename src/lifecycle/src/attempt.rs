//! The life of an attempt: given back, lost, cancelled, stopped, ended, retried. Pure.

use fairlead_dispatch::NOT_ON_MAX;
use fairlead_job::{Cause, DataReadiness, Health, Stage};
use fairlead_store::{Attempt, ClusterPlace, JobState};

use crate::{
    parent::{is_released, stopping},
    result_paths::attempt_root,
};

/// Maximum grace period between SIGTERM and SIGKILL, seconds. Agents wait no longer.
pub const STOP_GRACE_MAX_S: u32 = 3_600;

/// Maximum number of earlier attempts kept in a job's state.
const ATTEMPTS_KEPT: usize = NOT_ON_MAX;

/// Time after a submit during which a job's body may still appear, ms. It exceeds the time for the answer of a submit.
pub const BODY_COMES_MS: u64 = 60_000;

/// Maximum delay between the writes of two jobs of one submit, ms.
pub const MISSING_MS: u64 = 60_000;

/// Delay before a job without a body is handed out again, ms.
pub const BODY_AGAIN_MS: u64 = 5_000;

/// Time for which a job waits for the key of its secrets, ms. An operator may be importing it.
pub const KEY_COMES_MS: u64 = 60_000;

/// Time for which a job without a kernel in the boot store pauses, ms. An operator may be copying it.
const KERNEL_COMES_MS: u64 = 60_000;

/// Reason why such a job waits, and why it ends.
pub const NO_KEY: &str = "its secrets cannot be opened: they are sealed with a key that this lab does not have (an operator can import it)";

/// Prefix of the sessions of testboxes that boot over the network (iPXE, grub). They send no heartbeats.
pub const BOOT_SESSION: &str = "boot:";

/// Returns a job to the queue because its grant was never delivered. The attempt does not count.
pub fn given_back(state: &JobState, now_ms: u64, reason: &str) -> JobState {
    if let Some(health) = stopped_unheard(state) {
        return attempt_over(state, health, now_ms, reason);
    }
    let mut next = waiting_again(state, now_ms);
    reason.clone_into(&mut next.reason);
    next
}

/// Reason of the end of a job whose body never appeared.
pub const NO_BODY: &str = "its body is not in the store";

/// Returns true if a missing body cannot appear any more.
pub fn is_without_body(state: &JobState, now_ms: u64) -> bool {
    now_ms.saturating_sub(state.submit_ms) >= BODY_COMES_MS
}

/// Returns the state of a claimed job whose body is not in the store. A submit writes both documents at once, but a
/// slow node may store one much later, so the job waits. A job whose body never appears was never acknowledged.
pub fn without_body(state: &JobState, now_ms: u64) -> JobState {
    let reason = NO_BODY;
    if is_without_body(state, now_ms) {
        return ended(
            state,
            Stage::AbortInvalid,
            Health::AbortInvalid,
            now_ms,
            reason,
        );
    }
    not_before(given_back(state, now_ms, reason), now_ms, BODY_AGAIN_MS)
}

/// Returns the state of a claimed job whose secrets cannot be opened. It waits for the key once, and then ends. Without
/// its secrets the job would fail in a way that is hard to understand.
pub fn without_key(state: &JobState, now_ms: u64) -> JobState {
    if state.reason == NO_KEY {
        let end = Stage::AbortInvalid;
        return ended(state, end, Health::AbortInvalid, now_ms, NO_KEY);
    }
    not_before(given_back(state, now_ms, NO_KEY), now_ms, KEY_COMES_MS)
}

/// Returns the state of a claimed job that its machine cannot boot. It waits for a kernel, or for a machine that needs
/// none.
pub fn without_kernel(state: &JobState, now_ms: u64, problem: &str) -> JobState {
    not_before(given_back(state, now_ms, problem), now_ms, KERNEL_COMES_MS)
}

/// Returns the state of a claimed job whose inputs or outputs are unreadable, because another version wrote them.
pub fn without_fields(state: &JobState, now_ms: u64) -> JobState {
    let end = Stage::AbortInvalid;
    let reason = "this version of the scheduler cannot read its inputs and outputs";
    ended(state, end, Health::AbortInvalid, now_ms, reason)
}

/// Delays a job by `for_ms`.
fn not_before(mut next: JobState, now_ms: u64, for_ms: u64) -> JobState {
    if next.stage == Stage::Submit {
        next.ready = false;
        next.start_ms = next.start_ms.max(now_ms.saturating_add(for_ms));
    }
    next
}

/// Returns the state after an attempt ended with `health`. The job is tried again while it has tries for such ends, and
/// otherwise ends.
pub fn attempt_over(state: &JobState, health: Health, now_ms: u64, reason: &str) -> JobState {
    // A stopped job gets no other attempt.
    let stopped = stopped_with(state) == Some(Health::Terminate);
    let cause = health.cause().filter(|_| !stopped);
    let goes_along = left_behind(state);
    let mut next = waiting_again(state, now_ms);
    let left = match cause {
        Some(Cause::Infra) => Some(&mut next.retry_lost_left),
        Some(own) if state.retry_on.is_empty() || state.retry_on.contains(&own) => {
            Some(&mut next.retry_fail_left)
        }
        _ => None,
    };
    match left.filter(|left| **left > 0) {
        // This uses up a try of the peer, not of the job.
        _ if goes_along && !stopped => {}
        Some(left) => *left -= 1,
        None => return ended(state, Stage::Finish, health, now_ms, reason),
    }
    next.attempt = state.attempt.saturating_add(1);
    let pause_ms = crate::backoff::pause_ms(&next);
    let begins_ms = now_ms.saturating_add(pause_ms);
    if (1..=begins_ms).contains(&state.finish_by_ms) {
        // No time is left for another attempt.
        return ended(state, Stage::Finish, health, now_ms, reason);
    }
    if let Some(place) = &mut next.cluster
        && !goes_along
    {
        // The try counts for the whole cluster, so the others follow.
        place.round = place.round.saturating_add(1);
    }
    keep_attempt(&mut next, state, health, now_ms, reason);
    next.result_root = attempt_root(&state.result_root, state.attempt, next.attempt);
    next.reason = format!("attempt {} ended with {health}: {reason}", state.attempt);
    next.ready = pause_ms == 0;
    next.start_ms = if pause_ms == 0 { 0 } else { begins_ms };
    next
}

/// Adds the ended attempt to the record, and keeps the job off hosts that it must avoid.
fn keep_attempt(next: &mut JobState, state: &JobState, health: Health, now_ms: u64, reason: &str) {
    next.attempts.push(Attempt {
        attempt: state.attempt,
        host: state.host.clone(),
        host_class: match state.reuse {
            Some(_) => state.host_class.clone(),
            None => String::new(),
        },
        session: state.session.clone(),
        claim_token: state.claim_token.clone(),
        stage: state.stage,
        health,
        dispatch_ms: state.dispatch_ms,
        end_ms: now_ms,
        reason: reason.to_owned(),
    });
    if next.attempts.len() > ATTEMPTS_KEPT {
        next.attempts.remove(0);
    }
    if state.retry_elsewhere {
        avoid(next, &state.host);
    }
}

/// Keeps the next attempt of a job off a host.
pub fn avoid(next: &mut JobState, host: &str) {
    if next.not_on.iter().any(|not| not == host) {
        return;
    }
    next.not_on.push(host.to_owned());
    if next.not_on.len() > NOT_ON_MAX {
        next.not_on.remove(0);
    }
}

/// Returns the state of a waiting job that is cancelled. A parent with released shards ends after they have stopped.
pub fn cancelled(state: &JobState, now_ms: u64, reason: &str) -> JobState {
    if is_released(state) {
        return stopping(state, Health::Cancel, now_ms, reason);
    }
    JobState {
        data_readiness: DataReadiness::Norun,
        ..ended(state, Stage::Cancel, Health::Cancel, now_ms, reason)
    }
}

/// Returns the state of a job that its testbox must stop. `None`: it was already told to. A testbox that boots over the
/// network hears nothing before its job runs, so its job ends at once and its download is refused.
pub fn to_be_stopped(state: &JobState, now_ms: u64, reason: &str) -> Option<JobState> {
    let is_booting = matches!(state.stage, Stage::Dispatch | Stage::Boot);
    if is_booting && state.session.starts_with(BOOT_SESSION) {
        return Some(ended(
            state,
            Stage::Finish,
            Health::Terminate,
            now_ms,
            reason,
        ));
    }
    (!state.stop_asked).then(|| JobState {
        stop_asked: true,
        stop_ms: now_ms,
        reason: reason.to_owned(),
        ..state.clone()
    })
}

/// Returns the state of a job that ended for good.
pub fn ended(
    state: &JobState,
    stage: Stage,
    health: Health,
    now_ms: u64,
    reason: &str,
) -> JobState {
    let mut next = state.clone();
    if health != Health::Success {
        next.last_success_stage = Some(state.stage);
    }
    next.stage = stage;
    next.health = health;
    next.end_ms = now_ms;
    next.ready = false;
    next.waits = None;
    if next.data_readiness < DataReadiness::Uploaded {
        next.data_readiness = if state.running_ms == 0 {
            DataReadiness::Norun
        } else {
            DataReadiness::Incomplete
        };
    }
    reason.clone_into(&mut next.reason);
    next
}

fn waiting_again(state: &JobState, now_ms: u64) -> JobState {
    JobState {
        stage: Stage::Submit,
        health: Health::Unknown,
        data_readiness: DataReadiness::None,
        ready: true,
        ready_ms: now_ms,
        host: String::new(),
        host_group: String::new(),
        host_memory_mb: 0,
        host_cpus: 0,
        host_class: String::new(),
        session: String::new(),
        request: 0,
        claim_token: String::new(),
        claim_seq: state.claim_seq.wrapping_add(1),
        replica: String::new(),
        dispatch_ms: 0,
        boot_ms: 0,
        setup_ms: 0,
        wait_peer_ms: 0,
        running_ms: 0,
        post_run_ms: 0,
        manual_check_ms: 0,
        end_ms: 0,
        deadline_ms: 0,
        last_success_stage: None,
        exit_code: None,
        crash_signature: String::new(),
        outputs: String::new(),
        cases: None,
        peak_memory_mb: 0,
        cpu_ms: 0,
        stop_asked: false,
        stop_ms: 0,
        stop_health: None,
        stop_grace_s: None,
        milestones: Vec::new(),
        cluster: state.cluster.clone().map(|place| ClusterPlace {
            met: 0,
            address: String::new(),
            ..place
        }),
        ..state.clone()
    }
}

/// Returns true if the job runs in a past round of its cluster. Its peers wait for it to run again.
fn left_behind(state: &JobState) -> bool {
    let place = state.cluster.as_ref();
    place.is_some_and(ClusterPlace::is_left_behind)
}

/// Adds the attempt that ends by this change, if any, to the testbox time of the job.
pub fn count_used(before: &JobState, wanted: JobState, now_ms: u64) -> JobState {
    let ends = wanted.attempt > before.attempt || wanted.stage.is_terminal();
    if !before.stage.is_held() || !ends {
        return wanted;
    }
    let took_ms = now_ms.saturating_sub(before.dispatch_ms);
    JobState {
        used_ms: before.used_ms.saturating_add(took_ms),
        used_at_ms: now_ms,
        ..wanted
    }
}

/// Returns the state after a lost lease. A job that was told to stop has stopped; others are tried again or given up.
pub fn lost(state: &JobState, now_ms: u64, reason: &str) -> JobState {
    let health = stopped_unheard(state).unwrap_or(Health::AbortProvider);
    attempt_over(state, health, now_ms, reason)
}

/// Returns the final health of a job that was told to stop. `None`: it was not.
pub fn stopped_with(state: &JobState) -> Option<Health> {
    let asked = state.stop_asked;
    asked.then(|| state.stop_health.unwrap_or(Health::Terminate))
}

/// Returns the same for a job without a report of its end. Such a job cannot count as a success.
pub fn stopped_unheard(state: &JobState) -> Option<Health> {
    let health = stopped_with(state)?;
    Some(match health {
        Health::Success => Health::AbortProvider,
        other => other,
    })
}
