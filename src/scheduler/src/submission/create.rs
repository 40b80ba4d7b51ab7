//! Creates jobs: a submit is acknowledged when the store has confirmed *that* job, and not before (I1).

use std::{collections::BTreeMap, sync::Arc};

use fairlead_job::{JobId, Stage};
use fairlead_store::{ItemError, JobState, NewJob, StoreError, StoredJob, Version};

use crate::{
    submission::SubmissionFlow,
    submission::built_jobs::{BuiltJobs, Ids, rename},
};
use fairlead_base::errors::Refusal;

/// How often a create is tried while the store does not say whether the job is in.
const TRIES_MAX: usize = 4;
/// No further try begins after this, ms: whoever asks wants to know before it gives up itself.
const TRY_MS: u64 = 8_000;
/// How often a job that is in is confirmed. Of those that confirm a job at once, one gets through at a time.
const CONFIRMS_MAX: usize = 64;

/// A job that is created, and what came of the last try.
struct Creation {
    job: NewJob,
    outcome: Option<Result<StoredJob, ItemError>>,
    /// The version of its body, if it is told.
    body: Option<Version>,
}

impl Creation {
    fn of(job: NewJob) -> Self {
        Self {
            job,
            outcome: None,
            body: None,
        }
    }

    /// Whether another try may decide.
    fn is_open(&self, ids: Ids) -> bool {
        use ItemError::{Conflict, Unknown};
        match self.outcome {
            None | Some(Err(Unknown { .. })) => true,
            // It has a new id, unless its id is the number of another shard.
            Some(Err(Conflict { .. })) => ids != Ids::OfGroup,
            Some(_) => false,
        }
    }

    /// Notes what came of a try. A job that was not taken now may be in by a try before.
    fn tried(&mut self, outcome: Result<StoredJob, ItemError>) {
        let is_doubted = matches!(self.outcome, Some(Err(ItemError::Unknown { .. })));
        self.outcome = Some(if is_doubted {
            outcome.map_err(ItemError::after_unknown)
        } else {
            outcome
        });
    }

    fn ended(self) -> Result<StoredJob, Refusal> {
        let reason = || "no outcome".to_owned();
        let unsaid = || Err(ItemError::Unknown { reason: reason() });
        self.outcome.unwrap_or_else(unsaid).map_err(Refusal::from)
    }
}

impl SubmissionFlow {
    /// Creates jobs, all or none of a cluster, and tells whoever must know.
    pub(crate) async fn create(
        self: &Arc<Self>,
        built: BuiltJobs,
        ids: Ids,
    ) -> Vec<Result<StoredJob, Refusal>> {
        let BuiltJobs {
            mut jobs, clusters, ..
        } = built;
        self.reuse.note_runs(&mut jobs).await;
        let (mut outcomes, bodies) = self.store_jobs(jobs, ids).await;
        self.all_or_none(&mut outcomes, &clusters, ids).await;
        let stored: Vec<&StoredJob> = outcomes.iter().flatten().collect();
        let untold = self.make_webhooks(&stored).await;
        for outcome in &mut outcomes {
            let id = outcome.as_ref().ok().map(|job| job.state.job_id);
            if id.is_some_and(|id| untold.contains(&id)) {
                let reason = "who is told of its end could not be stored".to_owned();
                *outcome = Err(ItemError::Unknown { reason }.into());
            }
        }
        let created: Vec<&StoredJob> = outcomes.iter().flatten().collect();
        self.jobs.created(&created, &bodies);
        self.look_at_new_dependants(&created).await;
        outcomes
    }

    /// Stores jobs; tries again while the store does not say whether they are in. Answers also the versions of their
    /// bodies.
    async fn store_jobs(
        self: &Arc<Self>,
        made: Vec<Result<NewJob, Refusal>>,
        ids: Ids,
    ) -> (Vec<Result<StoredJob, Refusal>>, BTreeMap<JobId, Version>) {
        let creations = made.into_iter().map(|made| made.map(Creation::of));
        let mut creations: Vec<_> = creations.collect();
        let deadline = self.ctx.clock.now().0.saturating_add(TRY_MS);
        for n in 0..TRIES_MAX {
            let open = creations.iter_mut().flatten();
            let open: Vec<&mut Creation> = open.filter(|creation| creation.is_open(ids)).collect();
            let is_late = n > 0 && self.ctx.clock.now().0 >= deadline;
            if open.is_empty() || is_late {
                break;
            }
            let jobs = open.iter().map(|creation| creation.job.clone()).collect();
            let results = self.jobs.writer.submit(jobs).await;
            for (creation, result) in open.into_iter().zip(results) {
                creation.body = result.as_ref().ok().and_then(|created| created.body);
                let result = result.map(|created| created.version);
                let outcome = self.stored(&mut creation.job, result, ids).await;
                creation.tried(outcome);
            }
        }
        let bodies = creations.iter().flatten();
        let bodies = bodies.filter_map(|made| Some((made.job.state.job_id, made.body?)));
        let bodies = bodies.collect();
        let ended = creations.into_iter().map(|made| made?.ended());
        (ended.collect(), bodies)
    }

    /// Reads one outcome. An id that exists is this very job, written by a try that nobody heard of, or another job's.
    async fn stored(
        self: &Arc<Self>,
        job: &mut NewJob,
        result: Result<Version, ItemError>,
        ids: Ids,
    ) -> Result<StoredJob, ItemError> {
        let current = match result {
            Ok(version) => {
                let state = job.state.clone();
                return Ok(StoredJob { state, version });
            }
            Err(ItemError::Conflict { current }) => current,
            Err(other) => return Err(other),
        };
        if let Some(stored) = self.is_in(job, ids).await? {
            return Ok(stored);
        }
        if ids == Ids::OfGroup {
            return Err(ItemError::Conflict { current });
        }
        let shards = job.state.shards.as_ref();
        let behind = shards.map_or(0, |shards| shards.count.max(shards.lister));
        let (old, new) = (
            job.state.job_id,
            self.peers.next_ids(behind.saturating_add(1)),
        );
        tracing::error!(job_id = %old, "an id was made twice");
        if job.state.cluster.is_some() {
            // Its peers name it.
            let reason = "its id is another job's".to_owned();
            return Err(ItemError::Refused { reason });
        }
        rename(job, new);
        Err(ItemError::Conflict { current })
    }

    /// The job as it is stored, if it is the one that is made here, wherever it has got to since. What is read
    /// may vanish: only once more written it counts as in.
    async fn is_in(
        self: &Arc<Self>,
        job: &NewJob,
        ids: Ids,
    ) -> Result<Option<StoredJob>, ItemError> {
        let id = [job.state.job_id];
        let unknown = |reason: String| ItemError::Unknown { reason };
        let not_read = |error: StoreError| unknown(error.to_string());
        let stored = self.ctx.store.get(&id).await.map_err(not_read)?.pop();
        let Some(stored) = stored.flatten() else {
            return Err(unknown(
                "it is said to be in, and cannot be read".to_owned(),
            ));
        };
        let is_ours = match ids {
            Ids::New => false,
            Ids::WrittenDown => true,
            // The parent and the mark of its shard.
            Ids::OfGroup => {
                let (there, new) = (&stored.state, &job.state);
                let of = |state: &JobState| state.shard.map(|place| place.of);
                of(there) == of(new) && there.fingerprint == new.fingerprint
            }
        };
        if !is_ours && (ids == Ids::OfGroup || !is_same_submit(&stored.state, &job.state)) {
            return Ok(None);
        }
        let body = self
            .ctx
            .store
            .get_bodies(&id)
            .await
            .map_err(not_read)?
            .pop();
        match body.flatten() {
            None => return Err(unknown("only half of it is in".to_owned())),
            Some(body) if !is_ours && body != *job.body => return Ok(None),
            Some(_) => {}
        }
        let mut present = stored;
        for _ in 0..CONFIRMS_MAX {
            match self.jobs.confirm(present).await {
                Ok((confirmed, true)) => return Ok(Some(confirmed)),
                // Others repeat the same submit, or the job goes on.
                Ok((changed, false)) => present = changed,
                Err(refusal) => return Err(unknown(refusal.to_string())),
            }
        }
        Err(unknown("it is in, and changes".to_owned()))
    }

    /// Looks at jobs that were created and wait for others: these may have ended meanwhile.
    async fn look_at_new_dependants(self: &Arc<Self>, jobs: &[&StoredJob]) {
        let waits = |state: &JobState| state.stage == Stage::Submit && state.waits.is_some();
        for job in jobs.iter().filter(|job| waits(&job.state)) {
            if let Err(refusal) = self.waiting.look_at_dependant(job.state.job_id).await {
                tracing::warn!(job_id = %job.state.job_id, error = %refusal, "a waiting job could not be checked; it is checked later");
            }
        }
    }
}

/// Whether both are the same job of the same submit: what differs may have changed since.
fn is_same_submit(a: &JobState, b: &JobState) -> bool {
    (a.job_id, a.submit_ms) == (b.job_id, b.submit_ms)
        && (&a.account, &a.principal) == (&b.account, &b.principal)
        && (&a.submit_id, &a.suite, &a.params) == (&b.submit_id, &b.suite, &b.params)
}

#[cfg(test)]
mod tests {
    use fairlead_job::{JobId, Spec};
    use fairlead_store::{Patch, StatePatch};
    use serde_json::json;

    use super::*;
    use crate::testing::{flows, state};

    /// What becomes of a job that was written by a try whose answer was lost, when it is submitted once more.
    async fn tried_again(since: impl Fn(&mut JobState)) -> (JobState, Vec<StoredJob>) {
        let (_data, flows) = flows().await;
        let body = Spec::from_iter([("suite".to_owned(), json!("sleep"))]);
        let job = NewJob {
            state: state(5),
            body: body.into(),
        };
        let stored = flows.ctx.store.submit(vec![job.clone()]).await.remove(0);
        let mut wanted = job.state.clone();
        since(&mut wanted);
        let patch = Patch {
            id: wanted.job_id,
            expect: stored.expect("it is in").version,
            set: StatePatch::between(&job.state, &wanted),
        };
        flows
            .ctx
            .store
            .patch(vec![patch])
            .await
            .remove(0)
            .expect("it moves on");
        let built = BuiltJobs::from(vec![Ok(job)]);
        let outcome = flows.submission.create(built, Ids::New).await.remove(0);
        let made = outcome.unwrap_or_else(|refusal| panic!("{refusal:?}"));
        let ids = [JobId::new(5), made.state.job_id];
        let stored = flows.ctx.store.get(&ids).await.expect("a read");
        (wanted, stored.into_iter().flatten().collect())
    }

    #[tokio::test]
    async fn a_job_that_a_host_has_meanwhile_is_not_made_once_more() {
        let trial = tried_again(|state| {
            state.stage = Stage::Dispatch;
            state.host = "h".to_owned();
            state.claim_token = "t".to_owned();
            state.attempt = 2;
            state.result_root.push_str(".2");
        });
        let (wanted, stored) = Box::pin(trial).await;
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
        let trial = tried_again(|state| state.submit_ms += 1);
        let (wanted, stored) = Box::pin(trial).await;
        assert_eq!(stored.first().map(|stored| &stored.state), Some(&wanted));
        let made = stored.get(1).map(|stored| stored.state.job_id);
        assert!(made.is_some_and(|made| made != wanted.job_id));
    }
}
