//! The `sequence` of a job, and the effect of its turn.

use fairlead_api::ErrorCode;
use fairlead_job::{Spec, Stage};
use fairlead_store::JobState;
use serde_json::Value;

use crate::{
    base::errors::{Refusal, excerpt},
    lifecycle::alarm::begin,
};

/// Longest key, bytes.
const KEY_BYTES_MAX: usize = 256;

/// Reads `sequence` and `sequence_host`: the key, and whether all its jobs run on one host.
pub(crate) fn sequence_of(spec: &Spec) -> Result<(String, bool), Refusal> {
    let bad = |message: String, hint: &str| Err(Refusal::new(ErrorCode::BadField, message, hint));
    let key = match spec.get("sequence") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(key)) => key.clone(),
        Some(Value::Number(key)) => key.to_string(),
        Some(other) => {
            return bad(
                format!("sequence: {} is not a text", excerpt(&other.to_string())),
                "write sequence: NAME; the jobs of one name run one at a time",
            );
        }
    };
    if key.len() > KEY_BYTES_MAX {
        return bad(
            format!(
                "sequence: {} bytes; up to {KEY_BYTES_MAX} are allowed",
                key.len()
            ),
            "use a shorter name, or a hash of it",
        );
    }
    let same = match spec.get("sequence_host") {
        None | Some(Value::Null) => false,
        Some(Value::String(word)) if word == "any" => false,
        Some(Value::String(word)) if word == "same" => true,
        Some(other) => {
            return bad(
                format!(
                    "sequence_host: {} is not known",
                    excerpt(&other.to_string())
                ),
                "same, to keep the jobs of a sequence on one host; any is what holds without it",
            );
        }
    };
    if same && key.is_empty() {
        return bad(
            "sequence_host: the job names no sequence".to_owned(),
            "write sequence: NAME beside it",
        );
    }
    Ok((key, same))
}

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
