//! Reads the gauges of `GET /metrics` when somebody asks, and renders all metrics.

use std::{collections::BTreeMap, time::Duration};

use fairlead_api::Snapshot;
use fairlead_content::ContentState;
use fairlead_dispatch::{Stats, WaitReason};

use crate::dashboard::DashboardFlow;
use fairlead_base::metrics::{QueueReading, Readings};

/// Whoever asks waits so long for new numbers of the lab, then gets the last ones: metrics are read while the store hangs.
const SNAPSHOT_WAIT: Duration = Duration::from_millis(800);
/// Why jobs wait that are not in memory here.
const NOT_CACHED: &str = "not_cached";

impl DashboardFlow {
    /// All metrics as text. `is_open`: in `OpenMetrics`, else in the classic format. `is_named`: with the names of queues
    /// and groups of hosts.
    pub(crate) async fn metrics_text(&self, is_open: bool, is_named: bool) -> String {
        let asked = self
            .ctx
            .engine
            .ask(|engine, _| (engine.stats(), engine.waiting_by_reason()))
            .await;
        let (stats, reasons) = asked.unwrap_or_default();
        self.set_states(&stats);
        let snapshot = tokio::select! {
            made = self.overview() => made.ok(),
            () = self.ctx.clock.sleep(SNAPSHOT_WAIT) => None,
        };
        let snapshot = snapshot.or_else(|| self.lab.board.since(0));
        let readings = snapshot.map(|lab| readings(&lab, reasons, self.ctx.clock.wall_ms()));
        let lab = readings.as_ref().map(|readings| (readings, is_named));
        self.ctx.metrics.text(lab, is_open)
    }

    fn set_states(&self, stats: &Stats) {
        let states = &self.ctx.metrics.states;
        let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let now = self.ctx.clock.now();
        let store = self.ctx.store.health();
        states.store_available.set(i64::from(store.reads.is_well()));
        states.store_writable.set(i64::from(store.writes.is_well()));
        states.peers.set(count(self.ctx.replicas.peers(now).len()));
        states.held.set(count(self.jobs.live.count()));
        states.waiters.set(count(self.jobs.waiters.count()));
        states
            .hosts_loaded
            .set(count(self.lab.hosts.count_loaded(now)));
        states.cached.set(number(stats.cached_jobs));
        states.claims_in_flight.set(number(stats.in_flight));
        let room = self.files.room.room().unwrap_or_default();
        states.data_free_bytes.set(number(room.free_bytes));
        states.data_bytes.set(number(room.bytes));
        states.data_free_inodes.set(number(room.free_inodes));
        states.data_inodes.set(number(room.inodes));
        let content = self.ctx.content.health();
        let (is_there, is_throttled) = match content.state {
            ContentState::Well => (true, false),
            ContentState::Throttled { .. } => (true, true),
            ContentState::Unreachable { .. } => (false, false),
        };
        states.content_available.set(i64::from(is_there));
        states.content_throttled.set(i64::from(is_throttled));
        states.content_damaged.set(number(content.damaged));
        states.inbox.set(count(self.ctx.engine.depth()));
        let lag = Duration::from_millis(self.peers.lag_ms());
        states.lag.set(lag.as_secs_f64());
        let offset_ms = self.ctx.clock.offset_ms().unwrap_or(0);
        let offset = Duration::from_millis(offset_ms.unsigned_abs()).as_secs_f64();
        states
            .clock_offset
            .set(if offset_ms < 0 { -offset } else { offset });
    }
}

fn readings(lab: &Snapshot, reasons: BTreeMap<(String, WaitReason), u64>, now_ms: u64) -> Readings {
    let mut all = Readings::default();
    let mut cached: BTreeMap<&str, u64> = BTreeMap::new();
    for ((queue, _), jobs) in &reasons {
        *cached.entry(queue).or_default() += jobs;
    }
    for (name, queue) in &lab.tables.queues {
        let here = cached.get(name.as_str()).copied().unwrap_or(0);
        let elsewhere = queue.waiting.saturating_sub(here);
        if elsewhere > 0 {
            all.waiting.insert((name.clone(), NOT_CACHED), elsewhere);
        }
        let oldest_ms = queue
            .oldest_ready_ms
            .map_or(0, |ms| now_ms.saturating_sub(ms));
        let reading = QueueReading {
            running: queue.running,
            oldest_s: oldest_ms / 1000,
            wanted_permille: queue.share_permille,
            got_permille: queue.got_1h_permille.unwrap_or(0),
        };
        all.queues.insert(name.clone(), reading);
    }
    for ((queue, reason), jobs) in reasons {
        all.waiting.insert((queue, reason.as_str()), jobs);
    }
    for host in lab.tables.hosts.values() {
        let key = (host.state.clone(), host.group.clone());
        *all.hosts.entry(key).or_default() += 1;
    }
    if let Some(lab) = lab.tables.lab.values().next() {
        all.not_ready = lab.not_ready;
        all.is_paused = lab.paused.is_some();
    }
    all
}

#[cfg(test)]
mod tests {
    use fairlead_api::{HostRow, QueueView};
    use serde_json::json;

    use super::*;

    #[test]
    fn jobs_that_only_the_store_has_wait_for_an_unknown_reason() {
        let mut lab = Snapshot::default();
        let queue = json!({
            "name": "q", "priority": 5, "weight": 1, "paused": false, "background_permille": 0, "waiting": 10, "running": 2,
            "share_permille": 0, "set": false, "oldest_ready_ms": 5_000,
        });
        let queue: QueueView = serde_json::from_value(queue).unwrap();
        lab.tables.queues.insert("q".to_owned(), queue);
        let host = HostRow {
            state: "idle".to_owned(),
            group: "g".to_owned(),
            ..HostRow::default()
        };
        lab.tables.hosts.insert("h".to_owned(), host);
        let reasons = [(("q".to_owned(), WaitReason::Limit), 4)];
        let read = readings(&lab, reasons.into(), 65_000);
        let waiting = [
            (("q".to_owned(), "limit"), 4),
            (("q".to_owned(), NOT_CACHED), 6),
        ];
        assert_eq!(read.waiting, waiting.into());
        assert_eq!(
            (read.queues["q"].running, read.queues["q"].oldest_s),
            (2, 60)
        );
        assert_eq!(read.hosts[&("idle".to_owned(), "g".to_owned())], 1);
    }
}
