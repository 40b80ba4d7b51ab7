//! Takes a submit: builds, checks and creates its jobs. Each job has its own outcome.

use std::sync::Arc;

use fairlead_api::{ErrorBody, SubmitItem};
use fairlead_job::{JobId, Ruled, Stage, Together, misspelt};
use fairlead_store::{ClusterPlace, ItemError, JobState, NewJob, StoreError, StoredJob, Version};

use crate::{
    placement::feasibility::Infeasible,
    submission::{
        SubmissionFlow,
        built_jobs::BuiltJobs,
        idempotency::Keyed,
        intake::Item,
        needs::link_jobs,
        rules::{rule_applied, rule_words},
    },
};
use fairlead_base::errors::{Refusal, SubmitError};
use fairlead_known::accounts::Credentials;
use fairlead_lifecycle::wait_on::waits_for;

/// After so many jobs of one submit others get a turn.
const YIELD_EVERY: usize = 16;

/// How jobs are to be submitted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SubmitOptions<'a> {
    /// Whether jobs are refused that no known host could ever run, or with keys that are probably misspelt.
    pub(crate) strict: bool,
    /// Whether jobs are only checked, and nothing is stored.
    pub(crate) dry_run: bool,
    /// Under which idempotency key; the jobs may name one themselves.
    pub(crate) key: Option<&'a str>,
}

/// The answer to a submit.
pub(crate) struct Submitted {
    pub(crate) items: Vec<SubmitItem>,
    /// 200 if any was accepted, else the status of the first refusal.
    pub(crate) status: u16,
    /// Of a dry run: each job as it would be stored. None: it is refused, or has a result at once.
    pub(crate) checked: Vec<Option<Box<JobState>>>,
}

/// What is said of jobs beside their outcomes.
struct Remarks {
    /// Why a job may not run, or not where its author thinks.
    hints: Vec<Option<String>>,
    /// Keys that are probably misspelt.
    slips: Vec<Vec<String>>,
    /// The rules that they met.
    ruled: Vec<Option<Arc<Ruled>>>,
}

impl Submitted {
    /// The same of jobs that run others again.
    pub(crate) fn again(mut self, of: &[JobId]) -> Self {
        for (item, id) in self.items.iter_mut().zip(of) {
            item.rerun_of = id.to_string();
        }
        self
    }

    /// The answer where nothing is stored: no job has an id, and none has begun.
    fn of_none(jobs: Vec<Result<NewJob, Refusal>>, remarks: Remarks) -> Self {
        let stored = |job: NewJob| StoredJob {
            version: Version::default(),
            state: job.state,
        };
        let runs = jobs.iter().map(|made| {
            let job = made.as_ref().ok().filter(|job| !job.is_over())?;
            Some(Box::new(job.state.clone()))
        });
        let runs = runs.collect();
        let outcomes = jobs.into_iter().map(|made| made.map(stored));
        let mut checked = Self {
            checked: runs,
            ..Self::of(outcomes.collect(), remarks)
        };
        for item in checked.items.iter_mut().filter(|item| item.code.is_empty()) {
            for text in [
                &mut item.job_id,
                &mut item.job_state,
                &mut item.result_root,
                &mut item.submit_id,
                &mut item.cluster_id,
                &mut item.shard_of,
                &mut item.joined,
            ] {
                text.clear();
            }
        }
        checked
    }

    fn of(outcomes: Vec<Result<StoredJob, Refusal>>, remarks: Remarks) -> Self {
        let accepted = outcomes.iter().any(Result::is_ok);
        let first_refusal = outcomes
            .iter()
            .find_map(|outcome| outcome.as_ref().err())
            .map_or(400, Refusal::status);
        let items = outcomes.into_iter().zip(remarks.hints).zip(remarks.slips);
        let items = items
            .zip(remarks.ruled)
            .map(|(((outcome, hint), slips), ruled)| {
                let ruled = ruled.as_deref();
                let mut item = answer(outcome, hint, slips);
                item.rule = ruled.map(rule_applied);
                if item.job_id == "0" {
                    let words = ruled.and_then(rule_words).into_iter();
                    let hints = std::iter::once(item.hint).filter(|hint| !hint.is_empty());
                    item.hint = hints.chain(words).collect::<Vec<_>>().join("; ");
                }
                item
            });
        Self {
            items: items.collect(),
            status: if accepted { 200 } else { first_refusal },
            checked: Vec::new(),
        }
    }
}

impl SubmissionFlow {
    /// Submits jobs; each has its own outcome, in order.
    pub(crate) async fn submit(
        self: &Arc<Self>,
        items: Vec<Item>,
        said: &Credentials,
        how: SubmitOptions<'_>,
    ) -> Result<Submitted, Refusal> {
        let Ok(_permit) = self.submits.acquire().await else {
            return Err(Refusal::Stopping);
        };
        self.check_writes()?;
        self.peers.sure_of_number().await?;
        let keyed = Keyed::of(how.key, &items)?;
        let mut built = self.make_items(items, said).await;
        self.check_submit_ids(&mut built.jobs).await?;
        if !how.dry_run {
            self.check_machines(&mut built.jobs).await?;
        }
        let remarks = self.remark(&mut built, how.strict).await;
        self.check_devices(&mut built.jobs).await?;
        self.check_parents(&mut built.jobs).await?;
        self.check_circles(&mut built).await?;
        self.check_inputs(&mut built.jobs, how.dry_run).await?;
        let waiting_for_none = built
            .asking()
            .filter(|(_, asks)| asks.needs.names.is_empty())
            .filter_map(|(job, _)| job.as_mut().ok());
        self.reuse
            .take_results(waiting_for_none.collect(), None)
            .await;
        self.enforce_limits(&mut built, keyed.as_ref()).await?;
        link_jobs(&mut built);
        built.refuse_together();
        if how.dry_run {
            return Ok(Submitted::of_none(built.jobs, remarks));
        }
        // In a task of its own: a client that hangs up must not leave jobs stored that nobody knows of.
        let flow = Arc::clone(self);
        let creating = self
            .ctx
            .tasks
            .spawn(async move { flow.create_once(built, keyed.as_ref()).await });
        let outcomes = creating.await.map_err(|error| {
            tracing::error!(%error, "a submit failed in its task");
            Refusal::from(ItemError::Unknown {
                reason: error.to_string(),
            })
        })?;
        Ok(Submitted::of(outcomes, remarks))
    }

    /// Refuses a submit while the store is not well. Each second a look at the store finds out whether it is back.
    fn check_writes(&self) -> Result<(), SubmitError> {
        if self.ctx.store.health().is_well() {
            return Ok(());
        }
        Err(SubmitError::NoWrites)
    }

    async fn make_items(&self, items: Vec<Item>, said: &Credentials) -> BuiltJobs {
        let mut made = BuiltJobs::default();
        for (n, item) in items.into_iter().enumerate() {
            if n % YIELD_EVERY == YIELD_EVERY - 1 {
                tokio::task::yield_now().await;
            }
            self.make_item(&mut made, item, said);
        }
        name_submit(&mut made.jobs);
        self.check_many_shards(&mut made.jobs);
        made.refuse_groups_after_most();
        made
    }

    /// Refuses jobs from the one on with which the jobs of a submit and their shards are too many.
    fn check_many_shards(&self, made: &mut [Result<NewJob, Refusal>]) {
        let limits = self.ctx.config.limits.of_submits();
        let mut together = Together::default();
        for outcome in made {
            let Ok(job) = outcome else { continue };
            let Some(shards) = &job.state.shards else {
                continue;
            };
            if let Err(error) = together.add_shards(shards.count, &limits) {
                *outcome = Err(error.into());
            }
        }
    }

    /// What is to be said of jobs; if `strict`, some of it refuses them.
    async fn remark(&self, made: &mut BuiltJobs, strict: bool) -> Remarks {
        let mut hints = self.warn(&mut made.jobs, strict);
        self.warn_of_clusters(made, &mut hints, strict);
        self.warn_of_queues(&mut made.jobs, &mut hints, strict);
        self.placement
            .warn_of_boot(&mut made.jobs, &mut hints, strict)
            .await;
        let slips = warn_of_keys(&mut made.jobs, strict);
        let ruled = made.ruled();
        Remarks {
            hints,
            slips,
            ruled,
        }
    }

    /// Refuses jobs over a limit, but not those that were submitted under their key before.
    async fn enforce_limits(
        &self,
        built: &mut BuiltJobs,
        keyed: Option<&Keyed>,
    ) -> Result<(), StoreError> {
        let mut runs = built.jobs.iter().flatten().filter(|job| !job.is_over());
        let is_limited = runs.any(|job| self.is_limited(job));
        if is_limited && !self.is_repeated(&built.jobs, keyed).await? {
            self.enforce_max_run(built).await?;
            self.enforce_quotas(&mut built.jobs).await?;
        }
        Ok(())
    }

    /// What is to be said of each job that no known host could ever run, or none for now; if `strict`, a job of
    /// the first kind is refused.
    pub(crate) fn warn(
        &self,
        made: &mut [Result<NewJob, Refusal>],
        strict: bool,
    ) -> Vec<Option<String>> {
        let mut asked = Infeasible::default();
        let mut warn = |outcome: &mut Result<NewJob, Refusal>| {
            let state = &outcome.as_ref().ok()?.state;
            let Some(never) = self.placement.never_runs(state, &mut asked) else {
                return self.placement.kept_from(state, &mut asked);
            };
            if strict {
                *outcome = Err(SubmitError::NoHost(never.clone()).into());
            }
            Some(never)
        };
        made.iter_mut().map(&mut warn).collect()
    }

    /// Refuses jobs that wait for jobs that are not there.
    pub(crate) async fn check_parents(
        &self,
        made: &mut [Result<NewJob, Refusal>],
    ) -> Result<(), Refusal> {
        for outcome in made.iter_mut() {
            let waits = outcome.as_ref().ok().and_then(|job| waits_for(&job.state));
            let Some(on) = waits else { continue };
            let ids = on.jobs();
            let found = self.ctx.store.get(&ids).await?;
            if let Some((missing, _)) = ids.iter().zip(found).find(|(_, job)| job.is_none()) {
                *outcome = Err(SubmitError::UnknownParent(*missing).into());
            }
        }
        Ok(())
    }
}

/// Names a submit whose jobs do not say to which one they belong: by the first of them.
fn name_submit(made: &mut [Result<NewJob, Refusal>]) {
    let first = made.iter().flatten().next();
    let Some(name) = first.map(|job| job.state.job_id.to_string()) else {
        return;
    };
    for job in made.iter_mut().flatten() {
        if job.state.submit_id.is_empty() {
            job.state.submit_id.clone_from(&name);
        }
    }
}

/// What is to be said of each job's keys that are probably misspelt fields; if `strict`, the job is refused.
fn warn_of_keys(made: &mut [Result<NewJob, Refusal>], strict: bool) -> Vec<Vec<String>> {
    let mut warn = |outcome: &mut Result<NewJob, Refusal>| {
        let Ok(job) = outcome else { return Vec::new() };
        let found = misspelt(&job.body);
        if let Some(first) = found.first().filter(|_| strict) {
            *outcome = Err(SubmitError::Misspelt(first.to_string()).into());
        }
        found.iter().map(ToString::to_string).collect()
    };
    made.iter_mut().map(&mut warn).collect()
}

fn answer(
    outcome: Result<StoredJob, Refusal>,
    hint: Option<String>,
    warnings: Vec<String>,
) -> SubmitItem {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    match outcome {
        Ok(job) => SubmitItem {
            job_id: job.state.job_id.to_string(),
            message: String::new(),
            errcode: String::new(),
            code: String::new(),
            hint: hint.unwrap_or_default(),
            warnings,
            version,
            job_state: if job.state.reused_from.is_some() {
                job.state.stage.to_string()
            } else {
                Stage::Submit.to_string()
            },
            reused_from: shown(job.state.reused_from),
            joined: shown(job.state.reuse.as_ref().and_then(|reuse| reuse.joined)),
            result_root: job.state.result_root,
            submit_id: job.state.submit_id,
            cluster_id: head_of(job.state.cluster.as_ref()),
            shard_of: job
                .state
                .shard
                .map_or_else(String::new, |place| place.of.to_string()),
            rerun_of: String::new(),
            rule: None,
            outlook: None,
        },
        Err(refusal) => refused_item(refusal.body()),
    }
}

/// A refused job in the answer to a submit.
pub(crate) fn refused_item(body: ErrorBody) -> SubmitItem {
    SubmitItem {
        job_id: "0".to_owned(),
        message: body.message,
        errcode: body.code.as_str().to_owned(),
        code: body.code.as_str().to_owned(),
        hint: body.hint,
        warnings: Vec::new(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        job_state: String::new(),
        result_root: String::new(),
        submit_id: String::new(),
        cluster_id: String::new(),
        shard_of: String::new(),
        rerun_of: String::new(),
        reused_from: String::new(),
        joined: String::new(),
        rule: None,
        outlook: None,
    }
}

fn shown(id: Option<JobId>) -> String {
    id.map_or_else(String::new, |id| id.to_string())
}

fn head_of(place: Option<&ClusterPlace>) -> String {
    let head = place.and_then(ClusterPlace::head);
    head.map_or_else(String::new, |head| head.to_string())
}
