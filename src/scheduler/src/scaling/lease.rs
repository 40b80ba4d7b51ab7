//! Which replica decides: the one that the document of all pools names, as long as it counts on.

use std::{sync::Arc, time::Duration};

use fairlead_dispatch::Millis;
use fairlead_store::ItemError;

use super::round::Scaler;
use crate::{
    base::errors::Refusal,
    core::Core,
    known::pools::{ALL_POOLS, FleetDoc},
    storage::small_doc::Stored,
};

/// Time between two rounds.
const EVERY: Duration = Duration::from_secs(15);
/// A replica that did not count on for so long decides no more, ms.
const SILENT_MS: u64 = 45_000;

/// Who decides, as this replica saw it last.
#[derive(Debug, Default)]
pub(super) struct Seen {
    holder: String,
    beat: u64,
    /// Since when it is so, on this replica's own clock.
    since: Millis,
}

impl Core {
    /// Decides for the pools while it is this replica's turn, until it stops.
    pub(crate) async fn watch_pools(self: Arc<Self>) {
        let mut scaler = Scaler::default();
        loop {
            tokio::select! {
                biased;
                () = self.draining.cancelled() => return,
                () = self.clock.sleep(EVERY) => {}
            }
            if !self.has_pools() {
                scaler = Scaler::default();
                continue;
            }
            match self.decides(&mut scaler).await {
                Ok(true) => {
                    if let Err(error) = Box::pin(self.scale(&mut scaler)).await {
                        tracing::warn!(%error, "the pools could not be looked at; they are looked at again");
                    }
                }
                Ok(false) => scaler.rests(),
                Err(error) => {
                    scaler.rests();
                    tracing::warn!(%error, "it could not be told which replica decides for the pools");
                }
            }
        }
    }

    /// Whether there are pools whose providers this replica reaches.
    fn has_pools(&self) -> bool {
        let pools = self.lab.pools.all();
        pools
            .iter()
            .any(|(_, pool)| self.providers.has(&pool.provider))
    }

    /// Whether this replica decides, from now to the next round.
    async fn decides(&self, scaler: &mut Scaler) -> Result<bool, Refusal> {
        let read = self.docs.read::<FleetDoc>(ALL_POOLS).await?;
        let now = self.clock.now();
        let (holder, beat) = read.as_ref().map_or((String::new(), 0), |read| {
            (read.doc.holder.clone(), read.doc.beat)
        });
        let seen = &mut scaler.seen;
        let is_ours = holder == self.others.run;
        if !is_ours && !holder.is_empty() {
            if (&seen.holder, seen.beat) != (&holder, beat) {
                *seen = Seen {
                    holder,
                    beat,
                    since: now,
                };
                return Ok(false);
            }
            if now.0.saturating_sub(seen.since.0) < SILENT_MS {
                return Ok(false);
            }
        }
        let is_held = self.count_on(read, beat).await?;
        if is_held && !is_ours {
            tracing::info!("this replica decides for the pools from now on");
        }
        if is_held {
            scaler.holds(self.clock.wall_ms());
        }
        Ok(is_held)
    }

    async fn count_on(&self, over: Option<Stored<FleetDoc>>, beat: u64) -> Result<bool, ItemError> {
        let doc = FleetDoc {
            holder: self.others.run.clone(),
            beat: beat.saturating_add(1),
            ..FleetDoc::default()
        };
        match self.docs.put(ALL_POOLS, over.as_ref(), Some(&doc)).await {
            Ok(_) => Ok(true),
            // Perhaps it is in: the next round reads it.
            Err(ItemError::Conflict { .. } | ItemError::Unknown { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
