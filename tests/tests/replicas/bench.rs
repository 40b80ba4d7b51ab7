//! Tests that `fairlead-bench` works, without a judgement of speed.

use std::{collections::BTreeSet, process::Command};

use fairlead_tests::{scheduler::free_ports, settings};
use serde_json::Value;
use tempfile::TempDir;

#[test]
fn a_small_run_measures_all_that_a_large_one_does() {
    let folder = TempDir::with_prefix("fairlead-bench-").expect("a temporary folder");
    let elasticsearch = settings::elasticsearch().remove(0);
    let output = Command::new(settings::binary("fairlead-bench"))
        .args([
            "--dir",
            "run",
            "--rounds",
            "1",
            "--waiting",
            "20,40",
            "--jobs",
            "30",
        ])
        .args([
            "--agents",
            "1,64",
            "--receipts",
            "2",
            "--warm-up",
            "0",
            "--idle",
            "1",
            "--replicas",
            "1,2",
            "--json",
        ])
        .args(["--port", &free_ports(3).to_string()])
        .args(["--elasticsearch", &elasticsearch])
        .args(["--report", "performance.md"])
        .args(["--finished", "1200"])
        .args(["--engine-jobs", "300,600", "--engine-hosts", "10"])
        .args(["--engine-names", "2000"])
        .args(["--", "--cache-jobs-max", "64"])
        .current_dir(folder.path())
        .output()
        .expect("the program");
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{err}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let figures = report["figures"].as_array().expect("figures");
    // For both numbers of waiting jobs, for two replicas, and beside finished jobs there are: four ways to submit, one
    // for each number of agents, the claims' cost, two for receipts and one for Elasticsearch beside them. Others are
    // the growth between the numbers of waiting jobs, and two of the engine for each mix of jobs, except one where none
    // fits.
    let engine = 3 * 2 - 1;
    let is_layout = |figure: &&Value| figure["what"].to_string().contains("bodies of");
    let (layouts, others): (Vec<&Value>, Vec<&Value>) = figures.iter().partition(is_layout);
    assert_eq!(others.len(), 4 * (4 + 2 + 1 + 3) + 1 + engine, "{others:?}");
    // The report has both other layouts of a job's documents, beside that of the store.
    let of = |layout: &str| {
        let each = layouts.iter();
        each.filter(|figure| figure["what"].to_string().contains(layout))
            .count()
    };
    assert!(of("both documents in one index:") > 0, "{layouts:?}");
    assert_eq!(of("both documents in one index:"), of(", one document:"));
    // The costs include three of the embedded store, the engine alone, and two of each flood of names.
    let costs = report["costs"].as_array().expect("costs");
    assert_eq!(costs.len(), 4 * 6 + 3 + 3 * 3 + 1 + 3 * 2, "{costs:?}");
    for figure in figures {
        let what = figure["what"].as_str().expect("its name");
        let rounds = figure["fairlead"]["rounds"].as_array().expect("rounds");
        assert_eq!(rounds.len(), 1, "{what}");
        // So little work may take no measurable processor time, and there may be no merges.
        let is_cost = what.contains("processor time") || what.contains("merges");
        let measured = rounds.iter().filter_map(Value::as_f64);
        assert!(
            measured.clone().all(|value| is_cost || value > 0.0),
            "{what}: {rounds:?}"
        );
    }
    let left = folder.path().read_dir().expect("the folder");
    let left: BTreeSet<String> = left
        .map(|entry| entry.expect("an entry").file_name().into_string())
        .map(|name| name.expect("a name"))
        .collect();
    let plots = ["agents", "replicas", "waiting"].map(|by| format!("performance-{by}.svg"));
    let wanted = plots.into_iter().chain(["performance.md".to_owned()]);
    assert_eq!(left, wanted.collect(), "it cleans up");
}

#[test]
fn what_it_is_given_for_the_scheduler_gets_there() {
    let folder = TempDir::with_prefix("fairlead-bench-").expect("a temporary folder");
    let elasticsearch = settings::elasticsearch().remove(0);
    let output = Command::new(settings::binary("fairlead-bench"))
        .args(["--elasticsearch", &elasticsearch])
        .args(["--port", &free_ports(1).to_string()])
        .args(["--", "--cache-jobs-max", "0"])
        .current_dir(folder.path())
        .output()
        .expect("the program");
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{err}");
    assert!(err.contains("invalid value '0'"), "{err}");
}
