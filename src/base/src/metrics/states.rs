//! Gauges of this replica. They are set each time that somebody asks.

use std::sync::atomic::AtomicU64;

use fairlead_content::Collected;
use prometheus_client::{metrics::gauge::Gauge, registry::Registry};

/// Gauges that are read for each scrape.
#[derive(Debug, Default)]
pub struct States {
    pub store_available: Gauge,
    pub store_writable: Gauge,
    pub peers: Gauge,
    pub held: Gauge,
    pub waiters: Gauge,
    pub hosts_loaded: Gauge,
    pub cached: Gauge,
    pub claims_in_flight: Gauge,
    pub inbox: Gauge,
    pub lag: Gauge<f64, AtomicU64>,
    pub clock_offset: Gauge<f64, AtomicU64>,
    pub data_free_bytes: Gauge,
    pub data_bytes: Gauge,
    pub data_free_inodes: Gauge,
    pub data_inodes: Gauge,
    pub content_available: Gauge,
    pub content_throttled: Gauge,
    pub content_damaged: Gauge,
    content_bytes: Gauge,
    content_chunks: Gauge,
    content_manifests: Gauge,
}

impl States {
    pub(super) fn register(&self, to: &mut Registry) {
        let states = [
            (
                "store_available",
                "1 if the store answers",
                &self.store_available,
            ),
            (
                "store_writable",
                "1 if the store accepts writes",
                &self.store_writable,
            ),
            ("peers", "Other live replicas", &self.peers),
            ("jobs_held", "Jobs on testboxes", &self.held),
            ("waiters", "Waiting requests", &self.waiters),
            (
                "hosts_loaded",
                "Hosts whose memory is nearly all in use, so that others get the jobs",
                &self.hosts_loaded,
            ),
            ("jobs_cached", "Waiting jobs in memory", &self.cached),
            (
                "claims_in_flight",
                "Unsettled claims",
                &self.claims_in_flight,
            ),
            (
                "engine_inbox",
                "Messages that the engine has not processed yet",
                &self.inbox,
            ),
        ];
        for (name, help, gauge) in states {
            to.register(name, help, gauge.clone());
        }
        let help = "How long ago this replica knew all changes of the store, in seconds";
        to.register("replica_lag_seconds", help, self.lag.clone());
        let help = "Seconds that the clock is ahead of the median of the other replicas'; 0 if there are none";
        to.register("clock_offset_seconds", help, self.clock_offset.clone());
        self.register_data(to);
        self.register_content(to);
    }

    fn register_data(&self, to: &mut Registry) {
        let states = [
            (
                "data_free_bytes",
                "Bytes left on the file system of the data folder",
                &self.data_free_bytes,
            ),
            (
                "data_bytes",
                "All bytes of the file system of the data folder",
                &self.data_bytes,
            ),
            (
                "data_free_inodes",
                "Inodes left on the file system of the data folder",
                &self.data_free_inodes,
            ),
            (
                "data_inodes",
                "All inodes of the file system of the data folder; 0: it does not count them",
                &self.data_inodes,
            ),
        ];
        for (name, help, gauge) in states {
            to.register(name, help, gauge.clone());
        }
    }

    fn register_content(&self, to: &mut Registry) {
        let states = [
            (
                "content_available",
                "1 if the store of inputs and outputs answers",
                &self.content_available,
            ),
            (
                "content_throttled",
                "1 if the store of inputs and outputs asks for fewer requests",
                &self.content_throttled,
            ),
            (
                "content_damaged",
                "Objects of inputs and outputs that this replica found damaged",
                &self.content_damaged,
            ),
            (
                "content_bytes",
                "Bytes of inputs and outputs after the last collection here",
                &self.content_bytes,
            ),
            (
                "content_chunks",
                "Chunks of inputs and outputs after the last collection here",
                &self.content_chunks,
            ),
            (
                "content_manifests",
                "Inputs and outputs after the last collection here",
                &self.content_manifests,
            ),
        ];
        for (name, help, gauge) in states {
            to.register(name, help, gauge.clone());
        }
    }

    /// Notes the remains of a collection.
    pub fn content_collected(&self, collected: &Collected) {
        let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let manifests = collected
            .manifests
            .saturating_sub(collected.manifests_removed);
        let chunks = collected.chunks.saturating_sub(collected.chunks_removed);
        self.content_bytes.set(number(collected.bytes_kept));
        self.content_chunks.set(number(chunks));
        self.content_manifests.set(number(manifests));
    }
}
