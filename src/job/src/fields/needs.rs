//! Jobs of one submit that need each other by name: `name: build` here, `needs: [build]` there.
//!
//! A job waits for all jobs of its submit that have a name it needs (a matrix has several). Refused are names that no
//! job has, jobs that wait for each other, and jobs that need a refused one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{
    FieldError, Spec, WAITED_FOR_MAX,
    fields::read::{present, refuse},
    units::shown,
};

const FIELD: &str = "needs";
/// Of a circle, so much is shown.
const CIRCLE_BYTES: usize = 200;

/// Dependencies of a job on others of its submit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// The name under which others need it.
    pub name: Option<String>,
    /// The names that it needs.
    pub names: Vec<String>,
    /// True if it runs whatever becomes of them: `if: always`.
    pub always: bool,
}

/// A job among others of its submit.
#[derive(Debug, Clone, Copy)]
pub struct Member<'n> {
    /// Dependencies on the others.
    pub needs: &'n Needs,
    /// How many jobs of other submits it waits for.
    pub waits_for: usize,
    /// True if it is refused, and why does not matter.
    pub is_refused: bool,
}

impl Needs {
    /// Reads the dependencies of a job.
    ///
    /// # Errors
    /// `needs` is no list of names, or `if` no known word.
    pub fn of(spec: &Spec) -> Result<Self, FieldError> {
        let names = match spec.get(FIELD) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::String(text)) => {
                let names = text.split([',', ' ']).filter(|name| !name.is_empty());
                names.map(str::to_owned).collect()
            }
            Some(list) => match serde_json::from_value(list.clone()) {
                Ok(names) => names,
                Err(_) => {
                    return refuse(
                        FIELD,
                        "expected a name or a list of names".to_owned(),
                        "write needs: [build, boot] with names of jobs of the same submit",
                    );
                }
            },
        };
        let always = match present(spec, "if") {
            None => false,
            Some(word) if word == "always" => true,
            Some(word) if word == "success" => false,
            Some(other) => {
                return refuse(
                    "if",
                    format!("unknown value {}", shown(other)),
                    "use always to run after any result, or success (the default)",
                );
            }
        };
        Ok(Self {
            name: Self::name_of(spec),
            names,
            always,
        })
    }

    /// The name under which others need a job. A name that is no text is a field of the job's own program.
    pub(crate) fn name_of(spec: &Spec) -> Option<String> {
        let name = spec.get("name")?.as_str()?;
        (!name.is_empty()).then(|| name.to_owned())
    }

    /// Checks a job that is submitted by itself.
    ///
    /// # Errors
    /// It needs another one.
    pub fn check_alone(&self) -> Result<(), FieldError> {
        let alone = Member {
            needs: self,
            waits_for: 0,
            is_refused: false,
        };
        link(&[alone])
            .pop()
            .map_or(Ok(()), |linked| linked.map(drop))
    }
}

/// The jobs that each job of a submit waits for, by their places in the submit. A refused job waits for none.
pub fn link(jobs: &[Member<'_>]) -> Vec<Result<BTreeSet<usize>, FieldError>> {
    let mut named: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, job) in jobs.iter().enumerate() {
        if let Some(name) = &job.needs.name {
            named.entry(name).or_default().push(at);
        }
    }
    let mut linked: Vec<_> = jobs.iter().map(|job| parents_of(job, &named)).collect();
    // One after the other whose parents are settled: those that are left over wait for each other.
    let mut children: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut open: BTreeMap<usize, usize> = BTreeMap::new();
    let mut settled: Vec<usize> = Vec::with_capacity(jobs.len());
    for (at, parents) in linked.iter().enumerate() {
        match parents {
            Ok(parents) if !parents.is_empty() => {
                open.insert(at, parents.len());
                for parent in parents {
                    children.entry(*parent).or_default().push(at);
                }
            }
            Ok(_) | Err(_) => settled.push(at),
        }
    }
    while let Some(parent) = settled.pop() {
        let is_refused = jobs.get(parent).is_none_or(|job| job.is_refused)
            || linked.get(parent).is_none_or(Result::is_err);
        for child in children.remove(&parent).unwrap_or_default() {
            let (Some(left), Some(job)) = (open.get_mut(&child), jobs.get(child)) else {
                continue;
            };
            *left -= 1;
            if *left == 0 {
                open.remove(&child);
                settled.push(child);
            }
            if let Some(linked) = linked.get_mut(child).filter(|_| is_refused) {
                *linked = one_is_refused(job.needs);
            }
        }
    }
    let circle = circle_among(&open, &linked);
    let names = circle.into_iter();
    let names = names.filter_map(|at| jobs.get(at)?.needs.name.as_deref());
    let circle = names.collect::<Vec<&str>>().join(" needs ");
    for at in open.into_keys() {
        if let (Some(linked), Some(job)) = (linked.get_mut(at), jobs.get(at)) {
            *linked = wait_for_each_other(job.needs, &circle);
        }
    }
    linked
}

/// A circle of jobs each of which waits for one of them, its first job at both ends.
fn circle_among(
    open: &BTreeMap<usize, usize>,
    linked: &[Result<BTreeSet<usize>, FieldError>],
) -> Vec<usize> {
    let parent_of = |at: &usize| {
        let parents = linked.get(*at)?.as_ref().ok()?;
        parents.iter().find(|it| open.contains_key(it)).copied()
    };
    let mut way: Vec<usize> = open.keys().take(1).copied().collect();
    let mut seen: BTreeSet<usize> = way.iter().copied().collect();
    // A walk from one job to the next reaches a circle.
    while let Some(at) = way.last().and_then(parent_of) {
        way.push(at);
        if !seen.insert(at) {
            let begin = way.iter().position(|it| *it == at).unwrap_or(0);
            return way.split_off(begin);
        }
    }
    way
}

fn parents_of(
    job: &Member<'_>,
    named: &BTreeMap<&str, Vec<usize>>,
) -> Result<BTreeSet<usize>, FieldError> {
    let mut parents = BTreeSet::new();
    if job.is_refused {
        return Ok(parents);
    }
    for need in &job.needs.names {
        let Some(found) = named.get(need.as_str()) else {
            return refuse(
                FIELD,
                format!(
                    "no job of this submit is named {}",
                    shown(&Value::from(need.as_str()))
                ),
                "give a job that name, or use wait_on for jobs of other submits",
            );
        };
        parents.extend(found);
    }
    let all = parents.len().saturating_add(job.waits_for);
    if !parents.is_empty() && all > WAITED_FOR_MAX {
        return refuse(
            FIELD,
            format!("the job waits for {all} jobs; the limit is {WAITED_FOR_MAX}"),
            "add a job in between that waits for a part of them",
        );
    }
    Ok(parents)
}

fn one_is_refused<T>(needs: &Needs) -> Result<T, FieldError> {
    refuse(
        FIELD,
        format!("one of {} was refused", listed(needs)),
        "see the answer to that job",
    )
}

fn wait_for_each_other<T>(needs: &Needs, circle: &str) -> Result<T, FieldError> {
    let circle = crate::file::printable(circle, CIRCLE_BYTES);
    refuse(
        FIELD,
        format!(
            "{} and others wait for each other in a circle: {circle}",
            listed(needs)
        ),
        "remove one of the dependencies",
    )
}

/// The names that a job needs, cut short.
fn listed(needs: &Needs) -> String {
    crate::file::printable(&needs.names.join(", "), 60)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn linked(specs: &[Value], refused: &[usize]) -> Vec<Result<Vec<usize>, String>> {
        let read = |spec: &Value| Needs::of(spec.as_object().unwrap());
        let needs: Vec<Result<Needs, FieldError>> = specs.iter().map(read).collect();
        let nothing = Needs::default();
        let members: Vec<Member<'_>> = needs
            .iter()
            .enumerate()
            .map(|(at, needs)| Member {
                needs: needs.as_ref().unwrap_or(&nothing),
                waits_for: 0,
                is_refused: needs.is_err() || refused.contains(&at),
            })
            .collect();
        let linked = link(&members).into_iter().zip(&needs);
        let outcome = linked.map(|(linked, needs)| match (linked, needs) {
            (_, Err(error)) => Err(error.to_string()),
            (Err(error), _) => Err(error.to_string()),
            (Ok(parents), Ok(_)) => Ok(parents.into_iter().collect()),
        });
        outcome.collect()
    }

    #[test]
    fn a_job_waits_for_all_of_a_name() {
        let all = linked(
            &[
                json!({"name": "test", "needs": ["build"]}),
                json!({"name": "build", "nr": 1}),
                json!({"name": "build", "nr": 2}),
                json!({"needs": "test build", "if": "always"}),
                json!({"name": 7, "needs": null}),
            ],
            &[],
        );
        let expected = [vec![1, 2], vec![], vec![], vec![0, 1, 2], vec![]];
        assert_eq!(all, expected.map(Ok));
    }

    #[test]
    fn circles_unknown_names_and_what_hangs_on_them_are_refused() {
        let all = linked(
            &[
                json!({"name": "a", "needs": ["b"]}),
                json!({"name": "b", "needs": ["a"]}),
                json!({"name": "c", "needs": ["a"]}),
                json!({"name": "d", "needs": ["nobody"]}),
                json!({"name": "e", "needs": ["d"]}),
                json!({"name": "f"}),
                json!({"name": "g", "needs": ["g"]}),
                json!({"needs": 7}),
                json!({"needs": "f", "if": "sunday"}),
                json!({"name": "h"}),
                json!({"name": "i", "needs": "h"}),
                json!({"needs": "i"}),
            ],
            &[9],
        );
        for (at, word) in [
            (0, "each other in a circle: a needs b needs a"),
            (1, "each other"),
            (2, "each other"),
            (3, "'nobody'"),
            (4, "was refused"),
            (6, "each other"),
            (7, "a list of names"),
            (8, "sunday"),
            (10, "one of h was refused"),
            (11, "one of i was refused"),
        ] {
            let why = all[at].as_ref().expect_err(&format!("{at}"));
            assert!(why.contains(word), "{at}: {why}");
        }
        assert_eq!(all[5], Ok(vec![]));
    }

    #[test]
    fn jobs_of_other_submits_count_to_the_limit() {
        let one = |names: &[&str], name: Option<&str>| Needs {
            name: name.map(str::to_owned),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            always: false,
        };
        let needs = [one(&[], Some("a")), one(&["a"], None)];
        let member = |needs, waits_for| Member {
            needs,
            waits_for,
            is_refused: false,
        };
        let outcome = |waits_for| link(&[member(&needs[0], 0), member(&needs[1], waits_for)]);
        assert!(outcome(WAITED_FOR_MAX - 1)[1].is_ok());
        let error = outcome(WAITED_FOR_MAX)[1].clone().unwrap_err();
        assert!(error.to_string().contains("1001 jobs"), "{error}");
        assert!(needs[1].check_alone().is_err() && needs[0].check_alone().is_ok());
    }
}
