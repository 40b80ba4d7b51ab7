//! Renders what loaded hosts have to do with an explanation.

use fairlead_api::{LOADED_REST_S, LOADED_UNTIL_PERCENT};
use fairlead_dispatch::Millis;

use fairlead_base::clock::utc_text;

/// Why a loaded host gets no job.
pub(super) fn words_of_load(memory_used_percent: u8) -> String {
    format!(
        "it is loaded: {memory_used_percent} % of its memory is in use; it gets no jobs until it is below {LOADED_UNTIL_PERCENT} % for {LOADED_REST_S} s"
    )
}

/// What a job waits for that only loaded hosts could run.
pub(super) fn words_of_all_loaded(until: Millis) -> String {
    format!(
        "all hosts that could run it are loaded; the least loaded gets it at {}",
        utc_text(until.0)
    )
}
