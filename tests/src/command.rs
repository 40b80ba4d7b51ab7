//! The `fairlead` command, run to its end.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use crate::{reaper, settings};

/// A command that has ended.
#[derive(Debug, Clone)]
pub struct Ran {
    /// Command line, for messages.
    pub asked: String,
    /// Exit code. -1: a signal ended it.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Ran {
    /// Returns standard output. The exit code must be the expected one.
    ///
    /// # Panics
    /// Panics if it is another one.
    pub fn expect_code(&self, code: i32) -> &str {
        assert_eq!(self.code, code, "{}\n{}{}", self.asked, self.out, self.err);
        &self.out
    }
}

/// Runs `fairlead` in `folder`, with no configuration but `variables`, and waits for its end.
pub fn fairlead(folder: &Path, variables: &[(&str, &str)], words: &[&str]) -> Ran {
    let output = Command::new(settings::binary("fairlead"))
        .args(words)
        .current_dir(folder)
        .env("HOME", folder)
        .env("XDG_CONFIG_HOME", folder.join("config"))
        .envs(variables.iter().copied())
        .envs([reaper::variable()])
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("fairlead {words:?}: {error}"));
    Ran {
        asked: format!("fairlead {}", words.join(" ")),
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
