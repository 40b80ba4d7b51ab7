//! Delivers the engine's answers to the requests that wait for them.

use std::sync::Arc;

use fairlead_dispatch::OfferKey;
use fairlead_job::JobId;
use fairlead_store::StoredJob;

use crate::dispatching::DispatchFlow;
use fairlead_known::open_requests::{KnownClaim, Requester};

impl DispatchFlow {
    /// The engine's answer to an offer.
    pub(crate) fn answer_waiter(self: &Arc<Self>, offer: OfferKey, jobs: Vec<JobId>) {
        let Some(waiter) = self.jobs.waiters.remove(offer) else {
            return;
        };
        if let Err(jobs) = waiter.answer.send(jobs) {
            // The asker hung up at this very moment: never delivered.
            let flow = Arc::clone(self);
            let Requester { host, session, .. } = waiter.offerer;
            self.ctx.tasks.spawn(async move {
                for job in flow.still_of(&host, &session, &jobs) {
                    let claim = KnownClaim::of(&job.state);
                    flow.jobs.give_back(&claim, "nobody took the answer").await;
                }
            });
        }
    }

    /// Those of these jobs that this session of the host still has: while their answer was on its way its lease may have
    /// run out, and another host has them.
    pub(crate) fn still_of(&self, host: &str, session: &str, ids: &[JobId]) -> Vec<Arc<StoredJob>> {
        let held = ids.iter().filter_map(|id| self.jobs.live.get(*id));
        let its = held.map(|live| live.stored).filter(|job| {
            let state = &job.state;
            state.stage.is_held() && state.host == host && state.session == session
        });
        its.collect()
    }
}
