//! Rewrites a state unchanged.

use fairlead_store::{JobState, Patch, StatePatch, StoredJob};

/// The same state, but for a number that says only that it was made sure of.
pub fn touched(state: &JobState) -> JobState {
    JobState {
        claim_seq: state.claim_seq.wrapping_add(1),
        ..state.clone()
    }
}

/// The same state touched: to be written, and so acknowledged.
pub fn touch(stored: &StoredJob) -> (JobState, Patch) {
    let wanted = touched(&stored.state);
    let patch = Patch {
        id: wanted.job_id,
        expect: stored.version,
        set: StatePatch::between(&stored.state, &wanted),
    };
    (wanted, patch)
}
