//! `max_run`: limits how many jobs run the same thing, as their submitters ask.
//!
//! Jobs are the same if their fingerprints are. Waiting, running and finished jobs of the account count. Jobs that
//! were cancelled or aborted before they ran do not. Jobs of the last refresh of the store may not count yet, so
//! simultaneous submits may exceed `max_run`.

use std::{collections::BTreeMap, iter::once};

use fairlead_job::Stage;
use fairlead_store::{Search, StoreError};

use crate::submission::{SubmissionFlow, built_jobs::BuiltJobs};
use fairlead_base::errors::SubmitError;
use fairlead_lifecycle::stages::HELD;

/// Stages of jobs that wait, run or have run.
fn counted_stages() -> impl Iterator<Item = Stage> {
    once(Stage::Submit).chain(HELD).chain(once(Stage::Finish))
}

impl SubmissionFlow {
    /// Refuses of new jobs those of whose kind there are as many as they say, in their order.
    pub(crate) async fn enforce_max_run(&self, built: &mut BuiltJobs) -> Result<(), StoreError> {
        let mut there: BTreeMap<(String, String), u64> = BTreeMap::new();
        for (outcome, asks) in built.asking() {
            let (Ok(job), Some(most)) = (&outcome, asks.max_run) else {
                continue;
            };
            if job.state.fingerprint.is_empty() {
                // A node of a cluster whose head is counted.
                continue;
            }
            let kind = (job.state.account.clone(), job.state.fingerprint.clone());
            let present = match there.get(&kind) {
                Some(present) => *present,
                None => self.count_alike(&kind).await?,
            };
            if present >= most {
                *outcome = Err(SubmitError::TooManyAlike { present, most }.into());
                there.insert(kind, present);
            } else {
                there.insert(kind, present.saturating_add(1));
            }
        }
        Ok(())
    }

    /// How many jobs of this account and fingerprint wait, run or have run.
    async fn count_alike(&self, (account, print): &(String, String)) -> Result<u64, StoreError> {
        let search = Search {
            stages: counted_stages().collect(),
            accounts: vec![account.clone()],
            fingerprints: vec![print.clone()],
            ..Search::default()
        };
        Ok(self.ctx.store.search(&search).await?.total)
    }
}

#[cfg(test)]
mod tests {
    use fairlead_job::Spec;
    use fairlead_store::{JobState, NewJob};

    use super::*;
    use crate::{
        submission::built_jobs::Asks,
        testing::{flows, state, store_job},
    };

    #[tokio::test]
    async fn what_was_run_often_enough_is_refused() {
        let (_data, flows) = flows().await;
        let alike = |n, stage| JobState {
            stage,
            fingerprint: "p".to_owned(),
            ..state(n)
        };
        store_job(&flows, alike(1, Stage::Finish)).await;
        store_job(&flows, alike(2, Stage::Cancel)).await;
        let others = JobState {
            account: "user2".to_owned(),
            ..alike(3, Stage::Finish)
        };
        store_job(&flows, others).await;
        let mut built = BuiltJobs::default();
        for (n, print, most) in [(10, "p", 2), (11, "p", 2), (12, "q", 1), (13, "p", 9)] {
            let job = NewJob {
                state: JobState {
                    fingerprint: print.to_owned(),
                    ..state(n)
                },
                body: Spec::new().into(),
            };
            let asks = Asks {
                max_run: Some(most),
                ..Asks::default()
            };
            built.add(vec![(job, asks)]);
        }
        flows.submission.enforce_max_run(&mut built).await.unwrap();
        let made = built.jobs;
        let refused: Vec<bool> = made.iter().map(Result::is_err).collect();
        assert_eq!(refused, [false, true, false, false]);
        let refusal = made[1].as_ref().unwrap_err();
        assert!(
            refusal.to_string().contains("max_run: 2 jobs"),
            "{refusal:?}"
        );
    }
}
