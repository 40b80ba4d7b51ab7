//! Checks who adds jobs to a submit: the account of its first job, and whoever submits for it.
//!
//! A job may name its submit, and others follow, cancel and rerun all jobs of that name. So the name belongs to whoever used
//! it first. The id of a job names the submit that begins with it, also if that job comes later. Jobs of the last refresh
//! of the store may not be found yet.

use std::collections::{BTreeMap, BTreeSet};

use fairlead_job::JobId;
use fairlead_store::{JobState, NewJob, Search, SearchOrder, StoreError};

use crate::submission::SubmissionFlow;
use fairlead_base::errors::{Refusal, SubmitError, excerpt};

/// Names of one search.
const NAMES_MAX: usize = 1_000;

impl SubmissionFlow {
    /// Refuses jobs that name a submit of another account.
    pub(super) async fn check_submit_ids(
        &self,
        jobs: &mut [Result<NewJob, Refusal>],
    ) -> Result<(), StoreError> {
        let states = || jobs.iter().flatten().map(|job| &job.state);
        let own: BTreeSet<String> = states().map(|state| state.job_id.to_string()).collect();
        let named = || states().filter(|state| !own.contains(&state.submit_id));
        let accounts: BTreeSet<String> = named().map(|state| state.account.clone()).collect();
        let accounts: Vec<String> = accounts.into_iter().collect();
        let names: BTreeSet<String> = named().map(|state| state.submit_id.clone()).collect();
        let names: Vec<String> = names.into_iter().collect();
        let mut firsts = BTreeMap::new();
        for names in names.chunks(NAMES_MAX) {
            // Mostly there are none, or all are of the account that asks.
            let many = self.count_named(names, Vec::new()).await?;
            let are_own = many == 0
                || (accounts.len() == 1
                    && self.count_named(names, accounts.clone()).await? == many);
            for name in names.iter().filter(|name| !are_own || is_id(name)) {
                let first = self.first_named(name).await?;
                if first.is_some() || is_id(name) {
                    firsts.insert(name.clone(), first);
                }
            }
        }
        for outcome in jobs {
            let Ok(job) = outcome else { continue };
            let Some(first) = firsts.get(&job.state.submit_id) else {
                continue;
            };
            let is_same = |first: &JobState| is_same(first, &job.state);
            if !first.as_ref().is_some_and(is_same) {
                let name = excerpt(&job.state.submit_id);
                *outcome = Err(SubmitError::OthersSubmit(name).into());
            }
        }
        Ok(())
    }

    async fn count_named(&self, names: &[String], of: Vec<String>) -> Result<u64, StoreError> {
        let search = Search {
            submit_ids: names.to_vec(),
            accounts: of,
            limit: 1,
            ..Search::default()
        };
        Ok(self.ctx.store.search(&search).await?.total)
    }

    async fn first_named(&self, name: &str) -> Result<Option<JobState>, StoreError> {
        let search = Search {
            submit_ids: vec![name.to_owned()],
            order: SearchOrder::OldestFirst,
            limit: 1,
            ..Search::default()
        };
        let found = self
            .ctx
            .store
            .search(&search)
            .await?
            .jobs
            .into_iter()
            .next();
        Ok(found.map(|job| job.state))
    }
}

/// Whether a name is the id of a job.
fn is_id(name: &str) -> bool {
    name.parse::<JobId>().is_ok_and(|id| id.to_string() == name)
}

/// Whether jobs are of one account, or of one who submits for it.
fn is_same(first: &JobState, job: &JobState) -> bool {
    let names = |state: &JobState| [state.account.clone(), state.principal.clone()];
    let known = names(first);
    let mut own = names(job).into_iter().filter(|name| !name.is_empty());
    own.any(|name| known.contains(&name))
}

#[cfg(test)]
mod tests {
    use fairlead_job::Spec;

    use super::*;
    use crate::testing::{flows, state, store_job};

    #[tokio::test]
    async fn a_submit_belongs_to_the_account_of_its_first_job() {
        let (_data, flows) = flows().await;
        let of = |n: u64, account: &str, principal: &str, submit: &str| JobState {
            account: account.to_owned(),
            principal: principal.to_owned(),
            submit_id: submit.to_owned(),
            ..state(n)
        };
        let (first, later) = (JobId::new(1).to_string(), JobId::new(99).to_string());
        store_job(&flows, of(1, "alice", "", &first)).await;
        store_job(&flows, of(2, "alice", "root", "push-1")).await;
        for (account, principal, submit, is_taken) in [
            ("alice", "", first.as_str(), true),
            ("mallory", "", first.as_str(), false),
            ("mallory", "", "push-1", false),
            ("bob", "root", "push-1", true),
            ("mallory", "", "push-2", true),
            // It is to be the submit of another's next job.
            ("mallory", "", later.as_str(), false),
        ] {
            let job = NewJob {
                state: of(10, account, principal, submit),
                body: Spec::new().into(),
            };
            let mut jobs = [Ok(job)];
            flows.submission.check_submit_ids(&mut jobs).await.unwrap();
            assert_eq!(jobs[0].is_ok(), is_taken, "{account} {principal} {submit}");
        }
        let own = JobId::new(10).to_string();
        let job = NewJob {
            state: of(10, "mallory", "", &own),
            body: Spec::new().into(),
        };
        let mut jobs = [Ok(job)];
        flows.submission.check_submit_ids(&mut jobs).await.unwrap();
        assert!(jobs[0].is_ok());
    }
}
