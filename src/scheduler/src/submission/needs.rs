//! Jobs of one submit that need each other by name: `name: build` in one, `needs: [build]` in the other.
//!
//! A job waits for all jobs of its submit with a name that it needs; a matrix has several. If one of them does not
//! succeed, it ends as `abort_wait`. With `if: always` it runs in any case. Unknown names and jobs that wait for each
//! other are refused here.

use std::collections::{BTreeMap, BTreeSet};

use fairlead_api::ErrorCode;
use fairlead_job::Spec;
use fairlead_store::{JobState, NewJob};
use serde_json::{Map, Value, json};

use crate::{
    base::errors::{Refusal, excerpt},
    lifecycle::wait_on::JOBS_MAX,
};

type BuiltJobs = Result<NewJob, Refusal>;

/// What one job says of others.
#[derive(Debug, Default)]
struct Says {
    name: Option<String>,
    needs: Vec<String>,
    always: bool,
}

fn bad(message: String, hint: &str) -> Refusal {
    Refusal::new(ErrorCode::BadField, message, hint)
}

impl Says {
    fn of(spec: &Spec) -> Result<Self, Refusal> {
        let name = match spec.get("name") {
            Some(Value::String(name)) if !name.is_empty() => Some(name.clone()),
            // Somebody else's field of the same name.
            _ => None,
        };
        let needs = match spec.get("needs") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::String(text)) => text
                .split([',', ' '])
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect(),
            Some(list) => serde_json::from_value(list.clone()).map_err(|_| {
                bad(
                    "needs: expected a name or a list of names".to_owned(),
                    "write needs: [build, boot] with names of jobs of the same submit",
                )
            })?,
        };
        let always = match spec.get("if") {
            None | Some(Value::Null) => false,
            Some(Value::String(word)) if word == "always" => true,
            Some(Value::String(word)) if word == "success" => false,
            Some(other) => {
                let shown = excerpt(&other.to_string());
                return Err(bad(
                    format!("if: unknown value {shown}"),
                    "use always to run after any result, or success (the default)",
                ));
            }
        };
        Ok(Self {
            name,
            needs,
            always,
        })
    }
}

/// Makes the jobs of one submit wait for those that they need.
pub(crate) fn link(made: &mut [BuiltJobs]) {
    let mut says: Vec<Says> = Vec::with_capacity(made.len());
    for made in made.iter_mut() {
        let said = match made.as_ref().map(|job| Says::of(&job.body)) {
            Ok(Ok(said)) => said,
            Ok(Err(refusal)) => {
                *made = Err(refusal);
                Says::default()
            }
            Err(_) => Says::default(),
        };
        says.push(said);
    }
    if says.iter().all(|said| said.needs.is_empty()) {
        return;
    }
    let mut named: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, said) in says.iter().enumerate() {
        if let Some(name) = &said.name {
            named.entry(name).or_default().push(at);
        }
    }
    let parents: Vec<Result<BTreeSet<usize>, Refusal>> =
        says.iter().map(|said| parents_of(said, &named)).collect();
    let endless = endless(&parents);
    // Those that need a refused job are refused, too, in the order in which they need each other.
    let mut left: Vec<usize> = (0..made.len()).collect();
    let mut settled: BTreeSet<usize> = BTreeSet::new();
    while !left.is_empty() {
        let before = left.len();
        left.retain(|at| {
            let (Some(parents), Some(said)) = (parents.get(*at), says.get(*at)) else {
                return false;
            };
            let waits = matches!(parents, Ok(parents) if !parents.is_subset(&settled));
            if waits && !endless.contains(at) {
                return true;
            }
            settle(made, *at, parents, said, endless.contains(at));
            settled.insert(*at);
            false
        });
        if left.len() == before {
            return;
        }
    }
}

fn parents_of(said: &Says, named: &BTreeMap<&str, Vec<usize>>) -> Result<BTreeSet<usize>, Refusal> {
    let mut parents = BTreeSet::new();
    for need in &said.needs {
        let Some(found) = named.get(need.as_str()) else {
            return Err(bad(
                format!("needs: no job of this submit is named '{}'", excerpt(need)),
                "give a job that name, or use wait_on for jobs of other submits",
            ));
        };
        parents.extend(found);
    }
    if parents.len() > JOBS_MAX {
        return Err(bad(
            format!("needs: {} jobs; the limit is {JOBS_MAX}", parents.len()),
            "add a job in between that waits for a part of them",
        ));
    }
    Ok(parents)
}

/// The jobs that wait for each other, directly or for one that does.
fn endless(parents: &[Result<BTreeSet<usize>, Refusal>]) -> BTreeSet<usize> {
    let mut left: BTreeMap<usize, &BTreeSet<usize>> = BTreeMap::new();
    for (at, parents) in parents.iter().enumerate() {
        if let Ok(parents) = parents {
            left.insert(at, parents);
        }
    }
    loop {
        let free: Vec<usize> = left
            .iter()
            .filter(|(_, parents)| parents.iter().all(|parent| !left.contains_key(parent)))
            .map(|(at, _)| *at)
            .collect();
        if free.is_empty() {
            return left.into_keys().collect();
        }
        for at in free {
            left.remove(&at);
        }
    }
}

/// One job gets what it waits for, or its refusal.
fn settle(
    made: &mut [BuiltJobs],
    at: usize,
    parents: &Result<BTreeSet<usize>, Refusal>,
    said: &Says,
    is_endless: bool,
) {
    let refusal = match parents {
        Err(refusal) => Some(refusal.clone()),
        Ok(_) if is_endless => Some(bad(
            format!(
                "needs: {} and others wait for each other",
                said.needs.join(", ")
            ),
            "remove one of the dependencies",
        )),
        Ok(parents) => {
            let refused = parents
                .iter()
                .any(|parent| made.get(*parent).is_none_or(Result::is_err));
            refused.then(|| {
                bad(
                    format!("needs: one of {} was refused", said.needs.join(", ")),
                    "see the answer to that job",
                )
            })
        }
    };
    let ids: Vec<String> = match parents {
        Ok(parents) if refusal.is_none() => parents
            .iter()
            .filter_map(|parent| Some(made.get(*parent)?.as_ref().ok()?.state.job_id.to_string()))
            .collect(),
        _ => Vec::new(),
    };
    let Some(made) = made.get_mut(at).filter(|made| made.is_ok()) else {
        return;
    };
    if let Some(refusal) = refusal {
        *made = Err(refusal);
    } else if let Ok(job) = made
        && !ids.is_empty()
    {
        wait_for(&mut job.state, &ids, said.always);
    }
}

/// The job waits for these, beside what it waits for already.
fn wait_for(state: &mut JobState, ids: &[String], always: bool) {
    let mut waits = match state.waits.take() {
        Some(Value::Object(waits)) => waits,
        _ => Map::new(),
    };
    let condition = if always {
        Value::Null
    } else {
        json!({"job_health": "success"})
    };
    let on = waits.entry("wait_on").or_insert_with(|| json!({}));
    if let Value::Object(on) = on {
        on.extend(ids.iter().map(|id| (id.clone(), condition.clone())));
    }
    waits.entry("fail_fast").or_insert(json!(false));
    state.waits = Some(Value::Object(waits));
    state.ready = false;
    *state = state.clone().set_alarm();
}

#[cfg(test)]
mod tests {
    use fairlead_job::JobId;

    use super::*;
    use crate::testing::state;

    fn made(specs: &[Value]) -> Vec<BuiltJobs> {
        let job = |(n, spec): (usize, &Value)| {
            Ok(NewJob {
                state: state(u64::try_from(n).unwrap() + 1),
                body: spec.as_object().cloned().unwrap(),
            })
        };
        specs.iter().enumerate().map(job).collect()
    }

    fn linked(specs: &[Value]) -> Vec<Result<Value, String>> {
        let mut made = made(specs);
        link(&mut made);
        let waits = |made: BuiltJobs| match made {
            Ok(job) => Ok(job
                .state
                .waits
                .map_or(Value::Null, |waits| waits["wait_on"].clone())),
            Err(refusal) => Err(refusal.body.message),
        };
        made.into_iter().map(waits).collect()
    }

    #[test]
    fn a_job_waits_for_all_of_a_name_and_runs_only_if_they_succeed() {
        let all = linked(&[
            json!({"name": "test", "needs": ["build"]}),
            json!({"name": "build", "nr": 1}),
            json!({"name": "build", "nr": 2}),
            json!({"needs": "test", "if": "always"}),
        ]);
        let success = json!({"job_health": "success"});
        let id = |n| JobId::new(n).to_string();
        assert_eq!(all[0], Ok(json!({id(2): success, id(3): success})));
        let report = Ok(json!({id(1): null}));
        assert_eq!((&all[1], &all[3]), (&Ok(Value::Null), &report));
    }

    #[test]
    fn circles_unknown_names_and_what_hangs_on_them_are_refused() {
        let all = linked(&[
            json!({"name": "a", "needs": ["b"]}),
            json!({"name": "b", "needs": ["a"]}),
            json!({"name": "c", "needs": ["a"]}),
            json!({"name": "d", "needs": ["nobody"]}),
            json!({"name": "e", "needs": ["d"]}),
            json!({"name": "f"}),
            json!({"name": "g", "needs": ["g"]}),
            json!({"needs": 7}),
            json!({"needs": "f", "if": "sunday"}),
        ]);
        for (at, word) in [
            (0, "each other"),
            (1, "each other"),
            (2, "each other"),
            (3, "nobody"),
            (4, "was refused"),
            (6, "each other"),
            (7, "a list of names"),
            (8, "sunday"),
        ] {
            let why = all[at].as_ref().expect_err(&format!("{at}"));
            assert!(why.contains(word), "{at}: {why}");
        }
        assert_eq!(all[5], Ok(Value::Null));
    }

    #[test]
    fn what_was_waited_for_is_waited_for_still() {
        let mut jobs = made(&[json!({"name": "a"}), json!({"needs": "a"})]);
        if let Ok(job) = &mut jobs[1] {
            job.state.waits = Some(json!({"wait_on": {"99": null}, "fail_fast": true}));
        }
        link(&mut jobs);
        let state = &jobs[1].as_ref().unwrap().state;
        let waits = state.waits.as_ref().unwrap();
        let first = JobId::new(1).to_string();
        let on = json!({"99": null, first: {"job_health": "success"}});
        assert_eq!(waits["wait_on"], on);
        assert!(!state.ready && waits["fail_fast"] == true);
    }
}
