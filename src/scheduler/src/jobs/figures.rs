//! Figures of claims and of ends that this replica wrote: samples, times, and states that break an invariant.

use fairlead_api::Grant;
use fairlead_store::JobState;

use crate::jobs::JobFlow;
use fairlead_base::metrics::Invariant;
use fairlead_lifecycle::{
    changed::attempt_ended,
    invariants::{broken_by_change, broken_by_claim},
};

impl JobFlow {
    /// A claim of this replica is stored.
    pub(super) fn count_claim(&self, state: &JobState) {
        self.count_violation(state, broken_by_claim(state));
    }

    /// Jobs are handed to their host for the first time.
    pub(crate) fn count_delivered(&self, grants: &[Grant]) {
        let ids = grants.iter().filter_map(|grant| grant.job_id.parse().ok());
        for live in ids.filter_map(|id| self.live.get(id)) {
            let state = &live.stored.state;
            for listener in &self.listeners {
                listener.delivered(state);
            }
            let class = self.people.queues.class(&state.queue);
            let waited_ms = state.dispatch_ms.saturating_sub(state.ready_ms);
            self.ctx.metrics.times.waited(class, waited_ms);
        }
    }

    /// A change of a job's state by this replica is stored.
    pub(super) fn count_change(&self, before: &JobState, after: &JobState) {
        self.count_violation(after, broken_by_change(before, after));
        let Some(health) = attempt_ended(before, after) else {
            return;
        };
        let last_ms = after.attempts.last().map_or(0, |attempt| attempt.end_ms);
        let end_ms = if after.end_ms > 0 {
            after.end_ms
        } else {
            last_ms
        };
        for listener in &self.listeners {
            listener.attempt_ended(before, health, end_ms);
        }
        self.ctx.metrics.attempt_ended(health.cause());
        let ran_ms = end_ms.saturating_sub(before.dispatch_ms);
        self.ctx.metrics.times.ran(health.as_str(), ran_ms);
    }

    fn count_violation(&self, state: &JobState, broken: Option<Invariant>) {
        if let Some(invariant) = broken {
            let number = invariant.word();
            tracing::error!(job_id = %state.job_id, invariant = number, "a written state breaks an invariant; please report it");
            self.ctx.metrics.violated(invariant);
            let detail = serde_json::json!({ "invariant": number });
            let (replica, id) = (&self.ctx.config.replica, state.job_id.to_string());
            self.ctx.audit(replica, "invariant.broken", &id, detail);
        }
    }
}
