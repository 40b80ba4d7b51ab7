//! The reaper of this process: processes and folders of a test end with it, also when it is killed.

use std::ffi::OsString;

use fairlead_reaper::Reaper;
use tempfile::TempDir;

/// Returns the variable for each command of a test.
pub fn variable() -> (&'static str, OsString) {
    Reaper::of_process().variable()
}

/// Returns the name for a process that hides its environment.
pub fn named(program: &str) -> String {
    format!("{program} {}", Reaper::of_process().mark())
}

/// Creates a temporary folder whose name begins with this prefix.
pub fn folder(prefix: &str) -> TempDir {
    let folder =
        TempDir::with_prefix(prefix).unwrap_or_else(|error| panic!("a temporary folder: {error}"));
    let told = Reaper::of_process().removes(folder.path());
    told.unwrap_or_else(|error| panic!("{}: {error}", folder.path().display()));
    folder
}
