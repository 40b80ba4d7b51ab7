//! The command line of `fairlead-measure`: help and errors come before anything is started.
//!
//! The program runs alone in a folder, without any variable and without a search path. So it can start neither
//! schedulers nor other programs.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
};

use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_fairlead-measure");

/// The program in an otherwise empty folder.
struct Alone(TempDir);

impl Alone {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::copy(PROGRAM, folder.path().join("fairlead-measure")).unwrap();
        Self(folder)
    }

    fn run(&self, words: &[&str]) -> Output {
        Command::new(self.0.path().join("fairlead-measure"))
            .args(words)
            .env_clear()
            .env("PATH", self.0.path())
            .current_dir(self.0.path())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// Checks that it ends with this code and message, and leaves nothing.
    fn says(&self, words: &[&str], code: i32, said: &str) {
        let ran = self.run(words);
        let (out, err) = (ran.stdout, ran.stderr);
        let both = String::from_utf8([out, err].concat()).unwrap();
        assert_eq!(ran.status.code(), Some(code), "{words:?}: {both}");
        assert!(both.contains(said), "{words:?}: {both}");
        let there = fs::read_dir(self.0.path()).unwrap().count();
        assert_eq!(there, 1, "{words:?} left files");
        assert_eq!(children_of_this_process(), 0, "{words:?} left a process");
    }
}

/// Returns the number of children of this process. Processes that the program leaves behind become its children.
fn children_of_this_process() -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let children = |task: &Path| fs::read_to_string(task.join("children")).unwrap_or_default();
    let all = tasks.map(|task| children(&task.unwrap().path()));
    all.map(|ids| ids.split_whitespace().count()).sum()
}

#[test]
fn help_and_mistakes_start_nothing() {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
    let alone = Alone::new();
    let command = fairlead_measure::command();
    command.clone().debug_assert();
    alone.says(&["--help"], 0, "Usage: fairlead-measure");
    alone.says(&[], 2, "Usage: fairlead-measure");
    alone.says(&["idel"], 2, "idle");
    let mut all = 0;
    for name in command.get_subcommands().map(clap::Command::get_name) {
        alone.says(
            &[name, "--help"],
            0,
            &format!("Usage: fairlead-measure {name}"),
        );
        alone.says(&[name, "--hepl"], 2, "--hepl");
        alone.says(
            &[name, "one", "word", "or", "more", "too", "many"],
            2,
            "error:",
        );
        all += 1;
    }
    assert!(all > 10, "{all} subcommands");
    // A measurement cannot get far where nothing can be started. Help would fail as well if it began one.
    assert_eq!(alone.run(&["crowd"]).status.code(), Some(101));
}
