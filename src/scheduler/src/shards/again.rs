//! Jobs that run again keep what they say of each other: what one needed of another, it needs of the one that runs instead.
//!
//! A name counts in its own submit. Jobs of several submits may run again as one, so a name that two of them have is
//! given to one of them only. Pure.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use fairlead_job::{FieldError, Input, InputOf, Needs, Spec, Stage};
use fairlead_store::JobState;
use serde_json::{Value, json};

/// A job that runs again: its state, and its body as it can be submitted.
#[derive(Debug, Clone)]
pub(super) struct Old {
    pub(super) state: JobState,
    pub(super) spec: Spec,
}

/// A name in a submit.
type Place = (String, String);

/// The names in the new submit.
pub(super) type Names = BTreeMap<Place, String>;

impl Old {
    fn needs(&self) -> Needs {
        Needs::of(&self.spec).unwrap_or_default()
    }

    fn place_of(&self, name: &str) -> Place {
        (self.state.submit_id.clone(), name.to_owned())
    }

    /// The name under which others of its submit need it.
    fn place(&self) -> Option<Place> {
        Some(self.place_of(&self.needs().name?))
    }

    /// The names that it needs.
    fn needed(&self) -> BTreeSet<Place> {
        let names = self.needs().names;
        names.iter().map(|name| self.place_of(name)).collect()
    }

    /// The job among those that run again with it. It needs those of them that it needed. Of others it has what they left
    /// for it, as far as they did.
    pub(super) fn among(mut self, names: &Names) -> Result<Self, FieldError> {
        let needs = Needs::of(&self.spec)?;
        let submit = self.state.submit_id.clone();
        let new = |name: &str| names.get(&(submit.clone(), name.to_owned())).cloned();
        keep_inputs(&mut self.spec, &self.state, new)?;
        if let Some(name) = needs.name.as_deref().and_then(new) {
            self.spec.insert("name".to_owned(), json!(name));
        }
        let kept: Vec<String> = needs.names.iter().filter_map(|name| new(name)).collect();
        if kept.is_empty() {
            self.spec.shift_remove("needs");
            self.spec.shift_remove("if");
        } else {
            self.spec.insert("needs".to_owned(), json!(kept));
        }
        Ok(self)
    }
}

/// The inputs that the job had, also those that other jobs left. Outputs of a job that runs again are those of the new one.
/// A job that never got its inputs has its own fields.
pub(super) fn keep_inputs(
    spec: &mut Spec,
    state: &JobState,
    new_name: impl Fn(&str) -> Option<String>,
) -> Result<(), FieldError> {
    if state.inputs.is_empty() {
        return Ok(());
    }
    let listed = Input::listed(spec)?.into_iter().zip(&state.inputs);
    let inputs = listed.map(|(input, had)| {
        let is_known = !had.starts_with(JobState::INPUT_FROM);
        let of = match &input.of {
            InputOf::From(name) => match new_name(name) {
                Some(name) => json!({ "from": name }),
                None if is_known => json!({ "id": had }),
                None => json!({ "from": name }),
            },
            InputOf::Id(_) => json!({ "id": had }),
        };
        with_folder(of, &input.folder)
    });
    let inputs: Vec<Value> = inputs.collect();
    spec.insert("inputs".to_owned(), json!(inputs));
    Ok(())
}

fn with_folder(mut input: Value, folder: &str) -> Value {
    if let Some(input) = input.as_object_mut().filter(|_| !folder.is_empty()) {
        input.insert("folder".to_owned(), json!(folder));
    }
    input
}

/// The names that jobs have when they run again: their own. A name of several submits gets a number in all but one.
pub(super) fn new_names<'o>(jobs: impl Iterator<Item = &'o Old>) -> Names {
    let places: BTreeSet<Place> = jobs.filter_map(Old::place).collect();
    let mut used: BTreeSet<String> = places.iter().map(|(_, name)| name.clone()).collect();
    let mut given: BTreeMap<String, u32> = BTreeMap::new();
    let mut names = Names::new();
    for place in places {
        let name = &place.1;
        let times = given.entry(name.clone()).or_default();
        let mut new = name.clone();
        if *times > 0 {
            while !used.insert(new.clone()) {
                *times += 1;
                new = format!("{name}.{times}");
            }
        } else {
            *times = 1;
        }
        names.insert(place, new);
    }
    names
}

/// Those of `others`, the jobs of the same submits that did not succeed, that never ran because some of `again` failed:
/// they needed these or each other, and nothing else keeps them from a success.
pub(super) fn never_ran(again: &[&Old], others: Vec<Old>) -> Vec<Old> {
    let mut succeeds: BTreeSet<Place> = again.iter().filter_map(|old| old.place()).collect();
    let mut fails: BTreeMap<Place, usize> = BTreeMap::new();
    for place in others.iter().filter_map(Old::place) {
        *fails.entry(place).or_default() += 1;
    }
    // Of each that never ran, how many names that it needs still fail.
    let mut left: Vec<usize> = Vec::with_capacity(others.len());
    let mut needed_by: BTreeMap<Place, Vec<usize>> = BTreeMap::new();
    let mut free = VecDeque::new();
    let needs_one = |old: &Old, of: &BTreeSet<Place>| old.needed().iter().any(|it| of.contains(it));
    for (n, old) in others.iter().enumerate() {
        let mut failing = 0;
        if old.state.stage == Stage::AbortWait {
            for place in old.needed().into_iter().filter(|it| fails.contains_key(it)) {
                needed_by.entry(place).or_default().push(n);
                failing += 1;
            }
            if failing == 0 && needs_one(old, &succeeds) {
                free.push_back(n);
            }
        }
        left.push(failing);
    }
    let mut taken = BTreeSet::new();
    while let Some(n) = free.pop_front() {
        taken.insert(n);
        let Some(place) = others.get(n).and_then(Old::place) else {
            continue;
        };
        succeeds.insert(place.clone());
        let Some(count) = fails.get_mut(&place) else {
            continue;
        };
        *count -= 1;
        if *count > 0 {
            continue;
        }
        for child in needed_by.remove(&place).unwrap_or_default() {
            if let Some(left) = left.get_mut(child) {
                *left -= 1;
                free.extend((*left == 0).then_some(child));
            }
        }
    }
    let others = others.into_iter().enumerate();
    let others = others.filter(|(n, _)| taken.contains(n));
    others.map(|(_, old)| old).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::state;

    fn old(n: u64, submit: &str, stage: Stage, spec: &Value) -> Old {
        let state = JobState {
            submit_id: submit.to_owned(),
            stage,
            ..state(n)
        };
        let spec = spec.as_object().cloned().unwrap();
        Old { state, spec }
    }

    fn ids(olds: &[Old]) -> Vec<u64> {
        olds.iter().map(|old| old.state.job_id.get()).collect()
    }

    #[test]
    fn a_name_of_several_submits_is_given_once() {
        let spec = |name: &str| json!({"name": name, "needs": ["build"], "if": "always"});
        let jobs: Vec<Old> = [
            ("s", "build"),
            ("t", "build"),
            ("u", "build"),
            ("t", "build.2"),
        ]
        .iter()
        .zip(1..)
        .map(|((submit, name), n)| old(n, submit, Stage::Finish, &spec(name)))
        .collect();
        let names = new_names(jobs.iter());
        let mut new: Vec<&String> = names.values().collect();
        new.sort();
        assert_eq!(new, ["build", "build.2", "build.3", "build.4"]);
        for job in jobs {
            let build = &names[&job.place_of("build")];
            let job = job.clone().among(&names).unwrap();
            assert_eq!(job.spec["needs"], json!([build]));
            assert_eq!(job.spec["if"], "always");
        }
    }

    #[test]
    fn what_runs_not_again_is_needed_no_more_and_its_outputs_stay() {
        let from = |name: &str| json!({"from": name, "folder": name});
        let spec = json!({
            "needs": ["build", "boot", "lost"], "if": "always", "name": 7,
            "inputs": [from("build"), from("boot"), from("lost"), "c".repeat(64)],
        });
        let mut test = old(2, "s", Stage::Finish, &spec);
        let had = ["a", "b"].map(|digit| digit.repeat(64));
        let lost = format!("{}5", JobState::INPUT_FROM);
        test.state.inputs = vec![had[0].clone(), had[1].clone(), lost, "c".repeat(64)];
        let build = old(1, "s", Stage::Finish, &json!({"name": "build"}));
        let names = new_names([&build, &test].into_iter());
        let again = test.clone().among(&names).unwrap().spec;
        assert_eq!(again["needs"], json!(["build"]));
        assert_eq!(again["name"], 7);
        let inputs = json!([
            {"from": "build", "folder": "build"},
            {"id": had[1], "folder": "boot"},
            {"from": "lost", "folder": "lost"},
            {"id": "c".repeat(64)},
        ]);
        assert_eq!(again["inputs"], inputs);
        let alone = test.among(&Names::new()).unwrap().spec;
        assert!(!alone.contains_key("needs") && !alone.contains_key("if"));
        assert_eq!(alone["inputs"][0], json!({"id": had[0], "folder": "build"}));
    }

    #[test]
    fn what_never_ran_because_of_a_failure_is_all_that_hangs_on_it() {
        let job = |n, submit: &str, stage, name: &str, needs: &[&str]| {
            old(n, submit, stage, &json!({"name": name, "needs": needs}))
        };
        let failed = job(1, "s", Stage::Finish, "a", &[]);
        let others = vec![
            job(2, "s", Stage::AbortWait, "d", &["c", "b"]),
            job(3, "s", Stage::AbortWait, "b", &["a", "good"]),
            job(4, "s", Stage::AbortWait, "c", &["b"]),
            // They wait for what a person cancelled, or for another failure.
            job(5, "s", Stage::Cancel, "x", &[]),
            job(6, "s", Stage::AbortWait, "e", &["a", "x"]),
            job(7, "s", Stage::AbortWait, "f", &["e"]),
            job(8, "s", Stage::AbortWait, "g", &[]),
            // Its a is another one.
            job(9, "t", Stage::AbortWait, "b", &["a"]),
            job(10, "s", Stage::Submit, "h", &["a"]),
        ];
        assert_eq!(ids(&never_ran(&[&failed], others)), [2, 3, 4]);
    }

    #[test]
    fn all_of_a_matrix_must_run_again() {
        let job = |n, stage, name: &str, needs: &[&str]| {
            old(n, "s", stage, &json!({"name": name, "needs": needs}))
        };
        let failed = [1, 2].map(|n| job(n, Stage::Finish, "m", &[]));
        let child = || job(3, Stage::AbortWait, "c", &["m"]);
        let both: Vec<&Old> = failed.iter().collect();
        assert_eq!(ids(&never_ran(&both, vec![child()])), [3]);
        let others = vec![failed[1].clone(), child()];
        assert_eq!(ids(&never_ran(&both[..1], others)), [0; 0]);
    }
}
