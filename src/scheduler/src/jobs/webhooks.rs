//! Notes that somebody is to be told of a job.

use fairlead_job::CallbackEvents;
use fairlead_store::JobState;

use crate::core::Core;
use fairlead_known::{
    controllers::WEBHOOKS,
    webhooks::{Event, Key},
};

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
        let looks = &self.waiting.webhooks.looks;
        let after_ms = after_ms.saturating_add(WEBHOOKS.later_ms(self.turn_for(key.job)));
        looks.look_at(key, looks.now_ms().saturating_add(after_ms), ());
    }
}
