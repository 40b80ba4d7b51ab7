//! Compares this replica's wall clock with the others'.
//!
//! Each beat says the time, and when this replica read the last beats of the others. With two replicas nobody could tell
//! which clock is right, so the store's clock decides.

use crate::peers::PeerFlow;
use fairlead_base::lab_clock::{Witness, is_doubted};

impl PeerFlow {
    /// Compares the clocks by the last beats.
    pub(crate) async fn compare_clocks(&self) {
        let others = self.ctx.replicas.witnesses(self.ctx.clock.now());
        self.ctx.clock.compare(&self.with_store(others).await);
    }

    /// Beside one other replica the store is a witness, too.
    async fn with_store(&self, mut witnesses: Vec<Witness>) -> Vec<Witness> {
        if witnesses.len() != 1 {
            return witnesses;
        }
        let asked = self.ctx.clock.now();
        let said = self.ctx.store.wall_ms().await;
        let told = self.ctx.clock.now();
        match said {
            Ok(Some(wall_ms)) => witnesses.push(Witness::between(wall_ms, asked, told)),
            Ok(None) => {}
            Err(error) => tracing::debug!(%error, "the store did not tell its time"),
        }
        witnesses
    }

    /// Returns true if the clock is off by the last beats of all replicas whose documents are there. They may be dead, or
    /// their beats older than they look. If the clock is not off, theirs hold until the others answer: a step right
    /// after the start counts at once, too.
    pub(crate) async fn may_be_off(&self) -> bool {
        let (name, now) = (&self.ctx.config.replica, self.ctx.clock.now());
        let suspected = self.ctx.replicas.suspected_witnesses(name, now);
        let witnesses = self.with_store(suspected).await;
        let is_doubted = is_doubted(&witnesses, self.ctx.clock.ahead_ms());
        if !is_doubted {
            self.ctx.clock.compare(&witnesses);
        }
        is_doubted
    }
}
