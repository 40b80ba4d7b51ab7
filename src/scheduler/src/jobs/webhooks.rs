//! Notes that somebody is to be told of a job.

use fairlead_dispatch::Millis;
use fairlead_store::JobState;

use crate::{
    core::Core,
    known::webhooks::{Event, Key},
};

/// How much later each replica sees to a webhook than the one that comes before it, ms.
const OTHERS_LATER_MS: u64 = 3_000;

impl Core {
    /// A state of a job was written, told of or read: if it has ended, whoever asked for it is told.
    pub(super) fn note_webhooks(&self, state: &JobState) {
        let is_told = state.callback.is_some_and(|events| events.ended);
        if is_told && state.stage.is_terminal() {
            self.look_at_webhook((state.job_id, Event::Ended), 0);
        }
    }

    /// Looks at a webhook after so long, and after the replicas that come before this one.
    pub(crate) fn look_at_webhook(&self, key: Key, after_ms: u64) {
        let turn = u64::try_from(self.turn_for(key.0)).unwrap_or(u64::MAX);
        let after_ms = after_ms.saturating_add(turn.saturating_mul(OTHERS_LATER_MS));
        let at = self.clock.now().0.saturating_add(after_ms);
        self.waiting.webhooks.look_at(key, Millis(at));
    }
}
