//! The programs of `tests/dashboard`, which look at a lab in a browser.

use std::{
    fs::File,
    path::PathBuf,
    process::{Command, Stdio},
};

use rustix::fs::{FlockOperation, flock};

use crate::{reaper, settings};

/// Returns the folder of the programs, with the libraries that they need. One test at a time installs them.
///
/// # Panics
/// Panics if they cannot be installed.
pub fn folder() -> PathBuf {
    let folder = settings::project().join("tests/dashboard");
    let lock = File::open(folder.join("package-lock.json"))
        .unwrap_or_else(|error| panic!("package-lock.json: {error}"));
    flock(&lock, FlockOperation::LockExclusive).unwrap_or_else(|error| panic!("a lock: {error}"));
    if !folder.join("node_modules/.package-lock.json").exists() {
        let output = Command::new("npm")
            .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
            .current_dir(&folder)
            .output()
            .unwrap_or_else(|error| panic!("npm: {error}"));
        let problems = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "npm ci: {problems}");
    }
    folder
}

/// Returns a command of Node with these arguments, for the lab at this address.
pub fn node(server: &str, words: &[&str]) -> Command {
    let mut command = Command::new("node");
    command
        .args(words)
        .current_dir(folder())
        .env("FAIRLEAD_URL", server)
        .envs([reaper::variable()])
        .stdin(Stdio::null());
    command
}
