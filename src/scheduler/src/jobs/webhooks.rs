//! Notes that somebody is to be told of a job.

use fairlead_dispatch::Millis;
use fairlead_job::CallbackEvents;
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
        if !state.stage.is_terminal() {
            return;
        }
        for key in Key::each(state.job_id, Event::Ended) {
            let events = key.field.events(state);
            if events.is_some_and(CallbackEvents::may_come_at_the_end) {
                self.look_at_webhook(key, 0);
            }
        }
    }

    /// Looks at a webhook after so long, and after the replicas that come before this one.
    pub(crate) fn look_at_webhook(&self, key: Key, after_ms: u64) {
        let turn = u64::try_from(self.turn_for(key.job)).unwrap_or(u64::MAX);
        let after_ms = after_ms.saturating_add(turn.saturating_mul(OTHERS_LATER_MS));
        let at = self.clock.now().0.saturating_add(after_ms);
        self.waiting.webhooks.look_at(key, Millis(at));
    }
}
