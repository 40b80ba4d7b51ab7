//! A plain state for unit tests.

use fairlead_job::{DataReadiness, Health, JobId, Stage, TboxType};
use fairlead_store::JobState;

/// A job that waits, with this id, and nothing special about it.
pub(crate) fn state(id: u64) -> JobState {
    let value = serde_json::json!({
        "format": JobState::FORMAT, "job_id": JobId::new(id), "stage": Stage::Submit, "health": Health::Unknown,
        "data_readiness": DataReadiness::None, "ready": true, "ready_ms": 1, "account": "user1", "queue": "user1",
        "class": 3, "priority": 0, "submit_ms": 1, "suite": "sleep", "testbox": "dc", "tbox_group": "dc",
        "tbox_type": TboxType::Dc, "host_keys": ["dc.x86_64"], "memory_mb": 1024, "tags_n": 0, "devices_n": 0,
        "timeout_s": 60, "attempt": 1, "retry_lost_left": 1, "retry_fail_left": 0, "result_root": "/result/sleep/1",
    });
    serde_json::from_value(value).expect("the literal names every field that has no default")
}
