//! Numbers of the dashboard: one snapshot a second of the lab while anybody looks, what changed since, plots of what
//! ran, the audit log, and the metrics.

pub(crate) mod audit_log;
pub(crate) mod live;
pub(crate) mod metrics_text;
mod series;
pub(crate) mod snapshot;

use std::sync::Arc;

use crate::{
    ctx::{Ctx, Lab},
    files::FileFlow,
    jobs::JobFlow,
    peers::PeerFlow,
    people::PeopleFlow,
    placement::PlacementFlow,
    samples::SampleFlow,
    views::ViewFlow,
};

/// Makes snapshots of the lab while somebody looks.
#[derive(Debug)]
pub(crate) struct DashboardFlow {
    pub(crate) ctx: Arc<Ctx>,
    pub(crate) lab: Arc<Lab>,
    pub(crate) people: Arc<PeopleFlow>,
    pub(crate) placement: Arc<PlacementFlow>,
    pub(crate) jobs: Arc<JobFlow>,
    pub(crate) peers: Arc<PeerFlow>,
    pub(crate) files: Arc<FileFlow>,
    pub(crate) samples: Arc<SampleFlow>,
    pub(crate) views: Arc<ViewFlow>,
}
