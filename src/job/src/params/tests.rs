//! Tests of parameters: what tables and scripts see.

use super::*;
use serde_json::json;

fn spec(value: &Value) -> Spec {
    value.as_object().expect("a map").clone()
}

fn pairs(found: &[(String, String)]) -> Vec<(&str, &str)> {
    found
        .iter()
        .map(|(k, v)| (k.as_str(), v.as_str()))
        .collect()
}

#[test]
fn parameters_are_what_the_workload_sees() {
    let job = spec(&json!({
        "suite": "hackbench", "testbox": "dc", "my_account": "u", "script": "true", "nr_threads": 8,
        "fs2": null, "hackbench": {"mode": "process", "ipc": null, "script": "x"}, "boot_params": ["a", "b"]
    }));
    let expected = [
        ("nr_threads", "8"),
        ("hackbench.mode", "process"),
        ("hackbench.ipc", ""),
    ];
    assert_eq!(pairs(&parameters(&job)), expected);
}

/// Each submit has a key of its own: `max_run` took the jobs for different ones, and scripts saw it.
#[test]
fn an_idempotency_key_says_nothing_of_what_a_job_does() {
    let plain = spec(&json!({"suite": "s", "n": 1}));
    let keyed = spec(&json!({"suite": "s", "n": 1, "idempotency_key": "k-1"}));
    let print = |job: &Spec| fingerprint(job, &parameters(job));
    assert_eq!(print(&plain), print(&keyed));
    assert_eq!(environment(&plain), environment(&keyed));
    assert!(varying(&[&plain, &keyed]).iter().all(Vec::is_empty));
}

#[test]
fn varying_tells_the_jobs_of_a_matrix_apart() {
    let a = spec(&json!({"suite": "s", "n": 1, "same": 2, "testbox": "vm", "p": {"m": "x"}}));
    let b = spec(&json!({"suite": "s", "n": 4, "same": 2, "testbox": "dc", "p": {"m": "x"}}));
    let c = spec(&json!({"suite": "s", "n": 4, "same": 2, "testbox": "dc"}));
    let rows = varying(&[&a, &b]);
    assert_eq!(pairs(&rows[0]), [("n", "1"), ("testbox", "vm")]);
    assert_eq!(pairs(&rows[1]), [("n", "4"), ("testbox", "dc")]);
    assert_eq!(pairs(&varying(&[&b, &c])[0]), [("p.m", "x")]);
    assert!(varying(&[&a])[0].is_empty());
    assert!(varying(&[]).is_empty());
}

#[test]
fn a_script_gets_its_parameters_and_nothing_dangerous() {
    let job = spec(&json!({
        "suite": "h", "mode": "top", "hackbench": {"mode": "process", "ipc": "pipe"}, "PATH": "/x",
        "LD_PRELOAD": "x", "x": {"IFS": "y", "HOME": "z", "BASH_ENV": "e"}, "my_token": "t", "secrets": {"a": 1},
        "p": {"password": "q"}, "if role server": {"a b": true}, "9x": 1, "nul": "a\0b", "script": "s",
        "tags": ["a", 1], "maps": [{"a": 1}], "none": null, "JOB_ID": 5
    }));
    let expected = [
        ("suite", "h"),
        ("mode", "top"),
        ("_9x", "1"),
        ("tags", "a 1"),
        ("none", ""),
        ("hackbench_mode", "process"),
        ("hackbench_ipc", "pipe"),
        ("ipc", "pipe"),
        ("x_IFS", "y"),
        ("x_HOME", "z"),
        ("x_BASH_ENV", "e"),
        ("if_role_server_a_b", "true"),
        ("a_b", "true"),
    ];
    assert_eq!(pairs(&environment(&job)), expected);
}

#[test]
fn an_environment_stays_small_enough_to_start_a_program() {
    let mut job = Spec::new();
    for n in 0..1000 {
        job.insert(format!("k{n}"), Value::from("v".repeat(1000)));
    }
    job.insert(
        "huge".to_owned(),
        Value::from("v".repeat(VARIABLE_BYTES_MAX + 1)),
    );
    let bytes: usize = environment(&job)
        .iter()
        .map(|(k, v)| k.len() + v.len() + 2)
        .sum();
    assert!(bytes <= ENVIRONMENT_BYTES_MAX && bytes > ENVIRONMENT_BYTES_MAX / 2);
}
