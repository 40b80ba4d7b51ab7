//! Jobs of a submit that are built, and not stored yet.

use std::{ops::Range, sync::Arc};

use fairlead_job::{Input, JobId, Needs, Ruled, Together};
use fairlead_store::NewJob;

use crate::submission::rules::say_rule;
use fairlead_base::errors::Refusal;

/// The jobs of a submit.
#[derive(Debug, Default)]
pub(crate) struct BuiltJobs {
    /// In the order of the request, a cluster's nodes one after another.
    pub(crate) jobs: Vec<Result<NewJob, Refusal>>,
    /// Of each of them, what it asks of other jobs.
    asks: Vec<Asks>,
    /// Which of them are clusters.
    pub(crate) clusters: Vec<Range<usize>>,
}

/// What a job asks of other jobs: of its submit, and of those that run the same thing.
#[derive(Debug, Default)]
pub(crate) struct Asks {
    pub(crate) needs: Needs,
    pub(crate) inputs: Vec<Input>,
    pub(crate) max_run: Option<u64>,
    /// The group that it joins.
    pub(crate) joins: Option<Box<Joining>>,
    /// The submit rule that it met.
    pub(crate) ruled: Option<Arc<Ruled>>,
}

/// A job joins a group.
#[derive(Debug, Clone)]
pub(crate) struct Joining {
    /// What opens the group, if nobody did before. It has no id yet.
    pub(crate) parent: NewJob,
    /// The name of the group.
    pub(crate) group: String,
    /// The name of the shard in it; `None`: it has none.
    pub(crate) shard: Option<String>,
}

/// Where the ids of jobs that are created come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ids {
    /// They were made for these jobs. An id that another job has is given up for a new one.
    New,
    /// A document names them. Whoever stored a job with such an id stored this job.
    WrittenDown,
    /// They are numbers of a group. Another job may have taken one first.
    OfGroup,
}

/// Jobs that ask nothing of each other.
impl From<Vec<Result<NewJob, Refusal>>> for BuiltJobs {
    fn from(jobs: Vec<Result<NewJob, Refusal>>) -> Self {
        Self {
            asks: jobs.iter().map(|_| Asks::default()).collect(),
            jobs,
            clusters: Vec::new(),
        }
    }
}

impl BuiltJobs {
    /// Adds the jobs of one spec; several are a cluster.
    pub(super) fn add(&mut self, jobs: Vec<(NewJob, Asks)>) {
        let first = self.jobs.len();
        for (job, asks) in jobs {
            self.jobs.push(Ok(job));
            self.asks.push(asks);
        }
        self.note_cluster(first);
    }

    /// Adds a refusal for each of the jobs of one spec, which others may need by its name.
    pub(super) fn refuse(&mut self, count: usize, name: Option<&str>, refusal: &Refusal) {
        let first = self.jobs.len();
        for _ in 0..count {
            self.jobs.push(Err(refusal.clone()));
            let needs = Needs {
                name: name.map(str::to_owned),
                ..Needs::default()
            };
            self.asks.push(Asks {
                needs,
                ..Asks::default()
            });
        }
        self.note_cluster(first);
    }

    fn note_cluster(&mut self, first: usize) {
        if self.jobs.len() > first + 1 {
            self.clusters.push(first..self.jobs.len());
        }
    }

    /// Notes of the jobs from the one at `first` on which rule they met.
    pub(super) fn met(&mut self, first: usize, ruled: Ruled) {
        let ruled = Arc::new(ruled);
        for (job, asks) in self.jobs.iter_mut().zip(&mut self.asks).skip(first) {
            if let Ok(job) = job {
                say_rule(job, &ruled);
            }
            asks.ruled = Some(Arc::clone(&ruled));
        }
    }

    /// Of each job the rule that it met.
    pub(super) fn ruled(&self) -> Vec<Option<Arc<Ruled>>> {
        self.asks.iter().map(|asks| asks.ruled.clone()).collect()
    }

    /// Refuses jobs from the one on with which the groups that they join are too many.
    pub(super) fn refuse_groups_after_most(&mut self) {
        let mut together = Together::default();
        for (made, asks) in self.jobs.iter_mut().zip(&self.asks) {
            let Some(joins) = asks.joins.as_ref().filter(|_| made.is_ok()) else {
                continue;
            };
            if let Err(error) = together.add_group(&joins.parent.state.account, &joins.group) {
                *made = Err(error.into());
            }
        }
    }

    /// Takes out the jobs that join groups, each with its place.
    pub(super) fn take_joining(&mut self) -> Vec<(usize, NewJob, Joining)> {
        let mut taken = Vec::new();
        for (n, (made, asks)) in self.jobs.iter_mut().zip(&mut self.asks).enumerate() {
            let Some(joining) = asks.joins.take().filter(|_| made.is_ok()) else {
                continue;
            };
            // Its outcome comes to this place.
            if let Ok(job) = std::mem::replace(made, Err(Refusal::Stopping)) {
                taken.push((n, job, *joining));
            }
        }
        taken
    }

    /// Each job with what it asks.
    pub(super) fn asking(&mut self) -> impl Iterator<Item = (&mut Result<NewJob, Refusal>, &Asks)> {
        self.jobs.iter_mut().zip(&self.asks)
    }

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
    // One with the result of another job has that one's folder.
    if state.reused_from.is_none() {
        let (old, new) = (state.job_id.to_string(), id.to_string());
        state.result_root = state.result_root.replace(&old, &new);
    }
    state.job_id = id;
}
