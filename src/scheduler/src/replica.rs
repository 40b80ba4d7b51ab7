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

use crate::{Config, StartError, core::Core, dispatching::engine_task, http};
use fairlead_base::{parts::Parts, sealing::Sealer};

/// A running replica.
pub struct Replica {
    core: Arc<Core>,
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
            .field("name", &self.core.config.replica)
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
            let core = Arc::new(Core::new(config, parts, url, sealer, &stop));
            core.join().await?;
            core.start_with_good_clock().await?;
            core.restore().await?;
            core.people.accounts.warn_of_unnamed_hosts();
            if let Err(error) = core.sweep_parts() {
                tracing::warn!(%error, "incomplete uploads of an earlier run could not be removed");
            }
            run_tasks(&core, &stop);
            core.tell_of_start();
            let store = core.store.health().name;
            tracing::info!(
                replica = core.config.replica,
                url = core.others.url,
                store,
                "started"
            );
            Ok(Self { core, stop })
        })
    }

    pub(crate) fn core(&self) -> Arc<Core> {
        Arc::clone(&self.core)
    }

    /// One request, as if it had come through the port. Only the body's end is waited for, so this is for
    /// requests whose answer ends.
    pub async fn call(&self, request: ::http::Request<Bytes>) -> ::http::Response<Bytes> {
        let service = TowerToHyperService::new(warp::service(http::filter(self.core())));
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
        let core = &self.core;
        let stats = core.engine.ask(|engine, _| engine.stats()).await;
        let stats = stats.unwrap_or_default();
        Gauges {
            jobs_held: core.jobs.live.count(),
            jobs_cached: stats.cached_jobs,
            waiters: core.requests.waiters.count(),
            claims_in_flight: stats.in_flight,
            violations: core.metrics.violations(),
        }
    }

    /// Waits until the replica gives up, because its clock has been off from the others' for a minute. Whoever runs it must
    /// then stop it.
    pub fn gave_up(&self) -> impl Future<Output = ()> + Send + 'static {
        self.core.gave_up.clone().cancelled_owned()
    }

    /// Takes no new work; waiting requests are answered.
    pub fn drain(&self) {
        self.core.draining.cancel();
    }

    /// Drains, finishes claims in flight, flushes, joins every task.
    pub fn stop(self) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            self.drain();
            self.stop.cancel();
            self.core.tasks.finish().await;
        })
    }
}

/// Starts the tasks of a replica. A plain function, so that they are compiled here, and not again in each program.
fn run_tasks(core: &Arc<Core>, stop: &CancellationToken) {
    core.tasks
        .run("engine", engine_task::run(Arc::clone(core), stop.clone()));
    core.tasks.run("rounds", Arc::clone(core).keep_in_sync());
    core.tasks.run("leases", Arc::clone(core).watch_leases());
    core.tasks.run("membership", Arc::clone(core).stay_known());
    core.tasks.run("clock", Arc::clone(core).watch_clock());
    core.tasks.run("hints", Arc::clone(core).send_hints());
    core.tasks
        .run("dependants", Arc::clone(core).watch_dependants());
    core.tasks.run("pools", Arc::clone(core).watch_pools());
    core.tasks.run("board", Arc::clone(core).watch_board());
    core.tasks
        .run("old_months", Arc::clone(core).drop_old_months());
    core.tasks.run("content", Arc::clone(core).collect_daily());
    let (tasks, waiting) = (&core.tasks, &core.waiting);
    waiting.alarms.start(tasks, core, Core::ring);
    waiting.timers.book.start(tasks, core, Core::look_at_timers);
    waiting.results.start(tasks, core, Core::learn_results);
    let (sequences, clusters) = (&waiting.sequences.looks, &waiting.clusters.looks);
    sequences.start(tasks, core, Core::look_at_sequences);
    clusters.start(tasks, core, Core::look_at_clusters);
    let (parents, webhooks) = (&waiting.parents.looks, &waiting.webhooks.looks);
    parents.start(tasks, core, Core::look_at_parents);
    webhooks.start(tasks, core, Core::look_at_webhooks);
}
