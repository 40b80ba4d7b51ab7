//! The effect of a job's turn in its sequence.

use fairlead_job::Stage;
use fairlead_store::JobState;

use crate::lifecycle::alarm::begin;

/// The keys under which a job is found, if it is to run where the one before it did. One that names other hosts runs
/// there.
pub(crate) fn kept_on(keys: &[String], host: &str) -> Vec<String> {
    let on_host = |key: &String| match key.split_once('@') {
        Some(("hw", _)) => Some(format!("hw@{host}")),
        Some((_, named)) => (named == host).then(|| key.clone()),
        None if key.starts_with("hw.") => Some(format!("hw@{host}")),
        None => Some(format!("{key}@{host}")),
    };
    let mut kept: Vec<String> = keys.iter().filter_map(on_host).collect();
    kept.sort_unstable();
    kept.dedup();
    if kept.is_empty() { keys.to_vec() } else { kept }
}

/// The job with its turn; `None`: it has it, or waits no more.
pub(crate) fn with_turn(state: &JobState, host: &str, now_ms: u64) -> Option<JobState> {
    if state.stage != Stage::Submit || state.sequence_turn {
        return None;
    }
    let mut next = state.clone();
    next.sequence_turn = true;
    if next.sequence_same_host && !host.is_empty() {
        next.host_keys = kept_on(&state.host_keys, host);
    }
    Some(begin(next, now_ms))
}
