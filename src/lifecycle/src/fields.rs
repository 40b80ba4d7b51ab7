//! Fields of a job under compass-ci's names, from its state alone.

use fairlead_dispatch::labels;
use fairlead_job::{Health, Stage};
use fairlead_store::{Attempt, ClusterPlace, JobState};
use serde_json::{Map, Value, json};

use fairlead_base::clock::utc_text;

/// Returns one field by its name in compass-ci, if it follows from the state.
pub fn field_of(state: &JobState, name: &str) -> Option<Value> {
    known(state).shift_remove(name)
}

/// Returns all fields that follow from the state, by their names in compass-ci.
pub fn known(state: &JobState) -> Map<String, Value> {
    let mut view = Map::new();
    let mut put = |name: &str, value: Value| {
        view.insert(name.to_owned(), value);
    };
    put("id", json!(state.job_id));
    put("job_id", json!(state.job_id));
    put("job_stage", json!(state.stage));
    put("job_state", json!(state.stage));
    put("job_health", json!(state.health));
    put("job_data_readiness", json!(state.data_readiness));
    put("istage", json!(state.stage.istage()));
    put("idata_readiness", json!(state.data_readiness.number()));
    put("my_account", json!(state.account));
    put("queue", json!(labels::queue_of(&state.queue)));
    put("priority", json!(state.priority));
    put("suite", json!(state.suite));
    put("testbox", json!(state.testbox));
    put("tbox_group", json!(state.tbox_group));
    put("tbox_type", json!(state.tbox_type));
    put("memory_mb", json!(state.memory_mb));
    put("cpus", json!(state.cpus));
    put("host_keys", json!(state.host_keys));
    put("timeout_seconds", json!(state.timeout_s));
    put("attempt", json!(state.attempt));
    put("result_root", json!(state.result_root));
    put("submit_time", json!(utc_text(state.submit_ms)));
    view.extend(optional(state));
    view.extend(state.cluster.as_ref().map(cluster).unwrap_or_default());
    view.extend(times(state));
    view
}

/// Returns fields that not every job has.
fn optional(state: &JobState) -> Map<String, Value> {
    let mut view = Map::new();
    let mut put = |name: &str, value: Value| {
        view.insert(name.to_owned(), value);
    };
    let texts = [
        ("queue_label", &state.queue_label),
        ("category", &state.category),
        ("params", &state.params),
        ("arch", &state.arch),
        ("submit_id", &state.submit_id),
        ("group_id", &state.group_id),
        ("held_by", &state.held_by),
        ("host", &state.host),
        ("host_machine", &state.host),
        ("reason", &state.reason),
        ("crash_signature", &state.crash_signature),
        ("outputs", &state.outputs),
    ];
    for (name, text) in texts {
        if !text.is_empty() {
            put(name, json!(text));
        }
    }
    if let Some(cause) = state.health.cause() {
        put("failure", json!(cause.as_str()));
    }
    if let Some(stage) = state.last_success_stage {
        put("last_success_stage", json!(stage));
    }
    if let Some(code) = state.exit_code {
        put("exit_code", json!(code));
    }
    let numbers = [
        ("peak_memory_mb", u64::from(state.peak_memory_mb)),
        ("cpu_ms", u64::from(state.cpu_ms)),
        ("result_bytes", state.result_bytes),
    ];
    for (name, number) in numbers.into_iter().filter(|(_, number)| *number > 0) {
        put(name, json!(number));
    }
    if !state.inputs.is_empty() {
        put("inputs", json!(state.inputs));
    }
    if !state.milestones.is_empty() {
        put("milestones", json!(state.milestones));
    }
    if !state.sequence.is_empty() {
        put("sequence", json!(state.sequence));
    }
    if let Some(waits) = &state.waits {
        put("waits", json!(waits));
    }
    if !state.attempts.is_empty() {
        put("attempts", state.attempts.iter().map(attempt).collect());
    }
    view.extend(parts(state));
    view.extend(reuse_links(state));
    view
}

/// Returns the jobs whose result this one has, shares or is compared with.
fn reuse_links(state: &JobState) -> Map<String, Value> {
    let reuse = state.reuse.as_ref();
    let links = [
        ("reused_from", state.reused_from),
        ("joined", reuse.and_then(|reuse| reuse.joined)),
        ("audit_of", reuse.and_then(|reuse| reuse.audit_of)),
    ];
    let known = links.into_iter().filter_map(|(name, id)| Some((name, id?)));
    known
        .map(|(name, id)| (name.to_owned(), json!(id)))
        .collect()
}

/// Returns the counts of its shards and test cases.
fn parts(state: &JobState) -> Map<String, Value> {
    let mut view = Map::new();
    let mut put = |name: &str, value: Value| {
        view.insert(name.to_owned(), value);
    };
    if let Some(sharding) = &state.shards {
        put("shards_total", json!(sharding.count));
        if !sharding.ends.is_empty() {
            put("shards_by_health", json!(sharding.ends));
        }
    }
    if let Some(cases) = &state.cases {
        put(
            "cases",
            json!({ "passed": cases.passed, "failed": cases.failed, "skipped": cases.skipped,
                "first_failures": cases.first_failures }),
        );
    }
    view
}

/// Returns a node's place among its peers.
fn cluster(place: &ClusterPlace) -> Map<String, Value> {
    let mut view = Map::new();
    let mut put = |name: &str, value: Value| {
        view.insert(name.to_owned(), value);
    };
    put("cluster_id", json!(place.head()));
    put("cluster_jobs", json!(place.jobs));
    put("cluster_round", json!(place.round));
    put("node_roles", json!(place.roles));
    if !place.address.is_empty() {
        put("direct_ips", json!([place.address]));
    }
    view
}

/// Returns a failed attempt as a job shows it.
pub fn attempt(attempt: &Attempt) -> Value {
    json!({
        "failure": attempt.health.cause(), "attempt": attempt.attempt, "host": attempt.host, "host_machine": attempt.host, "job_stage": attempt.stage,
        "job_health": attempt.health, "dispatch_ms": attempt.dispatch_ms,
        "end_ms": attempt.end_ms, "dispatch_time": utc_text(attempt.dispatch_ms), "end_time": utc_text(attempt.end_ms), "reason": attempt.reason,
    })
}

/// Returns the times of all events so far.
fn times(state: &JobState) -> Map<String, Value> {
    let mut view = Map::new();
    let end_name = match state.stage {
        Stage::Cancel => "cancel_time",
        Stage::AbortInvalid | Stage::AbortWait | Stage::AbortProvider => "abort_time",
        _ => "finish_time",
    };
    let times = [
        ("dispatch_time", state.dispatch_ms),
        ("boot_time", state.boot_ms),
        ("setup_time", state.setup_ms),
        ("wait_peer_time", state.wait_peer_ms),
        ("running_time", state.running_ms),
        ("post_run_time", state.post_run_ms),
        ("manual_check_time", state.manual_check_ms),
        (end_name, state.end_ms),
        ("deadline_utc", state.deadline_ms),
        ("start_time", state.start_ms),
        ("finish_by_time", state.finish_by_ms),
    ];
    for (name, ms) in times.into_iter().filter(|(_, ms)| *ms > 0) {
        view.insert(name.to_owned(), json!(utc_text(ms)));
    }
    let stamps = [
        ("submit_ms", state.submit_ms),
        ("dispatch_ms", state.dispatch_ms),
        ("running_ms", state.running_ms),
        ("end_ms", state.end_ms),
        ("deadline_ms", state.deadline_ms),
    ];
    for (name, ms) in stamps.into_iter().filter(|(_, ms)| *ms > 0) {
        view.insert(name.to_owned(), json!(ms));
    }
    if state.running_ms > 0 && state.end_ms >= state.running_ms {
        let seconds = (state.end_ms - state.running_ms) / 1000;
        view.insert("run_seconds".to_owned(), json!(seconds));
    }
    view
}

/// Returns a time of a state. `None`: it has not come.
pub fn happened(ms: u64) -> Option<u64> {
    (ms > 0).then_some(ms)
}

/// Returns the cause of a bad end. Empty: the job did not end badly.
pub fn failure(health: Health) -> String {
    let cause = health.cause();
    cause.map_or_else(String::new, |cause| cause.as_str().to_owned())
}
