//! Runs a job again, or what failed of it: as a new job with the same body.

use std::{collections::BTreeSet, sync::Arc};

use fairlead_api::SubmitItem;
use fairlead_job::{CALLBACK, FieldError, Health, Input, JobId, NOTIFY, Spec};
use fairlead_store::{JobState, ShardPlace, StoredJob};
use serde_json::{Value, json};

use crate::{
    base::errors::{JobError, Refusal},
    core::Core,
    known::accounts::{Credentials, Who},
    lifecycle::shards::{check_whole, has_failed},
    submission::submit::{SubmitOptions, Submitted, refused_item},
};

/// What a job said of its own submit, and of jobs that ended long ago.
const OF_THEN: [&str; 15] = [
    "deadline",
    "idempotency_key",
    "if",
    "name",
    "needs",
    RERUN_OF,
    "reuse",
    "shard",
    "shard_of",
    "start_at",
    "submit_id",
    "timer",
    "timer_due",
    "wait_on",
    "waited",
];
/// The field of a job that names the one that it runs again.
const RERUN_OF: &str = "rerun_of";
/// The end of the tests in the script that lists them.
const END: &str = "END_OF_TESTS";

/// How jobs are to run again.
#[derive(Debug, Clone, Default)]
pub(crate) struct Again {
    /// Of those with shards only the shards or the tests that failed.
    pub(crate) only_failed: bool,
    /// Fields with new values.
    pub(crate) set: Spec,
    /// The submit that they belong to; none: one of its own.
    pub(crate) submit_id: Option<String>,
    /// Under which idempotency key.
    pub(crate) key: Option<String>,
}

/// A job as it runs again.
enum Prepared {
    Job(Box<Spec>),
    /// The parent of a group: its jobs join a new one.
    Group(Box<JobState>),
}

impl Core {
    /// Submits a job again. `only_failed`: of one with shards those that failed, or the tests that failed in them.
    pub(crate) async fn rerun(
        self: &Arc<Self>,
        id: JobId,
        again: &Again,
        who: &Who,
        said: &Credentials,
    ) -> Result<Submitted, Refusal> {
        match self.prepare_again(id, again, who).await? {
            Prepared::Group(state) => self.rerun_group(&state, again, said).await,
            Prepared::Job(spec) => {
                let key = again.key.as_deref();
                let how = SubmitOptions {
                    key,
                    ..SubmitOptions::default()
                };
                let submitted = self.submit(vec![Ok(*spec)], said, how).await?;
                Ok(submitted.again(&[id]))
            }
        }
    }

    /// The same of several jobs, as one submit. Each has its own outcome, in order; a group has one for the whole.
    pub(crate) async fn rerun_many(
        self: &Arc<Self>,
        ids: &[JobId],
        again: &Again,
        who: &Who,
        said: &Credentials,
    ) -> Result<Submitted, Refusal> {
        let (mut items, mut groups) = (Vec::with_capacity(ids.len()), Vec::new());
        for (n, id) in ids.iter().enumerate() {
            items.push(match self.prepare_again(*id, again, who).await {
                Ok(Prepared::Job(spec)) => Ok(*spec),
                Ok(Prepared::Group(state)) => {
                    groups.push((n, state));
                    Err(Refusal::Bug.body())
                }
                Err(refusal) => Err(refusal.body()),
            });
        }
        let key = again.key.as_deref();
        let how = SubmitOptions {
            key,
            ..SubmitOptions::default()
        };
        let submitted = self.submit(items, said, how).await?;
        let mut submitted = submitted.again(ids);
        for (n, state) in groups {
            let (status, whole) = match self.rerun_group(&state, again, said).await {
                Ok(of_group) => (of_group.status, of_group.items.into_iter().next_back()),
                Err(refusal) => (refusal.status(), Some(refused_item(refusal.body()))),
            };
            if let (Some(place), Some(whole)) = (submitted.items.get_mut(n), whole) {
                *place = whole;
                place.rerun_of = state.job_id.to_string();
                if submitted.status != 200 {
                    submitted.status = status;
                }
            }
        }
        Ok(submitted)
    }

    async fn prepare_again(
        &self,
        id: JobId,
        again: &Again,
        who: &Who,
    ) -> Result<Prepared, Refusal> {
        let only_failed = again.only_failed;
        let state = self.stored_job(id).await?.state;
        may_rerun(&state, only_failed, who)?;
        let sharding = state.shards.as_deref().cloned().unwrap_or_default();
        if sharding.is_group() {
            return Ok(Prepared::Group(Box::new(state)));
        }
        let mut spec = self.spec_again(&state).await?;
        if only_failed && state.shards.is_some() && !sharding.is_unplanned() {
            let (_, shards) = self.read_shards(id, sharding.count).await?;
            let failed: Vec<JobState> = shards
                .into_iter()
                .flatten()
                .map(|job| job.state)
                .filter(has_failed)
                .collect();
            if failed.is_empty() {
                return Err(JobError::NoShardFailed(id).into());
            }
            if sharding.lister > 0 {
                let tests = self.failed_tests(id, &failed).await?;
                let script = format!("cat <<'{END}'\n{}\n{END}\n", tests.join("\n"));
                narrow(&mut spec, "list", json!(script));
            } else {
                let only = numbers(&spec, &failed);
                narrow(&mut spec, "only", json!(only));
            }
        }
        again.apply(&mut spec, id);
        Ok(Prepared::Job(Box::new(spec)))
    }

    /// The body of a job, as it can be submitted again.
    async fn spec_again(&self, state: &JobState) -> Result<Spec, Refusal> {
        let mut specs = self.specs_again(&[state.job_id]).await?;
        let mut spec = specs.pop().ok_or(Refusal::Bug)?;
        keep_inputs(&mut spec, state)?;
        Ok(spec)
    }

    /// The same of several jobs, read together.
    async fn specs_again(&self, ids: &[JobId]) -> Result<Vec<Spec>, Refusal> {
        let bodies = self.store.get_bodies(ids).await?;
        let again = ids.iter().zip(bodies).map(|(id, body)| {
            let mut spec = body.ok_or(JobError::Unknown(*id))?;
            self.sealer.open_secrets(&mut spec)?;
            for field in OF_THEN {
                spec.shift_remove(field);
            }
            Ok(spec)
        });
        again.collect()
    }

    /// The tests of these shards that failed; of a shard that does not say which, all.
    async fn failed_tests(
        &self,
        parent: JobId,
        failed: &[JobState],
    ) -> Result<Vec<String>, Refusal> {
        let plan = self.plan_of(parent).await?;
        let plan = plan.ok_or(JobError::NoPlan(parent))?;
        let mut tests = Vec::new();
        for shard in failed {
            let n = shard.shard.map_or(0, |place| usize::from(place.n));
            let Some(all) = plan.tests.get(n.saturating_sub(1)) else {
                continue;
            };
            let counted = self.count_cases(shard.job_id, None).await?;
            let runs = counted.map_or_else(Vec::new, |(_, runs)| runs);
            let failed = runs.into_iter().filter(|run| run.is_bad);
            let failed: BTreeSet<String> = failed.map(|run| run.name).collect();
            let bad: Vec<&String> = all.iter().filter(|test| failed.contains(*test)).collect();
            if bad.is_empty() {
                tests.extend(all.iter().cloned());
            } else {
                tests.extend(bad.into_iter().cloned());
            }
        }
        Ok(tests)
    }

    /// The jobs of a group that run again.
    async fn again_of_group(
        &self,
        parent: JobId,
        only_failed: bool,
    ) -> Result<Vec<StoredJob>, Refusal> {
        let (_, shards) = self.read_shards(parent, 0).await?;
        let joined = shards.into_iter().flatten();
        let joined = joined.filter(|job| job.state.shard.is_some_and(ShardPlace::has_own_body));
        let mut again: Vec<StoredJob> = joined.collect();
        if again.is_empty() {
            return Err(JobError::EmptyGroup(parent).into());
        }
        again.retain(|job| !only_failed || has_failed(&job.state));
        if again.is_empty() {
            return Err(JobError::NoneOfGroupFailed(parent).into());
        }
        Ok(again)
    }

    /// Submits the jobs of a group again, into a new group that is closed then.
    async fn rerun_group(
        self: &Arc<Self>,
        parent: &JobState,
        how: &Again,
        said: &Credentials,
    ) -> Result<Submitted, Refusal> {
        let id = parent.job_id;
        let again = self.again_of_group(id, how.only_failed).await?;
        let group = match &how.key {
            Some(key) => format!("rerun-{}", hash_of(&[&id.to_string(), key])),
            None => format!("rerun-{}", self.next_ids(1)),
        };
        let whole = self.spec_again(parent).await?;
        let ids: Vec<JobId> = again.iter().map(|job| job.state.job_id).collect();
        let specs = self.specs_again(&ids).await?;
        let mut items = Vec::with_capacity(again.len());
        for (job, mut spec) in again.iter().zip(specs) {
            let n = job.state.shard.map_or(0, |place| place.n);
            let mut joins = whole.get("group").cloned().unwrap_or_default();
            if let Some(joins) = joins.as_object_mut() {
                joins.insert("id".to_owned(), json!(group));
                joins.insert("shard".to_owned(), json!(n));
            }
            keep_inputs(&mut spec, &job.state)?;
            spec.insert("group".to_owned(), joins);
            tell_the_same(&mut spec, &whole);
            how.apply(&mut spec, job.state.job_id);
            items.push(Ok(spec));
        }
        let key = how.key.as_ref().map(|key| hash_of(&[&group, key]));
        let options = SubmitOptions {
            key: key.as_deref(),
            ..SubmitOptions::default()
        };
        let mut submitted = self.submit(items, said, options).await?;
        if let Some(new) = self.find_group(&parent.account, &group).await? {
            self.end_joining(new).await?;
            let item = submitted.items.iter().find(|item| item.code.is_empty());
            let item = item.cloned();
            submitted.items.retain(|item| !item.code.is_empty());
            submitted.items.extend(item.map(|item| SubmitItem {
                job_id: new.to_string(),
                shard_of: String::new(),
                result_root: String::new(),
                rerun_of: id.to_string(),
                ..item
            }));
        }
        Ok(submitted)
    }
}

impl Again {
    /// Says what is new of a job that runs again.
    fn apply(&self, spec: &mut Spec, id: JobId) {
        for (name, value) in &self.set {
            set(spec, name, value.clone());
        }
        spec.insert(RERUN_OF.to_owned(), json!(id.to_string()));
        if let Some(submit_id) = &self.submit_id {
            spec.insert("submit_id".to_owned(), json!(submit_id));
        }
    }
}

/// The inputs that the job had, also those that other jobs left. A job that never got those has its own fields.
fn keep_inputs(spec: &mut Spec, state: &JobState) -> Result<(), FieldError> {
    let is_known = state.inputs_from().next().is_none();
    if state.inputs.is_empty() || !is_known {
        return Ok(());
    }
    let folders = Input::folders(spec)?;
    let inputs = folders.into_iter().zip(&state.inputs);
    let inputs = inputs.map(|(folder, id)| match folder.as_str() {
        "" => json!(id),
        folder => json!({ "id": id, "folder": folder }),
    });
    spec.insert("inputs".to_owned(), inputs.collect());
    Ok(())
}

/// Sets a field, or with a dot in its name one of a section.
fn set(spec: &mut Spec, name: &str, value: Value) {
    match name.split_once('.') {
        Some((section, inner)) if spec.get(section).is_some_and(Value::is_object) => {
            if let Some(section) = spec.get_mut(section).and_then(Value::as_object_mut) {
                set(section, inner, value);
            }
        }
        _ => {
            spec.insert(name.to_owned(), value);
        }
    }
}

/// A name for these words together.
fn hash_of(words: &[&str]) -> String {
    blake3::hash(json!(words).to_string().as_bytes()).to_hex()[..32].to_owned()
}

/// Whether this account may run a job again.
fn may_rerun(state: &JobState, only_failed: bool, who: &Who) -> Result<(), JobError> {
    let id = state.job_id;
    who.check_owns(state)?;
    check_whole(state)?;
    if state.cluster.is_some() {
        return Err(JobError::IsNode(id));
    }
    if only_failed && !state.stage.is_terminal() {
        return Err(JobError::NotOver {
            id,
            stage: state.stage,
        });
    }
    if only_failed && state.health == Health::Success {
        return Err(JobError::NothingFailed(id));
    }
    Ok(())
}

/// Whoever is told of the end of the first group is told of this one.
fn tell_the_same(spec: &mut Spec, whole: &Spec) {
    for field in [CALLBACK, NOTIFY] {
        let Some(said) = whole.get(field) else {
            continue;
        };
        spec.insert(field.to_owned(), said.clone());
        let secret = whole.get("secrets").and_then(|secrets| secrets.get(field));
        if let Some(secret) = secret {
            let secrets = spec.entry("secrets").or_insert_with(|| json!({}));
            if let Some(secrets) = secrets.as_object_mut() {
                secrets.insert(field.to_owned(), secret.clone());
            }
        }
    }
}

/// The numbers of shards among all that the job can have.
fn numbers(spec: &Spec, shards: &[JobState]) -> Vec<u16> {
    let cut = fairlead_job::Shards::of(spec).ok().flatten();
    let places = shards.iter().filter_map(|shard| shard.shard);
    places
        .map(|place| cut.as_ref().map_or(place.n, |cut| cut.number(place.n)))
        .collect()
}

/// Says one thing more of the shards.
fn narrow(spec: &mut Spec, key: &str, value: Value) {
    let shards = spec.entry("shards").or_insert(Value::Null);
    if !shards.is_object() {
        *shards = json!({"count": shards});
    }
    if let Some(shards) = shards.as_object_mut() {
        shards.insert(key.to_owned(), value);
    }
}
