//! Notes that somebody is to be told of a job.

use fairlead_dispatch::Millis;
use fairlead_job::JobId;
use fairlead_store::JobState;

use crate::{core::Core, known::webhooks::Event};

/// How much later each replica sees to a webhook than the one that comes before it, ms.
const OTHERS_LATER_MS: u64 = 3_000;

impl Core {
    /// A state of a job was written, told of or read: if it has ended, whoever asked for it is told.
    pub(super) fn note_webhooks(&self, state: &JobState) {
        let is_told = state.callback.is_some_and(|events| events.ended);
        if is_told && state.stage.is_terminal() {
            self.webhook_due(state.job_id, Event::Ended);
        }
    }

    /// The first shard of a job failed for good, and somebody asked to be told.
    pub(super) fn webhook_due(&self, id: JobId, event: Event) {
        let turn = u64::try_from(self.turn_for(id)).unwrap_or(u64::MAX);
        let after_ms = turn.saturating_mul(OTHERS_LATER_MS);
        let at = Millis(self.clock.now().0.saturating_add(after_ms));
        self.waiting.webhooks.look_at((id, event), at);
    }
}
