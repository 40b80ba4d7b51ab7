//! The append-only audit log: actions of people, and effects of leases on jobs.
//!
//! It is best effort and written after the answer. If the store is away, the entry is lost, and the action still
//! happens.

use fairlead_store::EventRecord;
use serde_json::Value;

use crate::core::Core;

impl Core {
    /// Notes that `who` did `what` to `subject`. Returns at once.
    pub(crate) fn audit(&self, who: &str, what: &str, subject: &str, detail: Value) {
        let who = if who.is_empty() { "operator" } else { who };
        tracing::info!(who, what, subject, %detail, "audit");
        let event = EventRecord {
            at_ms: self.clock.wall_ms(),
            who: who.to_owned(),
            what: what.to_owned(),
            subject: subject.to_owned(),
            detail,
        };
        let store = std::sync::Arc::clone(&self.store);
        self.tasks.spawn(async move {
            if let Err(error) = store.append_events(vec![event]).await {
                tracing::warn!(%error, "an audit event could not be stored");
            }
        });
    }
}
