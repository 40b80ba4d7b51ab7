//! A batch: what is about to be deleted, written down where puts see it.

use std::{sync::Arc, time::Duration};

use object_store::path::Path;

use super::{
    run::{BATCH_WITHIN, Run},
    terms::Term,
};
use crate::{Clock, ContentError, Digest, condemned::Condemned, json::json, names::condemned_name};

/// A batch that is at work.
#[derive(Debug)]
pub(super) struct Batch {
    name: Path,
    /// Time left for deletions.
    pub(super) time: TimeLeft,
}

/// Time left by two clocks, which must agree: one of them stands still while a machine sleeps.
#[derive(Debug, Clone)]
pub(super) struct TimeLeft {
    clock: Arc<dyn Clock>,
    begun: Duration,
    begun_ms: u64,
}

impl TimeLeft {
    pub(super) fn is_left(&self) -> bool {
        let passed = self.clock.elapsed().saturating_sub(self.begun);
        let passed_ms = self.clock.wall_ms().saturating_sub(self.begun_ms);
        passed < BATCH_WITHIN && u128::from(passed_ms) < BATCH_WITHIN.as_millis()
    }
}

impl Run<'_> {
    /// Writes the list of digests that may be deleted. The pins of puts are read after this.
    pub(super) async fn condemn(&mut self, digests: &[Digest]) -> Result<Batch, ContentError> {
        self.keep().await?;
        let term = self.term.as_ref().map_or(0, Term::number);
        self.batches += 1;
        let clock = Arc::clone(&self.store.clock);
        let batch = Batch {
            name: condemned_name(term, self.batches),
            time: TimeLeft {
                begun: clock.elapsed(),
                begun_ms: clock.wall_ms(),
                clock,
            },
        };
        let digests = digests.to_vec();
        let json = json(&Condemned { digests })?;
        self.store.write(&batch.name, json).await?;
        Ok(batch)
    }

    /// Ends a batch, which deletes nothing more. Not called after an error: a request may still be on its way, so the
    /// list stays for a lease.
    pub(super) async fn over(&self, batch: Batch) -> Result<(), ContentError> {
        if !batch.time.is_left() {
            tracing::warn!(
                "a batch of a collection took too long; the next collection goes on with it"
            );
        }
        self.store.delete(&batch.name).await
    }
}
