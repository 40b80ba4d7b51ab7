//! Decides whether a job takes a result, from what was read.

use std::collections::{BTreeMap, BTreeSet};

use fairlead_job::JobId;
use fairlead_store::JobState;

use crate::reuse::ReuseFlow;
use fairlead_base::clock::utc_text;
use fairlead_known::reuse::{Entry, Known, why_none};
use fairlead_lifecycle::reuse::{Outcome, is_too_old, outcome};

use super::hosts::Living;

/// What was read for the jobs of one look.
#[derive(Debug, Default)]
pub(super) struct Read {
    /// Entries by the ids of their documents.
    pub(super) entries: BTreeMap<String, Entry>,
    /// The jobs that have results.
    pub(super) jobs: BTreeMap<JobId, JobState>,
    /// Jobs whose results or logs are not as they were.
    pub(super) changed: BTreeSet<JobId>,
    /// Outputs of which a part is missing.
    pub(super) gone: BTreeSet<String>,
    pub(super) living: Living,
    pub(super) now_ms: u64,
}

/// What becomes of a job.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Fate {
    /// It has the result of this job.
    Takes(Box<JobState>),
    /// It runs itself, and why.
    Runs(String),
}

/// Why a result is not taken that is older than the job takes.
pub(super) fn words_too_old(id: JobId, end_ms: u64) -> String {
    let end = utc_text(end_ms);
    format!("the result of job {id} is too old: it ended at {end}")
}

impl Read {
    /// What becomes of a job. `ids`: of its entries. `has_outputs`: whether it is to leave outputs.
    pub(super) fn fate(
        &mut self,
        flow: &ReuseFlow,
        state: &JobState,
        ids: &[String],
        has_outputs: bool,
    ) -> Fate {
        let entries = ids.iter().filter_map(|id| self.entries.get(id));
        if let Some(why) = why_none(entries.clone()) {
            return Fate::Runs(why);
        }
        let results = entries.flat_map(|entry| &entry.results);
        let mut results: Vec<Known> = results.filter(|known| known.is_good).cloned().collect();
        results.sort_by_key(|known| (known.end_ms, known.job));
        results.dedup();
        let mut why = None;
        for known in results.iter().rev() {
            match self.try_one(flow, state, known, has_outputs) {
                Ok(origin) => return Fate::Takes(Box::new(origin)),
                Err(reason) => {
                    why.get_or_insert(reason);
                }
            }
        }
        Fate::Runs(why.unwrap_or_else(|| "no earlier job succeeded with the same key".to_owned()))
    }

    /// The job whose result this is, if it may be taken; else why not.
    fn try_one(
        &mut self,
        flow: &ReuseFlow,
        state: &JobState,
        known: &Known,
        has_outputs: bool,
    ) -> Result<JobState, String> {
        let id = known.job;
        if is_too_old(state, known.end_ms, self.now_ms) {
            return Err(words_too_old(id, known.end_ms));
        }
        let origin = self.jobs.get(&id).cloned();
        let origin =
            origin.ok_or_else(|| format!("job {id}, which ran the same thing, is gone"))?;
        let is_its = origin.reuse.as_ref().map(|reuse| &reuse.key)
            == state.reuse.as_ref().map(|reuse| &reuse.key);
        if !is_its || outcome(&origin) != Outcome::Good {
            return Err(format!("job {id} has no whole result of the same key"));
        }
        if origin.account != state.account && !flow.people.accounts.shares_results(&origin.account)
        {
            return Err(format!(
                "the result of job {id} belongs to another account, which does not share it"
            ));
        }
        if !self.living.could_run(flow, state, known) {
            let words = self.living.why_not(flow, state, known);
            return Err(format!("job {id} ran the same thing, but {words}"));
        }
        if has_outputs && origin.outputs.is_empty() || self.gone.contains(&origin.outputs) {
            return Err(format!("outputs of job {id} are no longer there"));
        }
        if self.changed.contains(&id) {
            return Err(format!(
                "results or the log of job {id} were removed or changed since"
            ));
        }
        Ok(origin)
    }
}
