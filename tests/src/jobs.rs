//! Jobs that tests submit.

use serde_json::{Value, json};

/// Returns a job of `account` that any vm/dc host with 1 GB takes.
pub fn dc(account: &str) -> Value {
    json!({
        "suite": "black-box",
        "testbox": "dc",
        "my_account": account,
        "need_memory": "1g",
        "script": "true",
    })
}

/// Returns a job of `account` that any hw machine takes.
pub fn hw(account: &str) -> Value {
    with(
        dc(account),
        &json!({"testbox": "hw", "need_memory": Value::Null}),
    )
}

/// Returns the job with other fields. Null removes a field.
pub fn with(job: Value, fields: &Value) -> Value {
    let Value::Object(mut job) = job else {
        return job;
    };
    for (key, value) in fields.as_object().into_iter().flatten() {
        if value.is_null() {
            job.shift_remove(key);
        } else {
            job.insert(key.clone(), value.clone());
        }
    }
    Value::Object(job)
}

/// Returns a list of `n` equal jobs.
pub fn times(n: usize, job: &Value) -> Value {
    Value::Array(vec![job.clone(); n])
}
