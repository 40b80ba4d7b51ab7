//! Runs the built `fairlead` with its own environment, without the machine's configuration.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::{
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

/// A home folder that is removed at the end.
pub(crate) struct Lab {
    home: tempfile::TempDir,
}

impl Lab {
    pub(crate) fn new() -> Self {
        Self {
            home: tempfile::tempdir().expect("a temporary folder"),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.home.path()
    }

    /// Writes a file below the home folder.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(&path, text).expect("a file");
        path
    }

    /// Returns the command with these arguments, in the home folder.
    pub(crate) fn fairlead(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fairlead"));
        command
            .args(args)
            .current_dir(self.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path())
            .env("USER", "tester")
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.fairlead(args).output().expect("fairlead starts"))
    }
}

/// Result of a command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).expect("text"),
            err: String::from_utf8(output.stderr).expect("text"),
        }
    }

    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}
