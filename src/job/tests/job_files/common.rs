//! Shared by the tests of job files: paths of the files, and a comparison of two sets of jobs.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value};

/// The folder of real job files that the environment names, if it does.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place of these tests that reads the environment"
)]
pub(crate) fn corpus() -> Option<PathBuf> {
    std::env::var("FAIRLEAD_CORPUS")
        .ok()
        .filter(|folder| !folder.is_empty())
        .map(PathBuf::from)
}

/// The project's own job files with their expected jobs.
pub(crate) fn own_golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// All files of a folder, sorted.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<PathBuf> = entries
        .map(|e| e.expect("entry").path())
        .filter(|p| p.is_file())
        .collect();
    files.sort();
    files
}

/// Jobs as a set: key order has no meaning, and what the old tools add is left out.
pub(crate) fn as_set(jobs: &[Map<String, Value>], left_out: &[&str]) -> BTreeSet<String> {
    let canonical = |job: &Map<String, Value>| {
        let kept = job
            .iter()
            .filter(|(key, _)| !left_out.contains(&key.as_str()));
        sorted(&Value::Object(
            kept.map(|(k, v)| (k.clone(), v.clone())).collect(),
        ))
        .to_string()
    };
    jobs.iter().map(canonical).collect()
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            keys.into_iter()
                .map(|k| (k.clone(), sorted(&map[k])))
                .collect()
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

/// How many cases a fuzz test runs, when the environment says.
#[expect(
    clippy::disallowed_methods,
    reason = "as above: tests read the environment only here"
)]
pub(crate) fn fuzz_cases() -> Option<u32> {
    std::env::var("FAIRLEAD_FUZZ_CASES")
        .ok()
        .map(|n| n.parse().expect("FAIRLEAD_FUZZ_CASES is a number"))
}
