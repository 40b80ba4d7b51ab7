//! A grant for the tests of this folder.

use fairlead_api::Grant;
use serde_json::Value;

pub(crate) fn grant(job_id: &str, job: Value) -> Grant {
    let Value::Object(job) = job else {
        panic!("not an object")
    };
    Grant {
        job_id: job_id.to_owned(),
        attempt: 1,
        claim_token: "claim".to_owned(),
        job_token: "token".to_owned(),
        tbox_type: "dc".to_owned(),
        memory_mb: 100,
        timeout_s: 60,
        result_root: format!("/result/x/{job_id}"),
        stop_when_cut_off: false,
        job,
    }
}
