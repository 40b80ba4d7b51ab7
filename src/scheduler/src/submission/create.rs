//! Creates jobs: a submit is acknowledged when the store has confirmed *that* job, and not before (I1).

use std::sync::Arc;

use fairlead_api::{ErrorBody, ErrorCode, SubmitItem};
use fairlead_dispatch::Event;
use fairlead_job::{JobId, Stage, misspelt};
use fairlead_store::{ClusterPlace, ItemError, JobState, NewJob, StoreError, StoredJob, Version};
use serde_json::Value;

use crate::{
    base::errors::Refusal,
    core::Core,
    known::{accounts::Credentials, outbox::SUBMITTED_MAX},
    lifecycle::{engine_facts::facts, wait_on::Condition},
    placement::feasibility::Infeasible,
    submission::{
        cluster_nodes::BuiltJobs, idempotency::Keyed, intake::Item, needs::link,
        refusals::could_never_run,
    },
};

/// How often a create is repeated while the store does not say whether it is in.
const TRIES_MAX: usize = 4;
/// No try begins after this, ms: whoever asks wants to know before it gives up itself.
const TRY_MS: u64 = 8_000;
/// After so many jobs of one submit others get a turn.
const YIELD_EVERY: usize = 16;

/// How jobs are to be submitted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SubmitOptions<'a> {
    /// Whether jobs are refused that no known host could ever run, or with keys that are probably misspelt.
    pub(crate) strict: bool,
    /// Under which idempotency key; the jobs may name one themselves.
    pub(crate) key: Option<&'a str>,
}

/// The answer to a submit.
pub(crate) struct Submitted {
    pub(crate) items: Vec<SubmitItem>,
    /// 200 if any was accepted, else the status of the first refusal.
    pub(crate) status: u16,
}

impl Core {
    /// Submits jobs; each has its own outcome, in order.
    pub(crate) async fn submit(
        self: &Arc<Self>,
        items: Vec<Item>,
        said: &Credentials,
        how: SubmitOptions<'_>,
    ) -> Result<Submitted, Refusal> {
        let Ok(_permit) = self.requests.submits.acquire().await else {
            return Err(Refusal::stopping());
        };
        // Each second a look at the store finds out whether it is back.
        let store = self.store.health();
        if !store.reads.is_well() {
            return Err(Refusal::new(
                ErrorCode::Unavailable,
                format!("the store accepts no writes now: {}", store.problem()),
                "nothing was submitted; submit again in a few seconds",
            ));
        }
        self.sure_of_number().await?;
        let keyed = Keyed::of(how.key, &items)?;
        let mut made = BuiltJobs::default();
        for (n, item) in items.into_iter().enumerate() {
            if n % YIELD_EVERY == YIELD_EVERY - 1 {
                tokio::task::yield_now().await;
            }
            self.make_item(&mut made, item, said);
        }
        let mut warnings = self.warn(&mut made.jobs, how.strict);
        self.warn_of_clusters(&mut made, &mut warnings, how.strict);
        self.warn_of_queues(&mut made.jobs, &mut warnings, how.strict);
        let slips = warn_of_keys(&mut made.jobs, how.strict);
        self.check_parents(&mut made.jobs).await?;
        let is_limited = made.jobs.iter().flatten().any(|job| self.is_limited(job));
        if is_limited && !self.is_repeated(&made.jobs, keyed.as_ref()).await? {
            self.enforce_max_run(&mut made.jobs).await?;
            self.enforce_quotas(&mut made.jobs).await?;
        }
        link(&mut made.jobs);
        let clusters = made.refuse_together();
        // In a task of its own: a client that hangs up must not leave jobs stored that nobody knows of.
        let core = Arc::clone(self);
        let creating = self.tasks.spawn(async move {
            let has_key = keyed.is_some();
            let mut outcomes = match keyed {
                Some(keyed) => core.create_once(made.jobs, &keyed).await,
                None => core.create(made.jobs).await,
            };
            core.all_or_none(&mut outcomes, &clusters, has_key).await;
            core.learn_submitted(&outcomes).await;
            outcomes
        });
        let outcomes = creating.await.map_err(|error| {
            tracing::error!(%error, "a submit broke off");
            Refusal::from(ItemError::Unknown {
                reason: error.to_string(),
            })
        })?;
        let accepted = outcomes.iter().any(Result::is_ok);
        let first_refusal = outcomes
            .iter()
            .find_map(|outcome| outcome.as_ref().err())
            .map_or(400, |r| r.status);
        let items = outcomes.into_iter().zip(warnings).zip(slips);
        let items = items.map(|((outcome, hint), slips)| answer(outcome, hint, slips));
        let items = items.collect();
        Ok(Submitted {
            items,
            status: if accepted { 200 } else { first_refusal },
        })
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
            let Some(never) = self.never_runs(state, &mut asked) else {
                return self.kept_from(state, &mut asked);
            };
            if strict {
                *outcome = Err(could_never_run(&never));
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
            let Some(waits) = outcome
                .as_ref()
                .ok()
                .and_then(|job| job.state.waits.clone())
            else {
                continue;
            };
            let conditions = Condition::read_all(waits.get("wait_on").unwrap_or(&Value::Null))?;
            let ids: Vec<JobId> = conditions.iter().map(|condition| condition.job).collect();
            let found = self.store.get(&ids).await?;
            if let Some((missing, _)) = ids.iter().zip(found).find(|(_, job)| job.is_none()) {
                let message = format!("wait_on: unknown job {missing}");
                *outcome = Err(Refusal::new(
                    ErrorCode::BadField,
                    message,
                    "submit that job first",
                ));
            }
        }
        Ok(())
    }

    /// Creates what was made; repeats while the store does not say.
    async fn create(
        self: &Arc<Self>,
        mut made: Vec<Result<NewJob, Refusal>>,
    ) -> Vec<Result<StoredJob, Refusal>> {
        let mut outcomes: Vec<Option<Result<StoredJob, Refusal>>> =
            made.iter().map(|_| None).collect();
        // Those that may be in by a try of which nothing was heard.
        let mut doubted = vec![false; made.len()];
        let deadline = self.clock.now().0.saturating_add(TRY_MS);
        for attempt in 1..=TRIES_MAX {
            let last = attempt == TRIES_MAX || self.clock.now().0 >= deadline;
            let (slots, batch): (Vec<usize>, Vec<NewJob>) = made
                .iter()
                .enumerate()
                .filter(|(slot, _)| outcomes.get(*slot).is_some_and(Option::is_none))
                .filter_map(|(slot, job)| job.as_ref().ok().map(|job| (slot, job.clone())))
                .unzip();
            if batch.is_empty() {
                break;
            }
            let results = self.writer.submit(batch).await;
            for (slot, result) in slots.into_iter().zip(results) {
                let Some(Ok(job)) = made.get_mut(slot) else {
                    continue;
                };
                let mut created = self.created(job, result).await;
                if let Some(doubted) = doubted.get_mut(slot) {
                    if *doubted {
                        created = created.map_err(ItemError::after_unknown);
                    }
                    *doubted = matches!(created, Err(ItemError::Unknown { .. }));
                }
                let outcome = match created {
                    Err(ItemError::Unknown { .. } | ItemError::Conflict { .. }) if !last => None,
                    other => Some(other.map_err(Refusal::from)),
                };
                if let Some(place) = outcomes.get_mut(slot) {
                    *place = outcome;
                }
            }
            if last {
                break;
            }
        }
        let unsaid = || {
            Refusal::from(ItemError::Unknown {
                reason: "no outcome".to_owned(),
            })
        };
        outcomes
            .into_iter()
            .zip(made)
            .map(|(outcome, made)| match (outcome, made) {
                (_, Err(refusal)) => Err(refusal),
                (Some(outcome), Ok(_)) => outcome,
                (None, Ok(_)) => Err(unsaid()),
            })
            .collect()
    }

    /// Reads one outcome. An id that exists is this very job, written by a try that nobody heard of, or another
    /// one's: then it is given up for a new one.
    async fn created(
        self: &Arc<Self>,
        job: &mut NewJob,
        result: Result<Version, ItemError>,
    ) -> Result<StoredJob, ItemError> {
        match result {
            Ok(version) => Ok(StoredJob {
                state: job.state.clone(),
                version,
            }),
            Err(ItemError::Conflict { current }) => {
                if let Some(stored) = self.is_in(job).await? {
                    return Ok(stored);
                }
                let (old, new) = (job.state.job_id, self.next_id());
                tracing::error!(job_id = %old, "an id was made twice");
                if job.state.cluster.is_some() {
                    // Its peers name it.
                    let reason = "its id is another job's".to_owned();
                    return Err(ItemError::Refused { reason });
                }
                job.state.result_root = job
                    .state
                    .result_root
                    .replace(&old.to_string(), &new.to_string());
                job.state.job_id = new;
                Err(ItemError::Conflict { current })
            }
            Err(other) => Err(other),
        }
    }

    /// The job as it is stored, if it is the one that is made here, wherever it has got to since. What is read
    /// may vanish: only once more written it counts as in.
    async fn is_in(self: &Arc<Self>, job: &NewJob) -> Result<Option<StoredJob>, ItemError> {
        let ids = [job.state.job_id];
        let unknown = |reason: String| ItemError::Unknown { reason };
        let not_read = |error: StoreError| unknown(error.to_string());
        let stored = self.store.get(&ids).await.map_err(not_read)?.pop();
        let Some(stored) = stored.flatten() else {
            return Err(unknown(
                "it is said to be in, and cannot be read".to_owned(),
            ));
        };
        if !is_same_submit(&stored.state, &job.state) {
            return Ok(None);
        }
        let body = self.store.get_bodies(&ids).await.map_err(not_read)?.pop();
        match body.flatten() {
            None => return Err(unknown("only half of it is in".to_owned())),
            Some(body) if body != job.body => return Ok(None),
            Some(_) => {}
        }
        match self.confirm(stored).await {
            Ok((stored, true)) => Ok(Some(stored)),
            Ok((_, false)) => Err(unknown("it is in, and changes".to_owned())),
            Err(refusal) => Err(unknown(refusal.body.message)),
        }
    }

    /// What follows here from jobs that were made.
    pub(crate) async fn learn_submitted(self: &Arc<Self>, outcomes: &[Result<StoredJob, Refusal>]) {
        let accepted = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
        self.metrics
            .submitted
            .inc_by(u64::try_from(accepted).unwrap_or(u64::MAX));
        // One that has moved on was told of when that was seen: another that was slow to be stored may have held it up.
        let wait = |job: &&StoredJob| {
            job.state.stage == Stage::Submit && self.weigh(job.state.job_id, job.version)
        };
        let waiting: Vec<&StoredJob> = outcomes.iter().flatten().filter(wait).collect();
        for job in waiting.iter().take(SUBMITTED_MAX) {
            self.others.outbox.job(Arc::new(StoredJob::clone(job)));
        }
        let (ready, parked): (Vec<_>, Vec<_>) =
            waiting.into_iter().partition(|job| job.state.ready);
        let now = self.clock.now();
        for job in ready.iter().chain(&parked) {
            self.jobs.seen.note(job, now);
        }
        if !ready.is_empty() {
            self.engine
                .tell(Event::JobsLearned(ready.into_iter().map(facts).collect()));
        }
        for job in outcomes.iter().flatten() {
            self.set_alarm(job);
        }
        for job in &parked {
            self.waiting.sequences.seen(&job.state);
            self.waiting.sequences.stirred(&job.state);
        }
        for job in parked.into_iter().filter(|job| job.state.waits.is_some()) {
            self.waiting.dependants.add(&job.state);
            // Its parent may have ended meanwhile.
            if let Err(refusal) = self.look_at_dependant(job.state.job_id).await {
                tracing::warn!(job_id = %job.state.job_id, error = refusal.body.message, "a waiting job is looked at later");
            }
        }
    }
}

/// What is to be said of each job's keys that are probably misspelt fields; if `strict`, the job is refused.
fn warn_of_keys(made: &mut [Result<NewJob, Refusal>], strict: bool) -> Vec<Vec<String>> {
    let mut warn = |outcome: &mut Result<NewJob, Refusal>| {
        let Ok(job) = outcome else { return Vec::new() };
        let found = misspelt(&job.body);
        if let Some(first) = found.first().filter(|_| strict) {
            *outcome = Err(Refusal::new(
                ErrorCode::BadField,
                first.to_string(),
                "correct it; without strict it is a parameter of the job",
            ));
        }
        found.iter().map(ToString::to_string).collect()
    };
    made.iter_mut().map(&mut warn).collect()
}

/// Whether both are the same job of the same submit: what differs may have changed since.
fn is_same_submit(a: &JobState, b: &JobState) -> bool {
    (a.job_id, a.submit_ms) == (b.job_id, b.submit_ms)
        && (&a.account, &a.principal) == (&b.account, &b.principal)
        && (&a.submit_id, &a.suite, &a.params) == (&b.submit_id, &b.suite, &b.params)
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
            job_state: Stage::Submit.to_string(),
            result_root: job.state.result_root,
            submit_id: job.state.submit_id,
            cluster_id: head_of(job.state.cluster.as_ref()),
        },
        Err(refusal) => refused_item(refusal.body),
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
    }
}

fn head_of(place: Option<&ClusterPlace>) -> String {
    let head = place.and_then(ClusterPlace::head);
    head.map_or_else(String::new, |head| head.to_string())
}

#[cfg(test)]
mod tests {
    use fairlead_job::Spec;
    use fairlead_store::{Patch, StatePatch};
    use serde_json::json;

    use super::*;
    use crate::testing::{core, state};

    /// What becomes of a job that was written by a try whose answer was lost, when it is submitted once more.
    async fn tried_again(since: impl Fn(&mut JobState)) -> (JobState, Vec<StoredJob>) {
        let (_data, core) = core().await;
        let body = Spec::from_iter([("suite".to_owned(), json!("sleep"))]);
        let job = NewJob {
            state: state(5),
            body,
        };
        let stored = core.store.submit(vec![job.clone()]).await.remove(0);
        let mut wanted = job.state.clone();
        since(&mut wanted);
        let patch = Patch {
            id: wanted.job_id,
            expect: stored.expect("it is in"),
            set: StatePatch::between(&job.state, &wanted),
        };
        core.store
            .patch(vec![patch])
            .await
            .remove(0)
            .expect("it moves on");
        let outcome = core.create(vec![Ok(job)]).await.remove(0);
        let made = outcome.unwrap_or_else(|refusal| panic!("{:?}", refusal.body));
        let ids = [JobId::new(5), made.state.job_id];
        let stored = core.store.get(&ids).await.expect("a read");
        (wanted, stored.into_iter().flatten().collect())
    }

    #[tokio::test]
    async fn a_job_that_a_host_has_meanwhile_is_not_made_once_more() {
        let (wanted, stored) = tried_again(|state| {
            state.stage = Stage::Dispatch;
            state.host = "h".to_owned();
            state.claim_token = "t".to_owned();
            state.attempt = 2;
            state.result_root.push_str(".2");
        })
        .await;
        for stored in stored {
            let claim_seq = stored.state.claim_seq;
            assert_eq!(
                stored.state,
                JobState {
                    claim_seq,
                    ..wanted.clone()
                }
            );
        }
    }

    #[tokio::test]
    async fn an_id_that_another_job_has_is_given_up() {
        let (wanted, stored) = tried_again(|state| state.submit_ms += 1).await;
        assert_eq!(stored.first().map(|stored| &stored.state), Some(&wanted));
        let made = stored.get(1).map(|stored| stored.state.job_id);
        assert!(made.is_some_and(|made| made != wanted.job_id));
    }
}
