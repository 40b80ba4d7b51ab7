//! State that all flows share and that has no opinion: configuration, clock, stores, tasks, and facts of the lab.

use std::sync::Arc;

use fairlead_content::ContentStore;
use fairlead_job::JobId;
use fairlead_store::{EventRecord, JobStore};
use serde_json::Value;

use crate::{Clock, Config};
use fairlead_base::{
    budget::{Budget, Charge, Identity},
    errors::Refusal,
    mailbox::Mailbox,
    metrics::Metrics,
    sealing::Sealer,
    storage::small_doc::SmallDocs,
    tasks::Tasks,
};
use fairlead_known::{
    board::Board, cordons::Cordons, feasibility::Feasibility, hosts::Hosts, outbox::Outbox,
    pools::Pools, replicas::Replicas, reservations::Reservations,
};

/// Tools that all flows of a replica share. No lock of any flow is held across an await.
#[derive(Debug)]
pub(crate) struct Ctx {
    pub(crate) config: Config,
    pub(crate) clock: Clock,
    pub(crate) store: Arc<dyn JobStore>,
    /// Inputs and outputs of jobs.
    pub(crate) content: ContentStore,
    pub(crate) docs: SmallDocs,
    pub(crate) metrics: Metrics,
    pub(crate) sealer: Sealer,
    pub(crate) tasks: Tasks,
    /// Events and questions for the engine.
    pub(crate) engine: Mailbox,
    /// Shares of what all requests use.
    pub(crate) budget: Budget,
    /// Messages for the other replicas.
    pub(crate) outbox: Outbox,
    pub(crate) replicas: Replicas,
}

/// Facts of hosts and pools, and what keeps jobs off hosts.
#[derive(Debug, Default)]
pub(crate) struct Lab {
    pub(crate) hosts: Hosts,
    /// Shapes of jobs that some host could run.
    pub(crate) feasibility: Feasibility,
    /// Hosts that get no new job.
    pub(crate) cordons: Cordons,
    /// Hosts that are kept for some accounts.
    pub(crate) reservations: Reservations,
    /// Pools of machines that come and go.
    pub(crate) pools: Pools,
    /// Numbers that people look at.
    pub(crate) board: Board,
}

impl Ctx {
    /// Returns how many replicas come before this one for a job.
    pub(crate) fn turn_for(&self, id: JobId) -> usize {
        self.replicas.rank(id, self.clock.now())
    }

    /// Takes a place among the waiting requests, which is free again when dropped. Refuses when this identity has its
    /// share.
    pub(crate) fn wait_place(&self, whose: Identity) -> Result<Charge, Refusal> {
        Ok(self.budget.places.take(whose, 1)?)
    }

    /// Notes in the append-only audit log that `who` did `what` to `subject`. Returns at once. The log is best effort:
    /// if the store is away, the entry is lost, and the action still happens.
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
        let store = Arc::clone(&self.store);
        self.tasks.spawn(async move {
            if let Err(error) = store.append_events(vec![event]).await {
                tracing::warn!(%error, "an audit event could not be stored");
            }
        });
    }
}
