//! Makes the jobs of one submit wait for those that they need by name.
//!
//! If one of them does not succeed, the job ends as `abort_wait`. With `if: always` it runs in any case.

use std::collections::BTreeMap;

use fairlead_job::{
    Condition, Health, Input, InputOf, JobId, Member, Needs, Requirement, WaitOn, Waits, link,
};
use fairlead_store::JobState;

use crate::submission::built_jobs::BuiltJobs;
use fairlead_base::errors::{Refusal, SubmitError};
use fairlead_lifecycle::{alarm::waiting, wait_on::waits_for};

/// Makes the jobs of one submit wait for those that they need, and refuses those that cannot.
pub(crate) fn link_jobs(built: &mut BuiltJobs) {
    let members: Vec<Member<'_>> = built
        .asking()
        .map(|(job, asks)| member(job, &asks.needs))
        .collect();
    let linked = link(&members);
    let ids: Vec<Option<JobId>> = built
        .jobs
        .iter()
        .map(|job| Some(job.as_ref().ok()?.state.job_id))
        .collect();
    let mut named: BTreeMap<String, Vec<JobId>> = BTreeMap::new();
    for (job, asks) in built.asking() {
        if let (Ok(job), Some(name)) = (job, &asks.needs.name) {
            named
                .entry(name.clone())
                .or_default()
                .push(job.state.job_id);
        }
    }
    for ((outcome, asks), linked) in built.asking().zip(linked) {
        let Ok(job) = outcome else { continue };
        if let Err(error) = name_inputs(&mut job.state, &asks.inputs, &named) {
            *outcome = Err(error.into());
            continue;
        }
        match linked {
            Err(error) => *outcome = Err(error.into()),
            Ok(parents) if parents.is_empty() => {}
            Ok(parents) => {
                let parents = parents.into_iter().filter_map(|at| *ids.get(at)?);
                wait_for(&mut job.state, parents, asks.needs.always);
            }
        }
    }
}

/// Says of the inputs that are outputs of other jobs of which ones.
fn name_inputs(
    state: &mut JobState,
    inputs: &[Input],
    named: &BTreeMap<String, Vec<JobId>>,
) -> Result<(), SubmitError> {
    for (place, input) in state.inputs.iter_mut().zip(inputs) {
        let InputOf::From(name) = &input.of else {
            continue;
        };
        *place = match named.get(name).map(Vec::as_slice) {
            Some([one]) => format!("{}{one}", JobState::INPUT_FROM),
            // What becomes of these is said by `needs`.
            None | Some([]) => JobState::INPUT_FROM.to_owned(),
            Some(several) => {
                let (name, count) = (name.clone(), several.len());
                return Err(SubmitError::SeveralOfName { name, count });
            }
        };
    }
    Ok(())
}

fn member<'n>(job: &Result<fairlead_store::NewJob, Refusal>, needs: &'n Needs) -> Member<'n> {
    let on = job.as_ref().ok().and_then(|job| waits_for(&job.state));
    Member {
        needs,
        waits_for: on.map_or(0, |on| on.conditions.len()),
        is_refused: job.is_err(),
    }
}

/// The job waits for these, beside what it waits for already.
fn wait_for(state: &mut JobState, parents: impl Iterator<Item = JobId>, always: bool) {
    let mut on = match state.waits.take() {
        Some(Waits::Jobs(on)) => on,
        Some(Waits::Unknown(_)) | None => WaitOn::default(),
    };
    let success = || Requirement::Health(Health::Success);
    on.conditions.extend(parents.map(|job| Condition {
        job,
        requirements: (!always).then(success).into_iter().collect(),
    }));
    *state = waiting(state.clone(), on);
}

#[cfg(test)]
mod tests {
    use fairlead_job::{SiteDefaults, Spec, Submitted};
    use fairlead_store::NewJob;
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        submission::built_jobs::Asks,
        testing::{state, waits},
    };

    fn built(specs: &[Value]) -> BuiltJobs {
        let mut built = BuiltJobs::default();
        for (n, spec) in (1..).zip(specs) {
            let mut spec: Spec = spec.as_object().cloned().unwrap();
            spec.insert("suite".to_owned(), json!("sleep"));
            let job = Submitted::of(spec, &SiteDefaults::default()).jobs.unwrap();
            let [parsed] = <[_; 1]>::try_from(job).unwrap();
            let job = NewJob {
                state: state(n),
                body: parsed.spec.into(),
            };
            let asks = Asks {
                needs: parsed.fields.needs,
                inputs: parsed.fields.inputs,
                ..Asks::default()
            };
            built.add(vec![(job, asks)]);
        }
        built
    }

    fn stored(job: &Result<NewJob, Refusal>) -> Value {
        json!(job.as_ref().unwrap().state.waits)
    }

    #[test]
    fn a_job_waits_for_all_of_a_name_and_runs_only_if_they_succeed() {
        let mut built = built(&[
            json!({"name": "test", "needs": ["build"]}),
            json!({"name": "build", "nr": 1}),
            json!({"name": "build", "nr": 2}),
            json!({"needs": "test", "if": "always"}),
        ]);
        link_jobs(&mut built);
        let success = json!({"job_health": "success"});
        let id = |n| JobId::new(n).to_string();
        let both = json!({id(2): success, id(3): success});
        assert_eq!(
            stored(&built.jobs[0]),
            json!({"wait_on": both, "fail_fast": false})
        );
        assert_eq!(stored(&built.jobs[1]), json!(null));
        let report = json!({"wait_on": {id(1): null}, "fail_fast": false});
        assert_eq!(stored(&built.jobs[3]), report);
        assert!(!built.jobs[3].as_ref().unwrap().state.ready);
    }

    #[test]
    fn outputs_of_one_job_are_inputs_of_another() {
        let id = "a".repeat(64);
        let mut built = built(&[
            json!({"name": "build"}),
            json!({"needs": "build", "inputs": [id, {"from": "build", "folder": "b"}]}),
        ]);
        if let Ok(job) = &mut built.jobs[1] {
            job.state.inputs = vec![id.clone(), String::new()];
        }
        link_jobs(&mut built);
        let inputs = &built.jobs[1].as_ref().unwrap().state.inputs;
        assert_eq!(*inputs, [id, format!("job:{}", JobId::new(1))]);
    }

    #[test]
    fn the_outputs_of_a_matrix_are_no_input() {
        let mut built = built(&[
            json!({"name": "build", "nr": 1}),
            json!({"name": "build", "nr": 2}),
            json!({"needs": "build", "inputs": {"from": "build"}}),
        ]);
        if let Ok(job) = &mut built.jobs[2] {
            job.state.inputs = vec![String::new()];
        }
        link_jobs(&mut built);
        let several = SubmitError::SeveralOfName {
            name: "build".to_owned(),
            count: 2,
        };
        assert_eq!(built.jobs[2], Err(several.into()));
    }

    #[test]
    fn what_was_waited_for_is_waited_for_still() {
        let mut built = built(&[json!({"name": "a"}), json!({"needs": "a"})]);
        let before = json!({"wait_on": {"99": null}, "fail_fast": true});
        if let Ok(job) = &mut built.jobs[1] {
            job.state.waits = Some(waits(&before));
        }
        link_jobs(&mut built);
        let (old, first) = (JobId::new(99).to_string(), JobId::new(1).to_string());
        let on = json!({old: null, first: {"job_health": "success"}});
        let expected = json!({"wait_on": on, "fail_fast": true});
        assert_eq!(stored(&built.jobs[1]), expected);
    }
}
