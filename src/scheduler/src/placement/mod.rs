//! Where a job may run: known hosts, cordons, reservations and the boot store, read together.

pub(crate) mod boot_store;
pub(crate) mod feasibility;
pub(crate) mod reserved;
pub(crate) mod shapes;

use std::sync::Arc;

use crate::{ctx::Ctx, ctx::Lab};

/// Judges on which hosts a job may run.
#[derive(Debug)]
pub(crate) struct PlacementFlow {
    pub(crate) ctx: Arc<Ctx>,
    pub(crate) lab: Arc<Lab>,
}

impl PlacementFlow {
    /// Reads the hosts that are stored.
    pub(crate) async fn load_hosts(&self) -> Result<(), fairlead_store::StoreError> {
        let gone_ms = self
            .ctx
            .clock
            .wall_ms()
            .saturating_sub(fairlead_known::hosts::GONE_MS);
        self.lab.hosts.load(&self.ctx.docs, gone_ms).await
    }
}
