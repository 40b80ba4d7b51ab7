//! Settles states that this replica saw and the store does not have, and proves states before others are built on them.
//!
//! An unacknowledged write can be read and then vanish. With Elasticsearch this is proven: a node that is cut off shows
//! it, and the node that takes its place never had it. A replica that saw the write would forever take the true, older
//! state for a search that lags. So a job that stays older than the seen version is read in real time. If the store
//! really has no newer state, the state is rewritten unchanged: its new version is greater than any that was seen.

use std::sync::Arc;

use fairlead_job::JobId;
use fairlead_store::{StoreError, StoredJob};
use futures_util::future::join_all;

use crate::jobs::JobFlow;
use fairlead_base::errors::Refusal;
use fairlead_lifecycle::{changed::Changed, touch::touch};

impl JobFlow {
    /// Whether all of these states are the store's for sure. No job ends, starts or takes a result by a state that was
    /// only read.
    ///
    /// A state is proven if the store acknowledged its version to this replica, or to a peer that told so. Any other is
    /// written once more, all together. `false`: some of them changed meanwhile, or vanished.
    pub(crate) async fn are_proven(
        self: &Arc<Self>,
        read: Vec<StoredJob>,
    ) -> Result<bool, Refusal> {
        let unproven = read.into_iter().filter(|job| !self.seen.is_proven(job));
        let confirmed = join_all(unproven.map(|job| self.confirm(job))).await;
        let mut all_same = true;
        for confirmed in confirmed {
            all_same &= confirmed?.1;
        }
        Ok(all_same)
    }

    /// Looks in real time at what stayed in doubt, and writes anew what the store truly has.
    pub(crate) async fn settle_doubts(self: &Arc<Self>) -> Result<(), StoreError> {
        let due = self.vanished_writes.due(self.ctx.clock.now());
        if due.is_empty() {
            return Ok(());
        }
        let ids: Vec<JobId> = due.iter().map(|(id, _)| *id).collect();
        let found = self.ctx.store.get(&ids).await?;
        for ((_, doubted), stored) in due.into_iter().zip(found) {
            if let Some(stored) = stored.filter(|stored| stored.version == doubted) {
                self.write_anew(stored).await;
            }
        }
        Ok(())
    }

    async fn write_anew(self: &Arc<Self>, stored: StoredJob) {
        let id = stored.state.job_id;
        let (wanted, patch) = touch(&stored);
        tracing::warn!(job_id = %id, "the store lost a state that this replica saw; the stored state counts");
        // Any other outcome means that somebody wrote it: that version is greater, too.
        if let Ok(version) = self.writer.patch(patch).await {
            let after = StoredJob {
                state: wanted,
                version,
            };
            self.changed(&Changed {
                before: stored,
                after,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use fairlead_dispatch::Millis;
    use fairlead_store::Version;

    use super::*;
    use crate::testing::{flows, state, store_job};
    use fairlead_known::vanished_writes::{DOUBT_MS, VanishedWrites};

    fn version(seq_no: u64) -> Version {
        Version {
            primary_term: 1,
            seq_no,
        }
    }

    #[test]
    fn a_doubt_lasts_while_the_job_stays_as_old() {
        let doubts = VanishedWrites::default();
        let id = JobId::new(1);
        doubts.weigh(id, version(5), version(9), Millis(0));
        doubts.weigh(id, version(6), version(9), Millis(3_000));
        assert_eq!(doubts.due(Millis(DOUBT_MS)), [], "it moved at 3 s");
        assert_eq!(doubts.due(Millis(3_000 + DOUBT_MS)), [(id, version(6))]);
        doubts.weigh(id, version(6), version(9), Millis(0));
        doubts.weigh(id, version(9), version(9), Millis(1));
        assert_eq!(doubts.due(Millis(u64::MAX)), [], "the search caught up");
    }

    #[tokio::test]
    async fn a_job_of_which_a_state_was_seen_that_never_came_to_be_is_known_again() {
        let (_data, flows) = flows().await;
        let stored = store_job(&flows, state(5)).await;
        // A state was read, and vanished with the node that showed it.
        let mut vanished = stored.clone();
        vanished.version.seq_no += 1;
        vanished.state.stage = fairlead_job::Stage::Running;
        vanished.state.host = "h".to_owned();
        flows.jobs.observe(&vanished);
        assert_eq!(flows.jobs.live.count(), 1);
        flows.jobs.observe(&stored);
        assert_eq!(flows.jobs.live.count(), 1, "perhaps a search that lags");
        let doubted = flows.jobs.vanished_writes.due(Millis(u64::MAX));
        assert_eq!(doubted, [(stored.state.job_id, stored.version)]);
        // What is written after a loss has a greater version than what was lost.
        store_job(&flows, state(6)).await;
        flows.jobs.write_anew(stored).await;
        assert_eq!(flows.jobs.live.count(), 0);
    }
}
