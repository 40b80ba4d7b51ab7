//! Rewrites a state unchanged.

use fairlead_store::{JobState, Patch, StatePatch, StoredJob};

/// Returns the same state with a new number that only proves that it was confirmed.
pub fn touched(state: &JobState) -> JobState {
    JobState {
        claim_seq: state.claim_seq.wrapping_add(1),
        ..state.clone()
    }
}

/// Returns the same state touched, so that the store must acknowledge it.
pub fn touch(stored: &StoredJob) -> (JobState, Patch) {
    let wanted = touched(&stored.state);
    let patch = Patch {
        id: wanted.job_id,
        expect: stored.version,
        set: StatePatch::between(&stored.state, &wanted),
    };
    (wanted, patch)
}
