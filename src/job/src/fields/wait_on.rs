//! `wait_on`: the jobs that a job waits for, as a job file says it and as a stored state keeps it.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fmt,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value};

use crate::{
    DataReadiness, FieldError, Health, JobId, Spec, Stage, fields::read::refuse, units::shown,
};

/// The most jobs that one job can wait for.
pub const WAITED_FOR_MAX: usize = 1_000;

const FIELD: &str = "wait_on";
const HINT: &str = "wait_on: {JOB_ID: {job_stage: finish}}, or {JOB_ID: null} for its end";

/// A field of a job, and what it must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requirement {
    /// `job_stage`: the job has come so far.
    Stage(Stage),
    /// `job_health`: it ended so.
    Health(Health),
    /// `job_data_readiness`: its results are so far.
    DataReadiness(DataReadiness),
    /// Any other field, by compass-ci's name.
    Field(String, Value),
}

/// Condition on one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// The job.
    pub job: JobId,
    /// All of these; none: that it ends.
    pub requirements: Vec<Requirement>,
}

/// Conditions that a job waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitOn {
    /// One for each job that it waits for.
    #[serde(
        rename = "wait_on",
        serialize_with = "to_map",
        deserialize_with = "from_map"
    )]
    pub conditions: Vec<Condition>,
    /// True if it is given up as soon as one of those jobs fails, whatever is waited for.
    #[serde(default)]
    pub fail_fast: bool,
    /// Fields that other versions store beside.
    #[serde(flatten)]
    other: Map<String, Value>,
}

/// Conditions of a job, as its state keeps them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Waits {
    /// Other jobs.
    Jobs(WaitOn),
    /// A later version wrote it. This one keeps it as it is, and leaves the job to replicas that can read it.
    Unknown(Value),
}

impl WaitOn {
    /// Waits for the end of one job, however it ends.
    pub fn end_of(job: JobId) -> Self {
        let condition = Condition {
            job,
            requirements: Vec::new(),
        };
        Self {
            conditions: vec![condition],
            ..Self::default()
        }
    }

    /// The jobs that it waits for, in the order of the conditions.
    pub fn jobs(&self) -> Vec<JobId> {
        self.conditions
            .iter()
            .map(|condition| condition.job)
            .collect()
    }

    /// Reads `wait_on: {JOB_ID: {FIELD: VALUE} | STAGE | null}` and `wait_options: {fail_fast}`.
    ///
    /// # Errors
    /// `wait_on` is no such map, or names too few or too many jobs.
    pub fn of(said: &Spec) -> Result<Self, FieldError> {
        let conditions = conditions(said.get(FIELD).unwrap_or(&Value::Null))?;
        let named = conditions.len();
        if !(1..=WAITED_FOR_MAX).contains(&named) {
            let problem = format!("{named} jobs; 1 to {WAITED_FOR_MAX} can be waited for");
            return refuse(FIELD, problem, HINT);
        }
        let options = said.get("wait_options").and_then(Value::as_object);
        let fail_fast = options.and_then(|options| options.get("fail_fast"));
        Ok(Self {
            conditions,
            // As in compass-ci, the key alone says it.
            fail_fast: fail_fast.is_some_and(|value| *value != Value::Bool(false)),
            other: Map::new(),
        })
    }
}

impl Requirement {
    fn of(name: &str, value: &Value) -> Result<Self, FieldError> {
        let text = text_of(value);
        let known = match name {
            "job_stage" => text.parse().map(Self::Stage),
            "job_health" => text.parse().map(Self::Health),
            "job_data_readiness" => text.parse().map(Self::DataReadiness),
            _ => Ok(Self::Field(name.to_owned(), value.clone())),
        };
        known.or_else(|error| refuse(FIELD, error.to_string(), HINT))
    }

    /// The field and its value, as a job file says them.
    fn said(&self) -> (&str, Value) {
        match self {
            Self::Stage(stage) => ("job_stage", Value::from(stage.as_str())),
            Self::Health(health) => ("job_health", Value::from(health.as_str())),
            Self::DataReadiness(ready) => ("job_data_readiness", Value::from(ready.as_str())),
            Self::Field(name, value) => (name, value.clone()),
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, value) = self.said();
        write!(f, "{name} {}", text_of(&value))
    }
}

/// A value as the text that it is compared as.
pub fn text_of(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn conditions(said: &Value) -> Result<Vec<Condition>, FieldError> {
    let Value::Object(said) = said else {
        let problem = format!("{} where a map was expected", shown(said));
        return refuse(FIELD, problem, HINT);
    };
    let mut conditions: Vec<Condition> = Vec::with_capacity(said.len());
    // An id may be written with and without its leading zeros.
    let mut places: BTreeMap<JobId, usize> = BTreeMap::new();
    for (id, what) in said {
        let job: JobId = match id.parse() {
            Ok(job) => job,
            Err(error) => return refuse(FIELD, format!("{error}"), HINT),
        };
        let requirements = match what {
            Value::Null => Vec::new(),
            Value::Object(fields) => {
                let read = fields
                    .iter()
                    .map(|(name, value)| Requirement::of(name, value));
                read.collect::<Result<_, _>>()?
            }
            stage @ Value::String(_) => vec![Requirement::of("job_stage", stage)?],
            other => {
                let problem = format!("{} for job {id} where a map was expected", shown(other));
                return refuse(FIELD, problem, HINT);
            }
        };
        match places.entry(job) {
            Entry::Vacant(place) => {
                place.insert(conditions.len());
                conditions.push(Condition { job, requirements });
            }
            Entry::Occupied(place) => {
                if let Some(first) = conditions.get_mut(*place.get()) {
                    first.requirements.extend(requirements);
                }
            }
        }
    }
    Ok(conditions)
}

fn to_map<S: Serializer>(conditions: &[Condition], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(conditions.iter().map(|condition| {
        let said = condition.requirements.iter().map(Requirement::said);
        let said: Map<String, Value> = said.map(|(name, value)| (name.to_owned(), value)).collect();
        let what = if said.is_empty() {
            Value::Null
        } else {
            Value::Object(said)
        };
        (condition.job, what)
    }))
}

fn from_map<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Condition>, D::Error> {
    let stored = Value::deserialize(deserializer)?;
    conditions(&stored).map_err(de::Error::custom)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ID: &str = "2611242328511300003";

    fn of(said: &Value) -> Result<WaitOn, FieldError> {
        WaitOn::of(said.as_object().unwrap())
    }

    #[test]
    fn nonsense_is_refused() {
        for (wait_on, word) in [
            (json!(null), "nothing where a map"),
            (json!({}), "0 jobs"),
            (json!({"x": null}), "not a job id: 'x'"),
            (json!({"1": 7}), "7 for job 1"),
            (json!({"1": {"job_stage": "started"}}), "'started'"),
            (json!({"1": "started"}), "'started'"),
            (json!({"1": {"job_health": 5}}), "'5'"),
        ] {
            let error = of(&json!({"wait_on": wait_on})).unwrap_err();
            assert_eq!(error.field, FIELD);
            assert!(error.to_string().contains(word), "{error}");
        }
        let many: Map<String, Value> = (1..=1_001).map(|n| (n.to_string(), json!(null))).collect();
        assert!(of(&json!({"wait_on": many})).is_err());
    }

    #[test]
    fn what_is_said_is_stored_in_the_same_words() {
        let wait_on = json!({
            "2611242328511300004": null,
            ID: {"job_stage": "running", "milestones": "a, b", "priority": 5},
        });
        let read = of(&json!({"wait_on": wait_on, "wait_options": {"fail_fast": null}})).unwrap();
        let stored = json!({"wait_on": wait_on, "fail_fast": true});
        assert_eq!(
            json!(Waits::Jobs(read.clone())).to_string(),
            stored.to_string()
        );
        let back: Waits = serde_json::from_value(stored).unwrap();
        assert_eq!(back, Waits::Jobs(read));
        let short = of(&json!({"wait_on": {ID: "finish"}})).unwrap();
        let long = json!({"wait_on": {ID: {"job_stage": "finish"}}, "fail_fast": false});
        assert_eq!(json!(short), long);
    }

    #[test]
    fn one_job_under_two_spellings_is_one() {
        let twice = json!({"1": {"job_stage": "boot"}, "01": {"job_health": "fail"}});
        let read = of(&json!({"wait_on": twice})).unwrap();
        let [condition] = read.conditions.as_slice() else {
            panic!("{read:?}")
        };
        assert_eq!(condition.requirements.len(), 2);
    }

    /// Fields of other versions are kept: a replica that knows them may read them later.
    #[test]
    fn what_is_not_known_is_kept() {
        for stored in [
            json!({"wait_on": {ID: null}, "fail_fast": false, "until_ms": {"a": [1, 2.5, null]}}),
            json!({"wait_on": {ID: {"job_stage": "hovering"}}, "fail_fast": false}),
            json!({"not_before_ms": 5, "deep": {"n": null}}),
            json!("text"),
        ] {
            let read: Waits = serde_json::from_value(stored.clone()).unwrap();
            assert_eq!(json!(read), stored);
        }
    }
}
