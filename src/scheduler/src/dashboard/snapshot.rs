//! The tables of a snapshot.

use std::{collections::BTreeMap, sync::Arc};

use fairlead_api::{HostRow, LabRow, QueueView, ReplicaRow, StoreProblem, StoreRow, Tables};
use fairlead_store::{Condition, StageCounts, StoreError};

use crate::dashboard::DashboardFlow;
use fairlead_base::errors::Refusal;
use fairlead_known::{
    cordons::Cordon, hosts::Host, replicas::Vitals, reservations::Reservation, usage::DAY_MS,
};

/// Stages are counted so often, ms.
const STAGES_MS: u64 = 10_000;
/// A replica that has not read the changes of the store for so long is behind, ms.
const BEHIND_MS: u64 = 5_000;
/// Shares of a week are worked out so often, ms.
const WEEK_SHARES_MS: u64 = 600_000;

impl DashboardFlow {
    /// All rows, as they are now.
    pub(super) async fn tables(&self) -> Result<Tables, Refusal> {
        let stages = self.stages().await;
        let hosts = self.host_rows();
        let queues = match self.queue_rows(&stages).await {
            Ok(rows) => rows,
            Err(Refusal::Stopping) => return Err(Refusal::Stopping),
            // A store that does not answer is to be seen, too.
            Err(error) => {
                tracing::debug!(%error, "queues could not be counted");
                let before = self.lab.board.since(0);
                before
                    .map(|it| it.tables.queues.clone())
                    .unwrap_or_default()
            }
        };
        let lab = self.lab_row(&stages, &hosts, &queues);
        Ok(Tables {
            lab: BTreeMap::from([("lab".to_owned(), lab)]),
            queues,
            hosts,
            replicas: self.replica_rows(),
        })
    }

    /// How far jobs are, counted at most every ten seconds. What a store does not answer stays as it was.
    async fn stages(&self) -> Arc<StageCounts> {
        let now = self.ctx.clock.now().0;
        if let Some(fresh) = self.lab.board.stages_since(now.saturating_sub(STAGES_MS)) {
            return fresh;
        }
        let since_ms = self.ctx.clock.wall_ms().saturating_sub(DAY_MS);
        match self.ctx.store.stage_counts(since_ms).await {
            Ok(counts) => {
                let counts = Arc::new(counts);
                self.lab.board.keep_stages(now, Arc::clone(&counts));
                counts
            }
            Err(error) => {
                tracing::debug!(%error, "stages could not be counted");
                self.lab.board.stages_since(0).unwrap_or_default()
            }
        }
    }

    async fn queue_rows(
        &self,
        stages: &StageCounts,
    ) -> Result<BTreeMap<String, QueueView>, Refusal> {
        let views = self
            .samples
            .with_shares_got(self.people.queue_views().await?)
            .await;
        let week = self.week_shares().await.unwrap_or_default();
        let mut oldest: BTreeMap<&str, u64> = BTreeMap::new();
        for (stored, ready_ms) in &stages.oldest_ready_ms {
            let queue = oldest.entry(fairlead_dispatch::labels::queue_of(stored));
            let first = queue.or_insert(*ready_ms);
            *first = (*first).min(*ready_ms);
        }
        let rows = views.into_iter().map(|view| {
            let row = QueueView {
                got_7d_permille: week.get(&view.name).copied(),
                oldest_ready_ms: oldest
                    .get(view.name.as_str())
                    .copied()
                    .filter(|_| view.waiting > 0),
                ..view
            };
            (row.name.clone(), row)
        });
        Ok(rows.collect())
    }

    async fn week_shares(&self) -> Result<Arc<BTreeMap<String, u32>>, StoreError> {
        let now = self.ctx.clock.now().0;
        if let Some(fresh) = self
            .lab
            .board
            .week_since(now.saturating_sub(WEEK_SHARES_MS))
        {
            return Ok(fresh);
        }
        let shares = Arc::new(self.samples.shares_of(7 * DAY_MS).await?);
        self.lab.board.keep_week(now, Arc::clone(&shares));
        Ok(shares)
    }

    fn host_rows(&self) -> BTreeMap<String, HostRow> {
        let mut rows = BTreeMap::new();
        self.lab.hosts.each(|name, host| {
            rows.insert(name.to_owned(), self.host_row(name, host));
        });
        rows
    }

    fn host_row(&self, name: &str, host: &Host) -> HostRow {
        let jobs = self.jobs.live.ids_of_host(name);
        let cordon = self.lab.cordons.of(name);
        let state = self.views.host_state(host, jobs.len(), cordon.as_ref());
        let is_lost = matches!(state, "silent" | "off");
        let kinds = host.kinds.iter().map(|kind| kind.as_str().to_owned());
        HostRow {
            group: host.group.clone(),
            state: state.to_owned(),
            kinds: kinds.collect(),
            arch: host.arch.clone(),
            memory_mb: host.memory_mb,
            free_memory_mb: host.free_memory_mb,
            cpus: host.cpus,
            free_cpus: host.free_cpus,
            jobs: jobs.iter().map(ToString::to_string).collect(),
            lost_ms: is_lost.then_some(host.seen_ms),
            closed: cordon.as_ref().map(Cordon::view),
            reserved: self.placement.reserved(name).map(Reservation::view),
            loaded: host.is_loaded(),
        }
    }

    fn replica_rows(&self) -> BTreeMap<String, ReplicaRow> {
        let peers = self.ctx.replicas.peers(self.ctx.clock.now()).into_iter();
        let others = peers.map(|peer| {
            let vitals = self.ctx.replicas.vitals(&peer.run);
            (peer.name, replica_row(peer.url, vitals, false))
        });
        let me = replica_row(self.ctx.replicas.url.clone(), self.peers.vitals(), true);
        others
            .chain([(self.ctx.config.replica.clone(), me)])
            .collect()
    }

    fn lab_row(
        &self,
        stages: &StageCounts,
        hosts: &BTreeMap<String, HostRow>,
        queues: &BTreeMap<String, QueueView>,
    ) -> LabRow {
        let mut by_state: BTreeMap<String, u64> = BTreeMap::new();
        for host in hosts.values() {
            *by_state.entry(host.state.clone()).or_default() += 1;
        }
        let words = |(word, jobs): (String, &u64)| (word, *jobs);
        let open = stages
            .open
            .iter()
            .map(|(stage, jobs)| (stage.to_string(), jobs));
        let ended = stages
            .ended
            .iter()
            .map(|(health, jobs)| (health.to_string(), jobs));
        LabRow {
            name: self.ctx.config.replica.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            waiting: queues.values().map(|queue| queue.waiting).sum(),
            running: queues.values().map(|queue| queue.running).sum(),
            stages: open.map(words).collect(),
            not_ready: stages.not_ready,
            ended_24h: ended.map(words).collect(),
            hosts_by_state: by_state,
            store: self.store_row(),
            paused: self.people.queues.lab_pause(),
        }
    }

    fn store_row(&self) -> StoreRow {
        let health = self.ctx.store.health();
        StoreRow {
            well: health.is_well(),
            reads: problem_of(&health.reads),
            writes: problem_of(&health.writes),
            name: health.name,
        }
    }
}

fn replica_row(url: String, vitals: Vitals, is_me: bool) -> ReplicaRow {
    ReplicaRow {
        url,
        is_me,
        version: vitals.version,
        // Not finer than people can use: rows that do not change are not sent.
        lag_s: vitals.lag_ms / 1000,
        behind: vitals.lag_ms >= BEHIND_MS,
        inbox: vitals.inbox,
        held: vitals.held,
        store_requests: vitals.store_requests,
    }
}

/// What is wrong with one side of the store; `None`: nothing.
pub(crate) fn problem_of(side: &Condition) -> Option<StoreProblem> {
    (!side.is_well()).then(|| StoreProblem {
        problem: side.problem.clone(),
        seconds: side.lasts.as_secs(),
    })
}
