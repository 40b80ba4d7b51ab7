//! Delays before retries.

use fairlead_job::{Backoff, JobId};
use fairlead_store::JobState;

/// Returns the pause before this attempt of a job, ms. Up to half of it is random, so that jobs lost together do not
/// return together.
pub fn pause_ms(next: &JobState) -> u64 {
    pause_of(next.job_id, next.attempt, next.backoff.unwrap_or_default())
}

/// Returns the pause before try `nth` of this job, ms, with the same randomness.
pub fn pause_of(job: JobId, nth: u16, backoff: Backoff) -> u64 {
    let whole_ms = backoff.pause_ms(nth);
    let hash = blake3::hash(format!("{job}/{nth}").as_bytes());
    let chance = u64::from(hash.as_bytes().first().copied().unwrap_or(0));
    whole_ms / 2 + whole_ms / 2 * chance / 255
}
