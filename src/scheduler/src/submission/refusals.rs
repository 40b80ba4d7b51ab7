//! Refusals that several steps of a submit share.

use fairlead_api::ErrorCode;

use crate::base::errors::Refusal;

/// What a strict submit says to a job that no known host could run.
pub(crate) fn could_never_run(why: &str) -> Refusal {
    Refusal::new(
        ErrorCode::BadField,
        format!("no known host can run the job: {why}"),
        "see the offers of hosts with GET hosts, or submit without strict to wait for one",
    )
}
