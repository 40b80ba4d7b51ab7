//! Bodies of small requests, and their answers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::CancelItem;

/// A body that only says who asks, as compass-ci's clients do; an empty one will do, too.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Signed {
    /// Who asks, where no token says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub my_account: Option<String>,
    /// The token, where the header has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub my_token: Option<String>,
}

/// Stops a job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TerminateRequest {
    /// How long its script has after SIGTERM, seconds, 0 to 3,600. Default 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_s: Option<u32>,
}

/// Runs jobs again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RerunRequest {
    /// Which, 1 to 10,000, as one submit. They need each other as before. Not for `jobs/ID/rerun`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub job_ids: Vec<String>,
    /// Of jobs with shards only the shards or tests that failed. Jobs of the same submits that never ran because these failed
    /// run, too, and come last in the answer. A job that did not fail is refused. Default false.
    pub failed: bool,
    /// Fields with new values; `a.b` is field `b` of section `a`.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub set: Map<String, Value>,
    /// The submit that they belong to. Default: the id of the first new job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submit_id: Option<String>,
    /// Names this request, so that it may be repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Changes jobs that wait.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ChangeRequest {
    /// Which, 1 to 10,000.
    pub job_ids: Vec<String>,
    /// Whether they are held back. Default: as before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<bool>,
    /// New values of `queue`, `priority`, `need_memory`, `need_cpus`, `timeout`, `tags` or `deadline`, as job files have
    /// them.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub set: Map<String, Value>,
}

/// What a script waits for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WaitRequest {
    /// By job id: `null` for its end, or fields with the values that are waited for.
    pub wait_on: Map<String, Value>,
    /// `fail_fast: true` ends it with the first failure; `get_fields: {NAME: null}` asks for more fields.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub wait_options: Map<String, Value>,
}

/// Which of the jobs have reached what is waited for, or cannot any more.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WaitAnswer {
    /// By job id: `job_stage`, `job_health`, and the fields that were asked for.
    pub waited_jobs: BTreeMap<String, Map<String, Value>>,
}

/// What became of each job, in the order of the request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CancelReport {
    /// A report each.
    pub results: Vec<CancelItem>,
}

/// The answer to an upload.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Written {
    /// How many bytes the file has now.
    pub size: u64,
}

/// A word or a list of words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Words {
    /// Words with commas or blanks between.
    Text(String),
    /// At most 64 words.
    List(Vec<String>),
}

/// What is known of a host: compass-ci's host files, or these fields. Only what is given changes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct HostRegistration {
    /// Its architecture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arch: Option<String>,
    /// Its group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Memory of the whole host, MB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_mb: Option<u32>,
    /// CPUs, 1 to 65,536.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    /// Its MAC addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac: Option<Words>,
    /// Its tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Words>,
    /// Its devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub devices: Option<Words>,
    /// Kinds of testbox that it offers: `hw`, `vm`, `dc`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kinds: Option<Words>,
    /// What the machine is: values by family.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, Vec<String>>,
    /// Other fields of host files.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// How a replica is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct HealthView {
    /// Whether it takes requests, and its store answers and takes writes.
    pub well: bool,
    /// The replica's name.
    pub replica: String,
    /// Its version.
    pub version: String,
    /// Its clock, UTC epoch ms.
    pub time_ms: u64,
    /// The store: `embedded` or `elasticsearch`, with version.
    pub store: String,
    /// Why the store answers no reads; absent: it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads: Option<StoreProblem>,
    /// Why the store takes no writes; absent: it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writes: Option<StoreProblem>,
    /// What is wrong with the content store; absent: nothing. Jobs without inputs and outputs run all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<StoreProblem>,
    /// How far its clock is ahead of the other replicas', ms; negative: behind. Absent: it agrees within 5 s. A replica whose
    /// clock is off does nothing, and stops after a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_off_ms: Option<i64>,
    /// What the login of the store lacks to delete old jobs, though they are to be deleted; absent: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undeletable: Option<String>,
    /// The data folder; absent: the replica has not looked yet, or is too old to tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<DataView>,
    /// The other replicas that it hears of.
    pub peers: Vec<String>,
    /// Whether it is stopping: it takes no new request.
    pub stopping: bool,
}

impl HealthView {
    /// What is wrong with the replica, in one line; `None`: it takes requests, and its store reads and writes.
    pub fn problem(&self) -> Option<String> {
        let sides = [
            ("answers no reads", &self.reads),
            ("takes no writes", &self.writes),
        ];
        let of_store = sides.into_iter().find_map(|(what, side)| {
            let side = side.as_ref()?;
            let problem: Vec<&str> = side.problem.split_whitespace().collect();
            let problem = problem.join(" ");
            Some(format!(
                "the store {what}, for {} s: {problem}",
                side.seconds
            ))
        });
        let of_clock = self.clock_off_ms.map(|by_ms| {
            let side = if by_ms < 0 { "behind" } else { "ahead of" };
            let seconds = by_ms.unsigned_abs() / 1000;
            format!("its clock is {seconds} s {side} the other replicas'")
        });
        let stops = self.stopping.then(|| "it is stopping".to_owned());
        let is_ill = (!self.well).then(|| "it is not well".to_owned());
        of_store.or(of_clock).or(stops).or(is_ill)
    }
}

/// What is wrong with one side of a store.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StoreProblem {
    /// What, for people.
    pub problem: String,
    /// For how long, seconds.
    pub seconds: u64,
}

/// The room of the data folder, where results and logs are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct DataView {
    /// Bytes that are left.
    pub free_bytes: u64,
    /// All bytes of its file system.
    pub bytes: u64,
    /// Inodes that are left.
    pub free_inodes: u64,
    /// All inodes; 0: the file system does not count them.
    pub inodes: u64,
    /// What is wrong; absent: nothing. Jobs are dispatched all the same, and end without the files that find no room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<StoreProblem>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_says_its_first_problem_in_one_line() {
        let well = HealthView {
            well: true,
            replica: "r1".to_owned(),
            version: "0.1.0".to_owned(),
            time_ms: 1,
            store: "embedded".to_owned(),
            reads: None,
            writes: None,
            content: None,
            clock_off_ms: None,
            undeletable: None,
            data: None,
            peers: Vec::new(),
            stopping: false,
        };
        assert_eq!(well.problem(), None);
        let problem = |seconds| StoreProblem {
            problem: "disk\n full".to_owned(),
            seconds,
        };
        let ill = HealthView {
            well: false,
            ..well.clone()
        };
        assert_eq!(ill.problem().as_deref(), Some("it is not well"));
        let stopping = HealthView {
            stopping: true,
            ..ill.clone()
        };
        assert_eq!(stopping.problem().as_deref(), Some("it is stopping"));
        let off = HealthView {
            clock_off_ms: Some(-3_600_999),
            ..stopping.clone()
        };
        let text = "its clock is 3600 s behind the other replicas'";
        assert_eq!(off.problem().as_deref(), Some(text));
        let full = HealthView {
            writes: Some(problem(7)),
            ..stopping
        };
        let text = "the store takes no writes, for 7 s: disk full";
        assert_eq!(full.problem().as_deref(), Some(text));
        let silent = HealthView {
            reads: Some(problem(9)),
            ..full
        };
        assert!(silent.problem().unwrap().contains("answers no reads"));
    }
}
