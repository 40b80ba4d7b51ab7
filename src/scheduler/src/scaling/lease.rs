//! Which replica decides: the one that the document of all pools names, as long as it counts on.
//!
//! It counts on beside its rounds, for a provider may take long.

use std::{sync::Arc, time::Duration};

use fairlead_store::ItemError;
use tokio::sync::watch;

use super::memory::{Scaler, Seen};
use crate::scaling::ScalingFlow;
use fairlead_base::{errors::Refusal, storage::small_doc::Stored};
use fairlead_known::pools::{ALL_POOLS, FleetDoc};

/// Time between two rounds.
const EVERY: Duration = Duration::from_secs(15);
/// Time between two looks at who decides. Who decides counts on at each.
const BEAT: Duration = Duration::from_secs(3);
/// A replica that did not count on for so long decides no more, ms: another does at most a beat later.
const SILENT_MS: u64 = 10_000;

impl ScalingFlow {
    /// Decides for the pools while it is this replica's turn, until it stops.
    pub(crate) async fn watch_pools(self: Arc<Self>) {
        let (tell, turn) = watch::channel(false);
        let rounds = Box::pin(Arc::clone(&self).hold_rounds(turn));
        tokio::select! {
            biased;
            () = self.ctx.tasks.draining.cancelled() => {}
            () = self.look_whose_turn(tell) => {}
            () = rounds => {}
        }
    }

    /// Tells whether it is this replica's turn.
    async fn look_whose_turn(&self, tell: watch::Sender<bool>) {
        let mut seen = Seen::default();
        // Hosts that are always there ask again by then.
        self.ctx.clock.sleep(EVERY).await;
        loop {
            self.ctx.clock.rest(BEAT).await;
            let decides = if self.has_pools() {
                self.decides(&mut seen).await.unwrap_or_else(|error| {
                    tracing::warn!(%error, "it could not be told which replica decides for the pools");
                    false
                })
            } else {
                false
            };
            let is_news =
                tell.send_if_modified(|known| std::mem::replace(known, decides) != decides);
            if is_news && decides {
                tracing::info!("this replica decides for the pools from now on");
            }
        }
    }

    /// A round at once when it becomes this replica's turn, and then every 15 s.
    async fn hold_rounds(self: Arc<Self>, mut turn: watch::Receiver<bool>) {
        let mut scaler = Scaler::default();
        while turn.wait_for(|decides| *decides).await.is_ok() {
            scaler.holds(self.ctx.clock.wall_ms());
            if let Err(error) = Box::pin(self.scale(&mut scaler)).await {
                tracing::warn!(%error, "the pools could not be looked at; they are looked at again");
            }
            tokio::select! {
                biased;
                ended = turn.wait_for(|decides| !*decides) => {
                    if ended.is_err() {
                        return;
                    }
                    scaler.rests();
                }
                () = self.ctx.clock.rest(EVERY) => {}
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

    /// Whether this replica decides, from now to the next look.
    async fn decides(&self, seen: &mut Seen) -> Result<bool, Refusal> {
        let read = self.ctx.docs.read::<FleetDoc>(ALL_POOLS).await?;
        let now = self.ctx.clock.now();
        let (holder, beat) = read.as_ref().map_or((String::new(), 0), |read| {
            (read.doc.holder.clone(), read.doc.beat)
        });
        let is_ours = holder == self.ctx.replicas.run;
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
        Ok(self.count_on(read, beat).await?)
    }

    async fn count_on(&self, over: Option<Stored<FleetDoc>>, beat: u64) -> Result<bool, ItemError> {
        let doc = FleetDoc {
            holder: self.ctx.replicas.run.clone(),
            beat: beat.saturating_add(1),
            ..FleetDoc::default()
        };
        match self
            .ctx
            .docs
            .put(ALL_POOLS, over.as_ref(), Some(&doc))
            .await
        {
            Ok(_) => Ok(true),
            // Perhaps it is in: the next look reads it.
            Err(ItemError::Conflict { .. } | ItemError::Unknown { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Clock, Config, Pause,
        testing::{embedded, flows_beside, flows_over},
    };

    #[tokio::test(start_paused = true)]
    async fn another_replica_decides_ten_seconds_after_the_last_beat() {
        let data = tempfile::tempdir().unwrap();
        let config = Config::embedded(data.path().to_owned());
        let clock = Clock::simulated(1_000, Arc::new(Pause::default()));
        let one = flows_over(embedded(&data), config, clock);
        let other = flows_beside(&one);
        let (mut its, mut others) = (Seen::default(), Seen::default());
        for _ in 0..5 {
            assert!(one.scaling.decides(&mut its).await.unwrap());
            assert!(!other.scaling.decides(&mut others).await.unwrap());
            one.ctx.clock.sleep(BEAT).await;
        }
        // It counts on no more.
        let mut waited = BEAT;
        while !other.scaling.decides(&mut others).await.unwrap() {
            other.ctx.clock.sleep(BEAT).await;
            waited += BEAT;
        }
        assert!(waited < EVERY, "{waited:?}");
        assert!(!one.scaling.decides(&mut its).await.unwrap());
    }
}
