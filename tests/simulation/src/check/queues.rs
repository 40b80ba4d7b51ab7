//! Checks the stored queue (I5) and class (I4) of each job, whatever name its submit had.

use fairlead_dispatch::labels;
use fairlead_store::JobState;

use super::broken;
use crate::world::Violation;

/// Queues that several accounts use, and their classes. Admins create the last one.
const SHARED: [(&str, u8); 3] = [("vip", 9), ("idle", 1), ("team", 3)];
/// Class of each account's own queue.
const OWN_CLASS: u8 = 3;

/// Checks that a new job is in a shared queue or in its account's own one, whole or under a label.
pub(super) fn is_in_its_queue(state: &JobState) -> Result<(), Violation> {
    let (queue, is_label) = (
        labels::queue_of(&state.queue),
        labels::is_label(&state.queue),
    );
    let shared = SHARED.iter().find(|(name, _)| *name == state.queue);
    let class = match shared {
        Some((_, class)) => Some(*class),
        None if queue == state.account => Some(OWN_CLASS),
        None => None,
    };
    if class == Some(state.class) && is_label != state.queue_label.is_empty() {
        return Ok(());
    }
    broken(
        "I5",
        format!(
            "job {} of {} is stored in queue {} of class {}, with label '{}'",
            state.job_id, state.account, state.queue, state.class, state.queue_label
        ),
    )
}
