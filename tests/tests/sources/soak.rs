//! Checks the command line of `scripts/soak`, which nothing else runs.

use std::process::{Command, Output};

use fairlead_tests::settings::project;

fn soak(words: &[&str]) -> Output {
    let mut command = Command::new(project().join("scripts/soak"));
    let output = command.args(words).output();
    output.unwrap_or_else(|error| panic!("scripts/soak: {error}"))
}

/// Returns the plan of `--dry-run` for a line.
fn planned(words: &[&str], line: &str) -> String {
    let output = soak(words);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}");
    let mut lines = said.lines().filter_map(|all| all.split_once(' '));
    let found = lines.find_map(|(name, plan)| (name == line).then(|| plan.trim().to_owned()));
    found.unwrap_or_else(|| panic!("no {line}: {said}"))
}

#[test]
fn a_soak_says_what_it_would_run() {
    assert!(planned(&["--dry-run"], "seeds").starts_with("30 min"));
    assert!(planned(&["--dry-run", "2"], "faults").starts_with("36 min"));
    assert!(planned(&["--dry-run", "0.5"], "fuzz").starts_with("6 min"));
    let kept = planned(&["--dry-run", "--keep", "found"], "keep");
    assert_eq!(kept, "found");
    assert!(!project().join("found").exists(), "it made a folder");
}

#[test]
fn a_soak_of_no_time_is_refused() {
    for words in [
        &["0"][..],
        &["0.01"],
        &["an hour"],
        &["--keep"],
        &["--fast"],
    ] {
        let output = soak(words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains("hint: "), "{words:?}: {said}");
    }
}
