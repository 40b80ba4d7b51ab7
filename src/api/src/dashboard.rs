//! Types of the dashboard: a snapshot of the lab, its changes, plots, and the audit log.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{ClosedView, QueueView, ReservedView, StoreProblem};

/// Most ids of jobs in [`Delta::jobs`].
pub const DELTA_JOBS_MAX: usize = 200;

/// A login of a person: with a token, or in an open lab with a name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Login {
    /// The token of the account; in a lab with accounts.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub token: String,
    /// The name to act under; in an open lab.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub my_account: String,
}

/// The lab as it is, made once a second while anybody looks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Snapshot {
    /// The run of the replica that made it. Numbers of two runs cannot be compared.
    pub run: String,
    /// Its number in that run.
    pub seq: u64,
    /// When it was made, UTC epoch ms.
    pub at_ms: u64,
    /// All rows.
    pub tables: Tables,
}

/// The rows of a snapshot, by name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Tables {
    /// The lab itself, one row under `lab`.
    pub lab: BTreeMap<String, LabRow>,
    /// Queues.
    pub queues: BTreeMap<String, QueueView>,
    /// Hosts.
    pub hosts: BTreeMap<String, HostRow>,
    /// Replicas that live.
    pub replicas: BTreeMap<String, ReplicaRow>,
}

/// What changed since the event before, in the stream of `GET /scheduler/v1/live`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Delta {
    /// See [`Snapshot::run`].
    pub run: String,
    /// See [`Snapshot::seq`].
    pub seq: u64,
    /// When it was made, UTC epoch ms.
    pub at_ms: u64,
    /// Rows that changed.
    pub tables: ChangedTables,
    /// Jobs that changed, at most 200.
    pub jobs: Vec<String>,
    /// How many more jobs changed, at least.
    pub jobs_more: u64,
}

/// Rows that changed; null: it is gone.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ChangedTables {
    /// The lab itself.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub lab: BTreeMap<String, Option<LabRow>>,
    /// Queues.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub queues: BTreeMap<String, Option<QueueView>>,
    /// Hosts.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub hosts: BTreeMap<String, Option<HostRow>>,
    /// Replicas.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub replicas: BTreeMap<String, Option<ReplicaRow>>,
}

impl ChangedTables {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.lab.is_empty()
            && self.queues.is_empty()
            && self.hosts.is_empty()
            && self.replicas.is_empty()
    }

    /// From one snapshot to the next.
    pub fn between(before: &Tables, after: &Tables) -> Self {
        Self {
            lab: changed(&before.lab, &after.lab),
            queues: changed(&before.queues, &after.queues),
            hosts: changed(&before.hosts, &after.hosts),
            replicas: changed(&before.replicas, &after.replicas),
        }
    }
}

fn changed<R: Clone + PartialEq>(
    before: &BTreeMap<String, R>,
    after: &BTreeMap<String, R>,
) -> BTreeMap<String, Option<R>> {
    let news = after
        .iter()
        .filter(|(name, row)| before.get(*name) != Some(row));
    let news = news.map(|(name, row)| (name.clone(), Some(row.clone())));
    let gone = before.keys().filter(|name| !after.contains_key(*name));
    news.chain(gone.map(|name| (name.clone(), None))).collect()
}

/// The lab in numbers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LabRow {
    /// The replica that answers.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Jobs that could run now and wait for a host.
    pub waiting: u64,
    /// Jobs that hosts have.
    pub running: u64,
    /// Open jobs by stage, counted every tenth second; shards count, their parents do not.
    pub stages: BTreeMap<String, u64>,
    /// Of those in stage submit: jobs that wait for a time, a turn or other jobs.
    pub not_ready: u64,
    /// Jobs that were submitted within 24 hours and have ended, by health.
    pub ended_24h: BTreeMap<String, u64>,
    /// Hosts by state, as [`HostRow::state`].
    pub hosts_by_state: BTreeMap<String, u64>,
    /// How the store is.
    pub store: StoreRow,
    /// Who paused the whole lab; absent: it is not paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<PausedView>,
}

/// Why nothing is dispatched in the whole lab.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PausedView {
    /// Who paused it.
    pub by: String,
    /// Why.
    pub reason: String,
    /// When, UTC epoch ms.
    pub at_ms: u64,
}

/// How the store is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct StoreRow {
    /// Its name and version.
    pub name: String,
    /// Whether it answers reads and takes writes.
    pub well: bool,
    /// Why it answers no reads; absent: it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads: Option<StoreProblem>,
    /// Why it takes no writes; absent: it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writes: Option<StoreProblem>,
}

/// A host in short.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct HostRow {
    /// Its group.
    pub group: String,
    /// As [`crate::HostView::state`].
    pub state: String,
    /// Kinds of testboxes that it offers.
    pub kinds: Vec<String>,
    /// Its architecture.
    pub arch: String,
    /// Memory of the whole host, MB.
    pub memory_mb: u32,
    /// Memory free as last said, MB.
    pub free_memory_mb: u32,
    /// CPUs of the whole host; absent: it did not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    /// CPUs free as last said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_cpus: Option<u32>,
    /// Jobs that it has.
    pub jobs: Vec<String>,
    /// Of a silent or off host: when it was last heard of, UTC epoch ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_ms: Option<u64>,
    /// Why it gets no new job, if it is closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed: Option<ClosedView>,
    /// For whom it is kept, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserved: Option<ReservedView>,
    /// Whether it is loaded, so that calm hosts get jobs first.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub loaded: bool,
}

/// A replica that lives.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ReplicaRow {
    /// Where the others reach it.
    pub url: String,
    /// Whether it is the one that answers.
    pub is_me: bool,
    /// Of its program; empty: it has not told.
    pub version: String,
    /// How long ago it knew all changes of the store, s. A replica that keeps up has 0 to 2.
    pub lag_s: u64,
    /// Whether that is too long: 5 s or more.
    pub behind: bool,
    /// Messages that its engine has not processed.
    pub inbox: u64,
    /// Jobs on testboxes, as it knows.
    pub held: u64,
    /// Its requests that the store has not answered.
    pub store_requests: u64,
}

/// What ran in each step of a time, for plots.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Series {
    /// Begin, UTC epoch ms.
    pub since_ms: u64,
    /// End, UTC epoch ms.
    pub until_ms: u64,
    /// How long a step is, ms: a minute, or an hour of long times.
    pub step_ms: u64,
    /// Steps in which anything ran, in order of time.
    pub points: Vec<SeriesPoint>,
}

/// One step of a plot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SeriesPoint {
    /// Its begin, UTC epoch ms.
    pub at_ms: u64,
    /// Jobs that hosts got.
    pub dispatched: u64,
    /// Attempts that ended.
    pub ended: u64,
    /// Those of them that did not succeed.
    pub failed: u64,
    /// How long hosts had those that ended, ms.
    pub busy_ms: u64,
    /// Half of the jobs waited less than this, seconds, a power of two; absent: hosts got none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_p50_s: Option<u64>,
    /// 95 of 100 jobs waited less than this, seconds, a power of two; absent: hosts got none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_p95_s: Option<u64>,
}

/// A page of the audit log, the newest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct AuditList {
    /// Its entries.
    pub events: Vec<AuditEvent>,
    /// To be sent as `after` for the next page; absent: this is the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Who did what.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct AuditEvent {
    /// When, UTC epoch ms.
    pub at_ms: u64,
    /// Who: an account, a host or a replica; `operator` in an open lab without names.
    pub who: String,
    /// What was done, such as `job.cancel`.
    pub what: String,
    /// To what: a job, a queue, a host or an account.
    pub subject: String,
    /// Its details.
    pub detail: Value,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delta_has_rows_that_came_changed_or_went() {
        let row = |state: &str| HostRow {
            state: state.to_owned(),
            ..HostRow::default()
        };
        let tables = |rows: &[(&str, &str)]| Tables {
            hosts: rows
                .iter()
                .map(|(name, state)| ((*name).to_owned(), row(state)))
                .collect(),
            ..Tables::default()
        };
        let before = tables(&[("a", "busy"), ("b", "busy"), ("c", "idle")]);
        let after = tables(&[("a", "busy"), ("b", "idle"), ("d", "waiting")]);
        let delta = ChangedTables::between(&before, &after);
        let expected = [
            ("b", Some(row("idle"))),
            ("c", None),
            ("d", Some(row("waiting"))),
        ];
        let expected = expected.map(|(name, row)| (name.to_owned(), row));
        assert_eq!(delta.hosts, BTreeMap::from(expected));
        assert!(!delta.is_empty() && delta.queues.is_empty());
        assert!(ChangedTables::between(&after, &after).is_empty());
    }
}
