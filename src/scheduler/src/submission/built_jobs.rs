//! Jobs of a submit that are built, and not stored yet.

use std::ops::Range;

use fairlead_job::JobId;
use fairlead_store::NewJob;

use crate::base::errors::Refusal;

/// The jobs of a submit.
#[derive(Debug, Default)]
pub(crate) struct BuiltJobs {
    /// In the order of the request, a cluster's nodes one after another.
    pub(crate) jobs: Vec<Result<NewJob, Refusal>>,
    /// Which of them are clusters.
    pub(crate) clusters: Vec<Range<usize>>,
}

/// Where the ids of jobs that are created come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ids {
    /// They were made for these jobs. An id that another job has is given up for a new one.
    New,
    /// A document names them. Whoever stored a job with such an id stored this job.
    WrittenDown,
}

impl From<Vec<Result<NewJob, Refusal>>> for BuiltJobs {
    fn from(jobs: Vec<Result<NewJob, Refusal>>) -> Self {
        Self {
            jobs,
            clusters: Vec::new(),
        }
    }
}

impl BuiltJobs {
    /// Refuses all nodes of a cluster where one was refused.
    pub(crate) fn refuse_together(&mut self) {
        for range in &self.clusters {
            let Some(nodes) = self.jobs.get_mut(range.clone()) else {
                continue;
            };
            if let Some(refusal) = nodes.iter().find_map(|node| node.as_ref().err()).cloned() {
                nodes.fill_with(|| Err(refusal.clone()));
            }
        }
    }

    /// Refuses all jobs that are not refused yet.
    pub(crate) fn refuse_all(&mut self, refusal: &Refusal) {
        for made in self.jobs.iter_mut().filter(|made| made.is_ok()) {
            *made = Err(refusal.clone());
        }
    }
}

/// Gives a job another id before it is stored.
pub(crate) fn rename(job: &mut NewJob, id: JobId) {
    let state = &mut job.state;
    let (old, new) = (state.job_id.to_string(), id.to_string());
    state.result_root = state.result_root.replace(&old, &new);
    state.job_id = id;
}
