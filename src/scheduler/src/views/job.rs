//! Renders jobs for clients: compass-ci's flat names, without secrets.

use fairlead_api::{JobSummary, ShardCounts};
use fairlead_dispatch::labels;
use fairlead_job::{Spec, Stage};
use fairlead_store::JobState;
use serde_json::{Map, Value, json};

use fairlead_base::sealing::Sealer;
use fairlead_lifecycle::fields::{failure, happened, known};

/// Fields of a spec that nobody is shown (compass-ci's list).
const HIDDEN: [&str; 8] = [
    "my_email",
    "my_token",
    "my_name",
    "job_token",
    "my_ssh_pubkey",
    "pkg_data",
    "stats",
    "secrets",
];

/// Fields of a spec whose names stand for what became of them, and under which names they are shown.
const ASKED: [(&str, &str); 2] = [
    ("inputs", "declared_inputs"),
    ("outputs", "declared_outputs"),
];

/// A job as `jobs/:id` answers it: its spec, and over it what the scheduler knows.
pub(crate) fn flat(state: &JobState, spec: Option<Spec>) -> Map<String, Value> {
    let mut view = shown_spec(spec.unwrap_or_default());
    let now = state.edits.as_deref().cloned().unwrap_or_default();
    let edits = now.iter().map(|(name, value)| {
        let before = view.get(name).cloned().unwrap_or_default();
        (name.clone(), json!({ "submitted": before, "now": value }))
    });
    let edits: Map<String, Value> = edits.collect();
    view.extend(now);
    for (asked, shown) in ASKED {
        if let Some(asked) = view.shift_remove(asked) {
            view.insert(shown.to_owned(), asked);
        }
    }
    view.extend(known(state));
    if !edits.is_empty() {
        view.insert("edits".to_owned(), json!(edits));
    }
    view
}

/// What people may see of a spec.
pub(crate) fn shown_spec(mut spec: Spec) -> Spec {
    Sealer::strip(&mut spec);
    for name in HIDDEN {
        spec.shift_remove(name);
    }
    spec
}

/// A job as a line of a list. `shards`: how far its shards are, if it has some.
pub(crate) fn summary(state: JobState, shards: Option<ShardCounts>) -> JobSummary {
    let has_begun = shards.is_some_and(|shards| shards.has_begun());
    let stage = if has_begun && state.stage == Stage::Submit {
        Stage::Running
    } else {
        state.stage
    };
    JobSummary {
        job_id: state.job_id.to_string(),
        job_stage: stage.into(),
        shards,
        shard_of: state
            .shard
            .map_or_else(String::new, |place| place.of.to_string()),
        job_health: state.health.into(),
        job_data_readiness: state.data_readiness.to_string(),
        my_account: state.account,
        queue: labels::queue_of(&state.queue).to_owned(),
        queue_label: state.queue_label,
        priority: state.priority,
        suite: state.suite,
        params: state.params,
        kv: Vec::new(),
        testbox: state.testbox,
        tbox_group: state.tbox_group,
        host: state.host,
        attempt: state.attempt,
        submit_id: state.submit_id,
        memory_mb: state.memory_mb,
        cpus: state.cpus,
        submit_ms: state.submit_ms,
        ready_ms: happened(state.ready_ms).filter(|_| state.ready || state.dispatch_ms > 0),
        dispatch_ms: happened(state.dispatch_ms),
        running_ms: happened(state.running_ms),
        end_ms: happened(state.end_ms),
        exit_code: state.exit_code,
        failure: failure(state.health),
        reason: state.reason,
        held_by: state.held_by,
        crash_signature: state.crash_signature,
        reused_from: state
            .reused_from
            .map_or_else(String::new, |from| from.to_string()),
        result_root: state.result_root,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::state;
    use serde_json::json;

    #[test]
    fn a_line_says_since_when_a_job_waits_for_a_host_alone() {
        let shown = |ready, dispatch_ms| {
            let state = JobState {
                ready,
                ready_ms: 7,
                dispatch_ms,
                ..state(1)
            };
            summary(state, None).ready_ms
        };
        assert_eq!((shown(true, 0), shown(false, 9)), (Some(7), Some(7)));
        assert_eq!(shown(false, 0), None);
    }

    #[test]
    fn nobody_is_shown_a_secret() {
        let Value::Object(spec) = json!({
            "suite": "x", "my_token": "hush", "my_email": "hush", "secrets": {"a": "hush"}, "secrets_sealed": "hush",
            "job_stage": "forged", "nr_run": 1,
        }) else {
            unreachable!()
        };
        let held = JobState {
            claim_token: "hush".into(),
            session: "hush".into(),
            ..state(1)
        };
        let text = Value::Object(flat(&held, Some(spec))).to_string();
        assert!(!text.contains("hush") && text.contains("nr_run"), "{text}");
        assert!(text.contains(r#""job_stage":"submit""#), "{text}");
    }
}
