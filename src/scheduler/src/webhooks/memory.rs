//! Webhooks that are soon due.

use std::sync::Arc;

use fairlead_job::{CallbackEvents, JobId};
use fairlead_store::JobState;

use crate::{ctx::Ctx, jobs::listener::Listener};
use fairlead_base::storage::controller::Controller;
use fairlead_known::{
    controllers::WEBHOOKS,
    webhook_places::WebhookPlaces,
    webhooks::{Event, Key},
};

/// Webhooks to look at soon, by this replica's own clock.
#[derive(Debug)]
pub(crate) struct WebhookMemory {
    ctx: Arc<Ctx>,
    pub(crate) looks: Arc<Controller<Key>>,
    /// Webhooks whose messages are on their way.
    pub(crate) places: Arc<WebhookPlaces>,
}

impl WebhookMemory {
    pub(crate) fn new(ctx: &Arc<Ctx>) -> Self {
        Self {
            ctx: Arc::clone(ctx),
            looks: Controller::new(&WEBHOOKS, &ctx.clock, &ctx.metrics),
            places: Arc::default(),
        }
    }

    /// Looks at a webhook after so long, and after the replicas that come before this one.
    pub(crate) fn look_at(&self, key: Key, after_ms: u64) {
        let rank = self.ctx.turn_for(key.job);
        let after_ms = after_ms.saturating_add(WEBHOOKS.later_ms(rank));
        self.looks
            .look_at(key, self.looks.now_ms().saturating_add(after_ms), ());
    }
}

impl Listener for WebhookMemory {
    fn seen(&self, state: &JobState) {
        if !state.stage.is_terminal() {
            return;
        }
        for key in Key::each(state.job_id, Event::Ended) {
            let events = key.field.events(state);
            if events.is_some_and(CallbackEvents::may_come_at_the_end) {
                self.look_at(key, 0);
            }
        }
    }

    fn failing(&self, parent: JobId) {
        for key in Key::each(parent, Event::Failing) {
            self.look_at(key, 0);
        }
    }
}
