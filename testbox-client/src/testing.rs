//! Fixtures of the agent's tests.

use std::{path::PathBuf, time::Duration};

use fairlead_api::Grant;
use serde_json::Value;

use crate::{AgentConfig, Kinds};

pub(crate) const DC: Kinds = Kinds::Host { vm: true, dc: true };

/// Returns a configuration with short waits and 1000 MB.
pub(crate) fn config(url: &str, kinds: Kinds, work_dir: impl Into<PathBuf>) -> AgentConfig {
    AgentConfig {
        grace: Duration::from_millis(300),
        report_on_stop: Duration::from_secs(20),
        ..AgentConfig::new(vec![url.to_owned()], "box", kinds, 1000, work_dir)
    }
}

/// Returns the grant of a job of 100 MB that may run a minute.
pub(crate) fn grant(job_id: &str, job: Value) -> Grant {
    let Value::Object(job) = job else {
        panic!("not an object")
    };
    Grant {
        log_delay_ms: None,
        inputs: Vec::new(),
        outputs: Vec::new(),
        job_id: job_id.to_owned(),
        attempt: 1,
        claim_token: "claim".to_owned(),
        job_token: "token".to_owned(),
        tbox_type: "dc".to_owned(),
        memory_mb: 100,
        guest_memory_mb: None,
        cpus: 1,
        timeout_s: 60,
        result_root: format!("/result/s/{job_id}"),
        stop_when_cut_off: false,
        job,
    }
}
