//! Runs jobs again, or what failed of them: as new jobs with the same bodies.

use std::{collections::BTreeSet, sync::Arc};

use fairlead_api::{ErrorCode, SubmitItem};
use fairlead_job::{Health, JobId, Spec, Stage, Use, fields};
use fairlead_store::{JobState, Parts, Search, SearchOrder, ShardPlace, StoredJob};
use serde_json::{Value, json};

use crate::{
    shards::ShardFlow,
    shards::again::{Old, keep_inputs, never_ran, new_names},
    submission::submit::{SubmitOptions, Submitted, refused_item},
};
use fairlead_base::errors::{JobError, Refusal};
use fairlead_known::accounts::{Credentials, Who};
use fairlead_lifecycle::shards::{check_whole, has_failed};

/// The field of a job that names the one that it runs again.
const RERUN_OF: &str = "rerun_of";
/// The end of the tests in the script that lists them.
const END: &str = "END_OF_TESTS";
/// Jobs that are read together.
const READ_JOBS: usize = 500;
/// Most bytes of JSON that the bodies of jobs of one request have: 64 MiB.
const BODIES_BYTES_MAX: usize = 64 << 20;

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

/// Jobs as they run again, each with its old id, or why one does not.
type AllPrepared = Vec<(JobId, Result<Prepared, Refusal>)>;

impl ShardFlow {
    /// Submits a job again. `only_failed`: of one with shards those that failed, or the tests that failed in them; and
    /// the jobs of its submit that never ran because it failed.
    pub(crate) async fn rerun(
        self: &Arc<Self>,
        id: JobId,
        again: &Again,
        who: &Who,
        said: &Credentials,
    ) -> Result<Submitted, Refusal> {
        let mut prepared = self.prepare_again(&[id], again, who).await?;
        if let Some((_, Err(refusal))) = prepared.first_mut() {
            return Err(refusal.clone());
        }
        if let Some((_, Ok(Prepared::Group(state)))) = prepared.first() {
            return self.rerun_group(state, again, said).await;
        }
        self.submit_again(prepared, again, said).await
    }

    /// The same of several jobs, as one submit. Each has its own outcome, in order; a group has one for the whole. Those
    /// that never ran because others failed come last.
    pub(crate) async fn rerun_many(
        self: &Arc<Self>,
        ids: &[JobId],
        again: &Again,
        who: &Who,
        said: &Credentials,
    ) -> Result<Submitted, Refusal> {
        let prepared = self.prepare_again(ids, again, who).await?;
        self.submit_again(prepared, again, said).await
    }

    async fn submit_again(
        self: &Arc<Self>,
        prepared: AllPrepared,
        again: &Again,
        said: &Credentials,
    ) -> Result<Submitted, Refusal> {
        let mut ids = Vec::with_capacity(prepared.len());
        let (mut items, mut groups) = (Vec::with_capacity(prepared.len()), Vec::new());
        for (n, (id, prepared)) in prepared.into_iter().enumerate() {
            ids.push(id);
            items.push(match prepared {
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
        let submitted = self.submission.submit(items, said, how).await?;
        let mut submitted = submitted.again(&ids);
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

    /// The jobs as they run again: what one says of another, it says of the one that runs instead.
    async fn prepare_again(
        &self,
        ids: &[JobId],
        again: &Again,
        who: &Who,
    ) -> Result<AllPrepared, Refusal> {
        let only_failed = again.only_failed;
        let mut room = BODIES_BYTES_MAX;
        let mut olds = Vec::with_capacity(ids.len());
        for ids in ids.chunks(READ_JOBS) {
            let found = self.ctx.store.get(ids).await?;
            let states = ids.iter().zip(found).map(|(id, found)| {
                let state = found.ok_or(JobError::Unknown(*id))?.state;
                may_rerun(&state, only_failed, who)?;
                Ok(state)
            });
            let states: Vec<Result<JobState, Refusal>> = states.collect();
            let read = self.read_olds(states).await?;
            for old in read.iter().flatten() {
                take_room(&mut room, &old.spec)?;
            }
            olds.extend(ids.iter().copied().zip(read));
        }
        if only_failed {
            let others = self.never_ran(&olds, who, &mut room).await?;
            olds.extend(others.into_iter().map(|old| (old.state.job_id, Ok(old))));
        }
        let names = new_names(olds.iter().filter_map(|(_, old)| old.as_ref().ok()));
        let mut prepared = Vec::with_capacity(olds.len());
        for (id, old) in olds {
            let job = match old.and_then(|old| Ok(old.among(&names)?)) {
                Ok(old) => self.as_again(old, again).await,
                Err(refusal) => Err(refusal),
            };
            prepared.push((id, job));
        }
        Ok(prepared)
    }

    /// A job as it runs again.
    async fn as_again(&self, old: Old, again: &Again) -> Result<Prepared, Refusal> {
        let Old { state, mut spec } = old;
        let id = state.job_id;
        let sharding = state.shards.as_deref().cloned().unwrap_or_default();
        if sharding.is_group() {
            return Ok(Prepared::Group(Box::new(state)));
        }
        if again.only_failed && state.shards.is_some() && !sharding.is_unplanned() {
            let (_, shards) = self.jobs.read_shards(id, sharding.count).await?;
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

    /// Jobs with their bodies, as these can be submitted again.
    async fn read_olds(
        &self,
        states: Vec<Result<JobState, Refusal>>,
    ) -> Result<Vec<Result<Old, Refusal>>, Refusal> {
        let ids: Vec<JobId> = states.iter().flatten().map(|state| state.job_id).collect();
        let mut bodies = self.ctx.store.get_bodies(&ids).await?.into_iter();
        let olds = states.into_iter().map(|state| {
            let state = state?;
            let body = bodies.next().flatten();
            let mut spec = body.ok_or(JobError::Unknown(state.job_id))?;
            self.ctx.sealer.open_secrets(&mut spec)?;
            for field in fields(Use::OfSubmit) {
                spec.shift_remove(field);
            }
            Ok(Old { state, spec })
        });
        Ok(olds.collect())
    }

    /// The jobs of the same submits that never ran because some of these failed.
    async fn never_ran(
        &self,
        failed: &[(JobId, Result<Old, Refusal>)],
        who: &Who,
        room: &mut usize,
    ) -> Result<Vec<Old>, Refusal> {
        let again = failed.iter().filter_map(|(_, old)| old.as_ref().ok());
        let again: Vec<&Old> = again.collect();
        let ids: BTreeSet<JobId> = failed.iter().map(|(id, _)| *id).collect();
        let submits: BTreeSet<&String> = again.iter().map(|old| &old.state.submit_id).collect();
        let submits: Vec<String> = submits.into_iter().cloned().collect();
        // What just ended is to be found, too.
        self.ctx.store.refresh().await?;
        let mut others = Vec::new();
        for submit_ids in submits.chunks(READ_JOBS) {
            let mut search = Search {
                submit_ids: submit_ids.to_vec(),
                healths: unsuccessful(),
                parts: Parts::NoShards,
                order: SearchOrder::OldestFirst,
                limit: u32::try_from(READ_JOBS).unwrap_or(u32::MAX),
                ..Search::default()
            };
            loop {
                let page = self.ctx.store.search(&search).await?;
                search.after = page.jobs.last().map(|job| job.state.job_id);
                let found = page.jobs.into_iter().map(|job| job.state);
                let found = found.filter(|state| !ids.contains(&state.job_id));
                let found = found.filter(|state| who.check_owns(state).is_ok());
                let read = self.read_olds(found.map(Ok).collect()).await?;
                for mut old in read.into_iter().flatten() {
                    if old.state.stage != Stage::AbortWait {
                        old.spec.retain(|field, _| field == "name");
                    }
                    take_room(room, &old.spec)?;
                    others.push(old);
                }
                if !page.more {
                    break;
                }
            }
        }
        Ok(never_ran(&again, others))
    }

    /// The tests of these shards that failed; of a shard that does not say which, all.
    async fn failed_tests(
        &self,
        parent: JobId,
        failed: &[JobState],
    ) -> Result<Vec<String>, Refusal> {
        let plan = self.jobs.plan_of(parent).await?;
        let plan = plan.ok_or(JobError::NoPlan(parent))?;
        let mut tests = Vec::new();
        for shard in failed {
            let n = shard.shard.map_or(0, |place| usize::from(place.n));
            let Some(all) = plan.tests.get(n.saturating_sub(1)) else {
                continue;
            };
            let counted = self.files.count_cases(shard, None).await?;
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
        let (_, shards) = self.jobs.read_shards(parent, 0).await?;
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
            None => format!("rerun-{}", self.peers.next_ids(1)),
        };
        let states = std::iter::once(parent).chain(again.iter().map(|job| &job.state));
        let states = states.map(|state| Ok(state.clone())).collect();
        let mut olds = self.read_olds(states).await?.into_iter();
        let whole = olds.next().ok_or(Refusal::Bug)??.spec;
        let mut items = Vec::with_capacity(again.len());
        for old in olds {
            let Old { state, mut spec } = old?;
            let n = state.shard.map_or(0, |place| place.n);
            let mut joins = whole.get("group").cloned().unwrap_or_default();
            if let Some(joins) = joins.as_object_mut() {
                joins.insert("id".to_owned(), json!(group));
                joins.insert("shard".to_owned(), json!(n));
            }
            keep_inputs(&mut spec, &state, |_| None)?;
            spec.insert("group".to_owned(), joins);
            tell_the_same(&mut spec, &whole);
            how.apply(&mut spec, state.job_id);
            items.push(Ok(spec));
        }
        let key = how.key.as_ref().map(|key| hash_of(&[&group, key]));
        let options = SubmitOptions {
            key: key.as_deref(),
            ..SubmitOptions::default()
        };
        let mut submitted = self.submission.submit(items, said, options).await?;
        if let Some(new) = self.submission.find_group(&parent.account, &group).await? {
            self.submission.end_joining(new).await?;
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

/// The ends of jobs that did not succeed.
fn unsuccessful() -> Vec<Health> {
    let mut healths = Health::ALL.to_vec();
    healths.retain(|health| *health != Health::Success);
    healths
}

/// Takes the bytes of a body from those that are left for a request.
fn take_room(room: &mut usize, spec: &Spec) -> Result<(), Refusal> {
    let bytes = serde_json::to_vec(spec).map_or(usize::MAX, |text| text.len());
    *room = room.checked_sub(bytes).ok_or_else(|| {
        Refusal::new(
            ErrorCode::TooLarge,
            format!("the bodies of the jobs have more than {BODIES_BYTES_MAX} bytes"),
            "run fewer jobs again at once",
        )
    })?;
    Ok(())
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
    for field in fields(Use::Told) {
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
