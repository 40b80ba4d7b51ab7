//! One replica without its port: its parts, its tasks, its end.
//!
//! [`Server`](crate::Server) puts it behind TCP. A simulation calls it directly, with its own store, clock and peers.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use futures_util::{FutureExt, future::BoxFuture};
use http_body_util::{BodyExt, Full};
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use tokio_util::sync::CancellationToken;

use crate::{
    Config, StartError,
    dispatching::engine_task,
    flows::Flows,
    http,
    reuse::ReuseFlow,
    rounds::keep_in_sync,
    shards::ShardFlow,
    timers::TimerFlow,
    waiting::{WaitingFlow, memory::WaitingMemory},
    webhooks::WebhookFlow,
};
use fairlead_base::{parts::Parts, sealing::Sealer};

/// A running replica.
pub struct Replica {
    flows: Arc<Flows>,
    /// Cancelled second: the engine and the writers end.
    stop: CancellationToken,
}

/// Counts of what a replica keeps in memory now, and of broken invariants that it saw. `GET /metrics` shows the same numbers.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Gauges {
    /// Jobs of hosts that ask here.
    pub jobs_held: usize,
    /// Jobs that the engine may choose from.
    pub jobs_cached: u64,
    /// Requests that wait for a job.
    pub waiters: usize,
    /// Claims that the store has not answered.
    pub claims_in_flight: u64,
    /// Written states that break an invariant, by its number in `docs/invariants.md`: only those that are not zero.
    pub violations: Vec<(&'static str, u64)>,
}

impl fmt::Debug for Replica {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replica")
            .field("name", &self.flows.ctx.config.replica)
            .finish_non_exhaustive()
    }
}

impl Replica {
    /// Restores what runs and starts its tasks. `url` is where other replicas reach it.
    ///
    /// # Errors
    /// The store cannot be read, another living replica has its name, or the clock is off from the other replicas'.
    pub fn start(
        config: Config,
        parts: Parts,
        url: String,
    ) -> BoxFuture<'static, Result<Self, StartError>> {
        Box::pin(async move {
            let stop = CancellationToken::new();
            let sealer = Sealer::open(parts.store.as_ref(), parts.clock.clone()).await?;
            let flows = Arc::new(Flows::new(config, parts, url, sealer, &stop));
            flows.peers.join().await?;
            flows.upkeep.start_with_good_clock().await?;
            flows.upkeep.restore().await?;
            flows.people.accounts.warn_of_unnamed_hosts();
            if let Err(error) = flows.files.sweep_parts() {
                tracing::warn!(%error, "incomplete uploads of an earlier run could not be removed");
            }
            run_tasks(&flows, &stop);
            flows.peers.tell_of_start();
            let store = flows.ctx.store.health().name;
            tracing::info!(
                replica = flows.ctx.config.replica,
                url = flows.ctx.replicas.url,
                store,
                "started"
            );
            Ok(Self { flows, stop })
        })
    }

    pub(crate) fn flows(&self) -> Arc<Flows> {
        Arc::clone(&self.flows)
    }

    /// One request, as if it had come through the port. Only the body's end is waited for, so this is for
    /// requests whose answer ends.
    pub async fn call(&self, request: ::http::Request<Bytes>) -> ::http::Response<Bytes> {
        let service = TowerToHyperService::new(warp::service(http::filter(self.flows())));
        let answer = service
            .call(request.map(Full::new))
            .map(|answer| match answer {
                Ok(answer) => answer,
                Err(never) => match never {},
            });
        let (head, body) = answer.await.into_parts();
        // A body that breaks off is an answer that breaks off: what came of it.
        let body = body
            .collect()
            .await
            .map(http_body_util::Collected::to_bytes)
            .unwrap_or_default();
        ::http::Response::from_parts(head, body)
    }

    /// What this replica keeps in memory now. It asks its engine, and never the store.
    pub async fn gauges(&self) -> Gauges {
        let flows = &self.flows;
        let stats = flows.ctx.engine.ask(|engine, _| engine.stats()).await;
        let stats = stats.unwrap_or_default();
        Gauges {
            jobs_held: flows.jobs.live.count(),
            jobs_cached: stats.cached_jobs,
            waiters: flows.jobs.waiters.count(),
            claims_in_flight: stats.in_flight,
            violations: flows.ctx.metrics.violations(),
        }
    }

    /// Waits until the replica gives up, because its clock has been off from the others' for a minute. Whoever runs it must
    /// then stop it.
    pub fn gave_up(&self) -> impl Future<Output = ()> + Send + 'static {
        self.flows.upkeep.gave_up.clone().cancelled_owned()
    }

    /// Takes no new work; waiting requests are answered.
    pub fn drain(&self) {
        self.flows.ctx.tasks.draining.cancel();
    }

    /// Drains, finishes claims in flight, flushes, joins every task.
    pub fn stop(self) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            self.drain();
            self.stop.cancel();
            self.flows.ctx.tasks.finish().await;
        })
    }
}

/// Starts the tasks of a replica. A plain function, so that they are compiled here, and not again in each program.
fn run_tasks(flows: &Arc<Flows>, stop: &CancellationToken) {
    let tasks = &flows.ctx.tasks;
    let engine = engine_task::run(Arc::clone(&flows.dispatching), stop.clone());
    tasks.run("engine", engine);
    tasks.run("rounds", keep_in_sync(Arc::clone(flows)));
    tasks.run("leases", Arc::clone(&flows.hosts).watch_leases());
    tasks.run("membership", Arc::clone(&flows.peers).stay_known());
    tasks.run("clock", Arc::clone(&flows.upkeep).watch_clock());
    tasks.run("hints", Arc::clone(&flows.peers).send_hints());
    tasks.run("dependants", Arc::clone(&flows.waiting).watch_dependants());
    tasks.run("pools", Arc::clone(&flows.scaling).watch_pools());
    tasks.run("board", Arc::clone(&flows.dashboard).watch_board());
    tasks.run("old_months", Arc::clone(&flows.upkeep).drop_old_months());
    tasks.run("content", Arc::clone(&flows.content).collect_daily());
    let Flows {
        jobs,
        waiting,
        reuse,
        shards,
        timers,
        webhooks,
        ..
    } = &**flows;
    jobs.alarms.start(tasks, waiting, WaitingFlow::ring);
    jobs.parents
        .looks
        .start(tasks, shards, ShardFlow::look_at_parents);
    reuse.results.start(tasks, reuse, ReuseFlow::learn_results);
    let WaitingMemory {
        sequences,
        clusters,
        ..
    } = &*waiting.known;
    sequences
        .looks
        .start(tasks, waiting, WaitingFlow::look_at_sequences);
    clusters
        .looks
        .start(tasks, waiting, WaitingFlow::look_at_clusters);
    timers
        .known
        .book
        .start(tasks, timers, TimerFlow::look_at_timers);
    webhooks
        .known
        .looks
        .start(tasks, webhooks, WebhookFlow::look_at_webhooks);
}
