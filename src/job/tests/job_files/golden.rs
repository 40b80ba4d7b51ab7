//! Golden tests: job files and their exact expansions. They use the project's own files, and real ones if present.

use std::{fs, path::Path};

use crate::common;
use fairlead_job::{ExpandOptions, FsSource, Spec, expand_file};
use serde_json::Value;

/// What the old splitter adds; left out on both sides.
const ADDED: [&str; 4] = ["job_origin", "testbox", "arch", "tbox_group"];

/// Expands every `NAME.yaml` that has a `NAME.json` beside it, and says which differ.
fn check(folder: &Path, include: &Path, left_out: &[&str]) -> usize {
    let options = ExpandOptions {
        include_dirs: vec![include.to_owned()],
        ..ExpandOptions::default()
    };
    let mut checked = 0;
    let mut wrong = Vec::new();
    for file in common::files(folder) {
        let expected = file.with_extension("json");
        if file.extension().is_none_or(|e| e != "yaml") || !expected.is_file() {
            continue;
        }
        checked += 1;
        let expected: Value =
            serde_json::from_slice(&fs::read(&expected).expect("read")).expect("json");
        let expected = expected.get("jobs").unwrap_or(&expected).clone();
        let expected: Vec<Spec> = serde_json::from_value(expected).expect("a list of jobs");
        match expand_file(&file, &options, &FsSource) {
            Err(error) => wrong.push(format!("{error}")),
            Ok(jobs) => {
                let (found, wanted) = (
                    common::as_set(&jobs, left_out),
                    common::as_set(&expected, left_out),
                );
                if found != wanted || jobs.len() != expected.len() {
                    let extra = found.difference(&wanted).next();
                    let missing = wanted.difference(&found).next();
                    let counts = format!("{} jobs, expected {}", jobs.len(), expected.len());
                    wrong.push(format!(
                        "{}: {counts}\n  extra: {extra:?}\n  missing: {missing:?}",
                        file.display()
                    ));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {checked} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    checked
}

#[test]
fn our_own_job_files_give_exactly_their_jobs() {
    let folder = common::own_golden();
    assert!(check(&folder, &folder.join("include"), &[]) >= 15);
}

#[test]
fn real_job_files_give_exactly_what_their_own_splitter_makes() {
    // Without real files the project's own are the whole of it: see the test above.
    if let Some(corpus) = common::corpus() {
        assert!(check(&corpus.join("golden"), &corpus.join("include"), &ADDED) >= 100);
    }
}
