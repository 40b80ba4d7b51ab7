//! Bounds the names of machines that nobody knows, in jobs that wait.
//!
//! Anybody can invent names, and each costs memory in every replica. A job has one of them for nothing, as each job has a
//! testbox. The others are charged to its account while the job waits. Whether it still does is looked up when the
//! account has its share. A replica counts what was submitted to it since its start.

use std::collections::BTreeSet;

use fairlead_job::{JobId, Stage};
use fairlead_store::{JobState, NewJob};

use crate::submission::SubmissionFlow;
use fairlead_base::{budget::Identity, errors::Refusal};

/// What one host key takes in the engine beside its text, bytes.
const KEY_BYTES: usize = 2_500;
/// So long a job may take from its charge to the store, ms.
const YOUNG_MS: u64 = 60_000;
/// Jobs that are looked up together.
const LOOKED_UP: usize = 1_000;

impl SubmissionFlow {
    /// Refuses jobs that name more unknown machines than is fair.
    pub(crate) async fn check_machines(
        &self,
        jobs: &mut [Result<NewJob, Refusal>],
    ) -> Result<(), Refusal> {
        let mut looked_up = BTreeSet::new();
        let mut known = None;
        for outcome in jobs {
            let Ok(job) = outcome else { continue };
            if job.state.host_keys.len() < 2 {
                continue;
            }
            let known = known.get_or_insert_with(|| self.lab.hosts.all_keys());
            let bytes = unknown_bytes(&job.state, known);
            if bytes == 0 {
                continue;
            }
            let of = Identity::Account(job.state.account.clone());
            let (id, now) = (job.state.job_id.to_string(), self.ctx.clock.now());
            let machines = &self.ctx.budget.machines;
            let mut added = machines.add(&of, &id, bytes, now.0);
            if added.is_err() && looked_up.insert(of.clone()) {
                self.forget_machines(&of).await?;
                added = machines.add(&of, &id, bytes, now.0);
            }
            if let Err(refused) = added {
                *outcome = Err(refused.into());
            }
        }
        Ok(())
    }

    /// Ends the charges of jobs of this identity that wait no more.
    async fn forget_machines(&self, of: &Identity) -> Result<(), Refusal> {
        let machines = &self.ctx.budget.machines;
        // Younger ones may not be stored yet.
        let names = machines.names(of, self.ctx.clock.now().0.saturating_sub(YOUNG_MS));
        let ids: Vec<JobId> = names.iter().filter_map(|name| name.parse().ok()).collect();
        for ids in ids.chunks(LOOKED_UP) {
            let found = self.ctx.store.get(ids).await?;
            for (id, job) in ids.iter().zip(found) {
                if job.is_none_or(|job| job.state.stage != Stage::Submit) {
                    machines.end(of, &id.to_string());
                }
            }
        }
        Ok(())
    }
}

/// What the unknown ones among the host keys of a job take, but for one of them.
fn unknown_bytes(state: &JobState, known: &BTreeSet<String>) -> u64 {
    let unknown = state.host_keys.iter().filter(|key| !known.contains(*key));
    let bytes: usize = unknown.skip(1).map(|key| key.len() + KEY_BYTES).sum();
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use fairlead_job::Spec;

    use super::*;
    use crate::testing::{flows, state, store_job};

    fn named(n: u64, account: &str, machines: usize) -> JobState {
        JobState {
            account: account.to_owned(),
            host_keys: (0..machines).map(|k| format!("hw@m{n}-{k}")).collect(),
            ..state(n)
        }
    }

    #[tokio::test]
    async fn an_account_names_so_many_unknown_machines_in_jobs_that_wait() {
        let (_data, flows) = flows().await;
        let mut submitted = 0;
        let mut refused = async |account: &str| {
            submitted += 1;
            let state = named(submitted, account, 256);
            let body = Spec::new().into();
            let mut jobs = [Ok(NewJob { state, body })];
            flows.submission.check_machines(&mut jobs).await.unwrap();
            let is_refused = jobs[0].is_err();
            if !is_refused {
                store_job(&flows, named(submitted, account, 1)).await;
            }
            is_refused
        };
        let mut taken = 0;
        while !refused("mallory").await {
            taken += 1;
        }
        let share = flows.ctx.config.limits.unknown_machines_bytes_max / 2;
        assert_eq!(taken, share / (255 * 2_500) - 1, "{taken}");
        assert!(!refused("alice").await);
        // One that waits no more makes room.
        let of = Identity::Account("mallory".to_owned());
        assert!(flows.ctx.budget.machines.names(&of, u64::MAX).len() > 100);
        flows
            .ctx
            .budget
            .machines
            .end(&of, &JobId::new(1).to_string());
        assert!(!refused("mallory").await && refused("mallory").await);
    }

    #[test]
    fn known_machines_and_one_name_of_each_job_cost_nothing() {
        let known = BTreeSet::from(["hw@m1-1".to_owned(), "hw@m1-2".to_owned()]);
        assert_eq!(unknown_bytes(&named(1, "alice", 3), &known), 0);
        assert_eq!(unknown_bytes(&named(1, "alice", 4), &known), 2_507);
    }
}
