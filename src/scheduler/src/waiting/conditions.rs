//! Waiting for jobs: scripts (`jobs/wait`) and jobs (`wait_on`).
//!
//! Both use the same conditions. A job that waits for others is stored with its condition and `ready: false`. Any
//! number of jobs may wait for one. Memory only finds the jobs to check: the store has the truth, and a sweep finds
//! whatever was missed.

use std::{collections::BTreeMap, sync::Arc};

use fairlead_content::{Digest, SKETCH_MAX};
use fairlead_job::{Health, JobId, Stage, WaitOn};
use fairlead_store::{JobState, StoredJob};
use serde_json::{Map, Value, json};

use crate::waiting::WaitingFlow;
use fairlead_base::errors::{JobError, Refusal};
use fairlead_known::dependants::Looked;
use fairlead_lifecycle::{
    fields::field_of,
    reuse::joined,
    wait_on::{Standing, decide, outputs_for, standing, waits_for},
};

/// Jobs that are waited for, as they were read.
type Parents = BTreeMap<JobId, Option<StoredJob>>;

/// How often a waiting job is looked at while others change what it waits for.
const LOOKS_MAX: usize = 4;
/// How long `jobs/wait` holds a request; the client asks again.
const WAIT_MS: u64 = 10_000;

/// A request of `jobs/wait`.
#[derive(Debug, Clone)]
pub(crate) struct Wait {
    on: WaitOn,
    get_fields: Vec<String>,
}

impl Wait {
    pub(crate) fn of(body: &Map<String, Value>) -> Result<Self, Refusal> {
        let on = WaitOn::of(body)?;
        let options = body.get("wait_options").and_then(Value::as_object);
        let get_fields = options
            .and_then(|options| options.get("get_fields"))
            .and_then(Value::as_object);
        Ok(Self {
            on,
            get_fields: get_fields
                .map(|fields| fields.keys().take(100).cloned().collect())
                .unwrap_or_default(),
        })
    }
}

impl WaitingFlow {
    /// Looks after jobs that wait for others, until the replica stops.
    pub(crate) async fn watch_dependants(self: Arc<Self>) {
        let mut changes = self.jobs.changes.listen();
        while let Some(changed) = self.ctx.tasks.until_draining(changes.recv()).await {
            match changed {
                Ok(parent) => {
                    if let Err(refusal) = self.parent_changed(parent).await {
                        tracing::warn!(job_id = %parent, error = %refusal, "the jobs that wait for this one could not be checked; they are checked later");
                    }
                }
                // Too many to tell: look at all of them.
                Err(_) => self.sweep_dependants().await,
            }
        }
    }

    /// Looks again at all jobs that wait for `parent`.
    async fn parent_changed(self: &Arc<Self>, parent: JobId) -> Result<(), Refusal> {
        for child in self.known.dependants.of(parent) {
            let how = self.look_at_dependant(child).await?;
            self.known
                .dependants
                .looked(parent, child, how, self.ctx.clock.now());
        }
        Ok(())
    }

    /// Decides about one waiting job.
    pub(crate) async fn look_at_dependant(
        self: &Arc<Self>,
        child: JobId,
    ) -> Result<Looked, Refusal> {
        for _ in 0..LOOKS_MAX {
            let stored = match self.jobs.job(child).await {
                Ok(stored) => stored,
                Err(Refusal::Job(JobError::Unknown(_))) => {
                    return Ok(Looked::SeemsOver);
                }
                Err(refusal) => return Err(refusal),
            };
            let waits = Some(&stored.state).filter(|state| state.stage == Stage::Submit);
            let Some(on) = waits.and_then(waits_for) else {
                return Ok(if self.jobs.seen.is_proven(&stored) {
                    Looked::Over
                } else {
                    Looked::SeemsOver
                });
            };
            let ids = on.jobs();
            let found = self.ctx.store.get(&ids).await?;
            let parents: BTreeMap<_, _> = ids.into_iter().zip(found).collect();
            let now_ms = self.ctx.clock.wall_ms();
            let next = decide(&stored.state, &parents, now_ms);
            // A circle goes through a job that waits, too. Mostly there is none, and nothing more is read.
            let is_open = |parent: &StoredJob| parent.state.stage == Stage::Submit;
            let may_close = next.is_none() && parents.values().flatten().any(is_open);
            if may_close && Box::pin(self.end_circle(&stored)).await? {
                continue;
            }
            if !self
                .jobs
                .are_proven(relied_on(next.as_ref(), &parents))
                .await?
            {
                continue;
            }
            let follow = self.follow(&stored.state, next, (&parents, now_ms));
            let looked = Box::pin(follow).await?;
            if let Some(looked) = looked {
                return Ok(looked);
            }
        }
        // Others change them all the time: it is looked at again later.
        Ok(Looked::Waits)
    }

    /// The job goes on as these states decide, which are proven. `None`: it changed meanwhile, and is to be looked at
    /// anew before it takes a result.
    async fn follow(
        self: &Arc<Self>,
        child: &JobState,
        next: Option<JobState>,
        (parents, now_ms): (&Parents, u64),
    ) -> Result<Option<Looked>, Refusal> {
        let mut words = Vec::new();
        let released = match next.filter(|next| next.waits.is_none()) {
            Some(taken) if joined(child).is_some() => {
                let result = self.reuse.joined_result(child, taken.clone()).await?;
                Some((taken, result))
            }
            Some(released) => {
                words = self.words_of_outputs(child, parents).await;
                let result = self.reuse.released_result(released.clone()).await?;
                Some((released, result))
            }
            None => None,
        };
        let changed = self
            .jobs
            .change(child.job_id, |state| {
                let next = (state.stage == Stage::Submit && !state.ready)
                    .then(|| decide(state, parents, now_ms))
                    .flatten();
                // What was found holds for the state that was looked at.
                let found = released
                    .as_ref()
                    .filter(|(of, _)| next.as_ref() == Some(of));
                let next = next.filter(|_| joined(state).is_none());
                let next = found.map(|(_, result)| result.clone()).or(next);
                Ok(next.map(|next| with_words(next, &words)))
            })
            .await?;
        let after = &changed.after.state;
        let waits = !after.ready && after.stage == Stage::Submit;
        Ok(if waits && released.is_some() && !changed.is_change() {
            None
        } else if waits {
            Some(Looked::Waits)
        } else if changed.is_change() {
            Some(Looked::Over)
        } else {
            Some(Looked::SeemsOver)
        })
    }

    /// Words of what its parents left that are its inputs.
    async fn words_of_outputs(&self, child: &JobState, parents: &Parents) -> Vec<String> {
        let mut words = Vec::new();
        for outputs in outputs_for(child, parents) {
            words.extend(self.words_of_content(outputs).await);
        }
        words
    }

    /// Words of what lies under an id, as far as it can be read: without them a job runs all the same.
    async fn words_of_content(&self, id: &str) -> Vec<String> {
        let Ok(id) = id.parse::<Digest>() else {
            return Vec::new();
        };
        match self.ctx.content.about(id).await {
            Ok(about) => about.map_or_else(Vec::new, |about| about.sketch),
            Err(error) => {
                tracing::warn!(input = %id, %error, "an input could not be looked up");
                Vec::new()
            }
        }
    }

    /// Repeats what an announcement may have missed.
    pub(crate) async fn sweep_dependants(self: &Arc<Self>) {
        for parent in self.known.dependants.parents() {
            if let Err(refusal) = self.parent_changed(parent).await {
                tracing::warn!(
                    error = %refusal,
                    "jobs that wait for others could not be checked"
                );
                return;
            }
        }
    }

    /// Answers when what is waited for holds (or can hold no more), else after a while with what holds.
    pub(crate) async fn wait_for(&self, wait: &Wait) -> Result<Value, Refusal> {
        let deadline = self.ctx.clock.now().0.saturating_add(WAIT_MS);
        let mut changes = self.jobs.changes.listen();
        let ids = wait.on.jobs();
        loop {
            let found = self.ctx.store.get(&ids).await?;
            let mut waited = Map::new();
            let mut over = true;
            for (condition, job) in wait.on.conditions.iter().zip(found) {
                let state = job.ok_or(JobError::Unknown(condition.job))?.state;
                let state = self.jobs.as_shown(state);
                match standing(condition, &state) {
                    Standing::Open => over = false,
                    Standing::Met | Standing::Never => {
                        waited.insert(
                            condition.job.to_string(),
                            waited_fields(&state, &wait.get_fields),
                        );
                    }
                }
                if wait.on.fail_fast && state.stage.is_terminal() && state.health != Health::Success
                {
                    waited.insert(
                        condition.job.to_string(),
                        waited_fields(&state, &wait.get_fields),
                    );
                    return Ok(json!({ "waited_jobs": waited }));
                }
            }
            let left = deadline.saturating_sub(self.ctx.clock.now().0);
            if over || left == 0 || self.ctx.tasks.draining.is_cancelled() {
                return Ok(json!({ "waited_jobs": waited }));
            }
            self.jobs.any_changes(&mut changes, &ids, deadline).await;
        }
    }
}

/// The states by which a waiting job goes on. One that ends for others ends by their ends; any other goes on by all.
fn relied_on(next: Option<&JobState>, parents: &Parents) -> Vec<StoredJob> {
    let Some(next) = next else {
        return Vec::new();
    };
    let is_aborted = next.stage == Stage::AbortWait;
    let states = parents.values().flatten();
    let relied_on = states.filter(|parent| !is_aborted || parent.state.stage.is_terminal());
    relied_on.cloned().collect()
}

/// A job that no longer waits, with words of what others left for it: they come first.
fn with_words(mut next: JobState, words: &[String]) -> JobState {
    if next.waits.is_none() && !next.stage.is_terminal() {
        let before = std::mem::take(&mut next.input_words);
        let mut all: Vec<String> = words.iter().cloned().chain(before).collect();
        all.truncate(SKETCH_MAX);
        next.input_words = all;
    }
    next
}

fn waited_fields(state: &JobState, names: &[String]) -> Value {
    let mut fields = Map::new();
    for name in ["job_stage", "job_health"]
        .into_iter()
        .chain(names.iter().map(String::as_str))
    {
        fields.insert(
            name.to_owned(),
            field_of(state, name).unwrap_or(Value::Null),
        );
    }
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Clock, Config,
        flows::Flows,
        testing::{embedded, flows_over, state, store_job, waits},
    };
    use fairlead_fault_store::{Fault, FaultStore, On, Step};
    use fairlead_lifecycle::attempt::{MISSING_MS, ended};

    fn child(stored: &Value) -> JobState {
        JobState {
            ready: false,
            waits: Some(waits(stored)),
            ..state(9)
        }
    }

    fn parent(n: u64, stage: Stage, health: Health) -> (JobId, Option<StoredJob>) {
        let state = JobState {
            stage,
            health,
            ..state(n)
        };
        (
            JobId::new(n),
            Some(StoredJob {
                state,
                version: fairlead_store::Version::default(),
            }),
        )
    }

    #[test]
    fn a_child_waits_for_all_its_parents_and_then_runs() {
        let child = child(&json!({"wait_on": {"1": {"job_stage": "running"}, "2": null}}));
        let mut parents = BTreeMap::from([
            parent(1, Stage::PostRun, Health::Unknown),
            parent(2, Stage::Running, Health::Unknown),
        ]);
        assert_eq!(decide(&child, &parents, 5), None);
        parents.extend([parent(2, Stage::Finish, Health::Fail)]);
        let next = decide(&child, &parents, 5).unwrap();
        assert!(next.ready && next.waits.is_none());
    }

    #[test]
    fn what_can_never_be_aborts_the_child() {
        let waits = child(&json!({"wait_on": {"1": {"job_health": "success"}}}));
        let parents = BTreeMap::from([parent(1, Stage::Finish, Health::Fail)]);
        assert_eq!(decide(&waits, &parents, 5).unwrap().stage, Stage::AbortWait);
        let fast = child(&json!({"wait_on": {"1": null, "2": null}, "fail_fast": true}));
        let parents = BTreeMap::from([
            parent(1, Stage::Cancel, Health::Cancel),
            parent(2, Stage::Submit, Health::Unknown),
        ]);
        assert_eq!(
            decide(&fast, &parents, 5).unwrap().health,
            Health::AbortWait
        );
        let gone = BTreeMap::from([(JobId::new(1), None)]);
        assert_eq!(decide(&waits, &gone, 5), None, "it may be on its way");
        let late = decide(&waits, &gone, MISSING_MS + 5).unwrap();
        assert_eq!(late.stage, Stage::AbortWait);
    }

    #[test]
    fn outputs_of_a_parent_become_inputs_at_its_end() {
        let success = json!({"wait_on": {"1": {"job_health": "success"}}});
        let from = format!("{}{}", JobState::INPUT_FROM, JobId::new(1));
        let child = JobState {
            inputs: vec!["a".repeat(64), from],
            ..child(&success)
        };
        let ended_with = |stage, outputs: &str| {
            let (id, mut stored) = parent(1, stage, Health::Success);
            stored.as_mut().unwrap().state.outputs = outputs.to_owned();
            BTreeMap::from([(id, stored)])
        };
        let runs = ended_with(Stage::Running, "");
        assert_eq!(decide(&child, &runs, 5), None, "it has not ended");
        let outputs = "b".repeat(64);
        let next = decide(&child, &ended_with(Stage::Finish, &outputs), 5).unwrap();
        assert_eq!(next.inputs, ["a".repeat(64), outputs]);
        assert!(next.ready && next.waits.is_none());
        let next = decide(&child, &ended_with(Stage::Finish, ""), 5).unwrap();
        assert_eq!(next.stage, Stage::AbortWait);
        assert!(
            next.reason.contains(&JobId::new(1).to_string()),
            "{}",
            next.reason
        );
        let words = |many: usize| (0..many).map(|n| n.to_string()).collect::<Vec<_>>();
        let released = with_words(
            JobState {
                input_words: vec!["own".to_owned()],
                waits: None,
                ..state(9)
            },
            &words(20),
        );
        assert_eq!(released.input_words, words(16));
    }

    #[test]
    fn a_cancelled_job_never_reached_running() {
        let child = child(&json!({"wait_on": {"1": {"job_stage": "running"}}}));
        let condition = &waits_for(&child).unwrap().conditions[0];
        let cancelled = JobState {
            stage: Stage::Cancel,
            ..state(1)
        };
        assert_eq!(standing(condition, &cancelled), Standing::Never);
    }

    /// A lab in which job 2 waits for job 1, and the store fails as planned.
    async fn lab() -> (tempfile::TempDir, Arc<FaultStore>, Arc<Flows>) {
        let data = tempfile::tempdir().unwrap();
        let store = Arc::new(FaultStore::new(embedded(&data), []));
        let config = Config::embedded(data.path().to_owned());
        let flows = flows_over(Arc::clone(&store) as _, config, Clock::system());
        let child = JobState {
            ready: false,
            waits: Some(waits(&json!({"wait_on": {"1": null}}))),
            submit_ms: flows.ctx.clock.wall_ms(),
            ..state(2)
        };
        store_job(&flows, state(1)).await;
        store_job(&flows, child.clone()).await;
        flows.waiting.known.dependants.add(&child);
        (data, store, flows)
    }

    async fn waits_on(flows: &Flows) -> bool {
        !flows
            .jobs
            .stored_job(JobId::new(2))
            .await
            .unwrap()
            .state
            .ready
    }

    #[tokio::test]
    async fn an_end_that_vanishes_releases_nobody() {
        let (_data, store, flows) = lab().await;
        let mut vanishing = flows.jobs.stored_job(JobId::new(1)).await.unwrap();
        vanishing.state = ended(&vanishing.state, Stage::Finish, Health::Success, 5, "");
        vanishing.version.seq_no += 1;
        store.show(Some(vanishing));
        flows.waiting.sweep_dependants().await;
        assert!(waits_on(&flows).await);
        store.show(None);
        let over = |state: &JobState| Ok(Some(ended(state, Stage::Finish, Health::Success, 5, "")));
        flows.jobs.change(JobId::new(1), over).await.unwrap();
        flows.waiting.sweep_dependants().await;
        assert!(!waits_on(&flows).await);
    }

    #[tokio::test]
    async fn a_read_that_fails_forgets_nobody_who_waits() {
        let (_data, store, flows) = lab().await;
        store.then(Step {
            on: On::Get,
            fault: Fault::Unavailable,
            times: 1,
        });
        flows.waiting.sweep_dependants().await;
        let over = |state: &JobState| Ok(Some(ended(state, Stage::Finish, Health::Success, 5, "")));
        flows.jobs.change(JobId::new(1), over).await.unwrap();
        flows.waiting.sweep_dependants().await;
        assert!(!waits_on(&flows).await);
        assert_eq!(flows.waiting.known.dependants.parents(), []);
    }
}
