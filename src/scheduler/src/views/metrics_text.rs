//! Renders `GET /metrics`: all metrics as text. Gauges are read on each request.

use fairlead_content::ContentState;
use prometheus_client::encoding::text::encode;

use crate::core::Core;

impl Core {
    /// All metrics as text.
    pub(crate) async fn metrics_text(&self) -> String {
        let stats = self.engine.ask(|engine, _| engine.stats()).await;
        let stats = stats.unwrap_or_default();
        let states = &self.metrics.states;
        let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let store = self.store.health();
        states.store_available.set(i64::from(store.reads.is_well()));
        states.store_writable.set(i64::from(store.writes.is_well()));
        states
            .peers
            .set(count(self.others.replicas.peers(self.clock.now()).len()));
        states.held.set(count(self.jobs.live.len()));
        states.waiters.set(count(self.requests.waiters.len()));
        states
            .hosts_loaded
            .set(count(self.lab.hosts.count_loaded(self.clock.now())));
        states.cached.set(number(stats.cached_jobs));
        states.claims_in_flight.set(number(stats.in_flight));
        let content = self.content.health();
        let (is_there, is_throttled) = match content.state {
            ContentState::Well => (true, false),
            ContentState::Throttled { .. } => (true, true),
            ContentState::Unreachable { .. } => (false, false),
        };
        states.content_available.set(i64::from(is_there));
        states.content_throttled.set(i64::from(is_throttled));
        states.content_damaged.set(number(content.damaged));
        states.inbox.set(count(self.engine.depth()));
        let mut text = String::new();
        let registry = self.metrics.registry.lock();
        // Writing to a text cannot fail.
        let _ = encode(&mut text, &registry);
        text
    }
}
