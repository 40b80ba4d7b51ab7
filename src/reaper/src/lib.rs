//! Ends what a program has started, however that program itself ends.
//!
//! A [`Reaper`] is a small process beside the program. It waits for the end of its input, which the program holds and no
//! other process has. So it sees an orderly end, a panic, a signal and `kill -9` alike. Then it kills all processes that
//! carry its mark, stops servers, and removes folders.
//!
//! The mark is a variable in the environment of each command that the program starts. Processes that these start
//! inherit it, also those that no longer belong to any parent. A program that another one started so adds its own mark.
//! A process that hides its environment carries the mark in its name ([`Reaper::mark`]).
//!
//! Everything in `tests`, `scheduler-cluster` and the agent's tests that starts processes uses it. `tests/tests/tidy.rs`
//! checks that.

use std::{
    ffi::OsString,
    hash::{BuildHasher, RandomState},
    io::{self, Write},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Stdio},
    sync::OnceLock,
};

/// Variable with the marks: that of this program, after those of the programs that started it.
const VARIABLE: &str = "FAIRLEAD_REAPER";
const SCRIPT: &str = include_str!("reaper.sh");

/// Ends everything that its program has started, when it is dropped or the program ends.
#[derive(Debug)]
pub struct Reaper {
    process: Child,
    mark: String,
}

impl Reaper {
    /// Returns the reaper of this process. It ends nothing before the process ends.
    ///
    /// # Panics
    /// `sh` cannot be started.
    pub fn of_process() -> &'static Self {
        static OWN: OnceLock<Reaper> = OnceLock::new();
        OWN.get_or_init(|| Self::start().unwrap_or_else(|error| panic!("a reaper: {error}")))
    }

    /// Starts a reaper that has nothing to end yet.
    ///
    /// # Errors
    /// `sh` cannot be started.
    pub fn start() -> io::Result<Self> {
        let own = std::process::id();
        let mark = format!("reaped-{own:x}-{:016x}", RandomState::new().hash_one(own));
        // The process has its own group, so that a Ctrl-C does not reach it. It has no marks of others, so it ends
        // after all of them.
        let process = Command::new("sh")
            .args(["-c", SCRIPT, "fairlead-reaper"])
            .env_remove(VARIABLE)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let reaper = Self { process, mark };
        reaper.tell(&[reaper.mark.as_ref()])?;
        Ok(reaper)
    }

    /// Returns the variable for commands whose processes this reaper ends.
    pub fn variable(&self) -> (&'static str, OsString) {
        let mut marks = std::env::var_os(VARIABLE).unwrap_or_default();
        if !marks.is_empty() {
            marks.push(" ");
        }
        marks.push(&self.mark);
        (VARIABLE, marks)
    }

    /// Returns a mark for the command line of a process that hides its environment.
    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// Makes the reaper remove this folder with its contents at the end.
    ///
    /// # Errors
    /// The reaper does not run, or the path has a tab or a line break.
    pub fn removes(&self, folder: &Path) -> io::Result<()> {
        self.tell(&["remove".as_ref(), folder])
    }

    /// Makes the reaper stop the Elasticsearch in this folder at the end, by the project's script. Its nodes may be
    /// containers, which have no mark.
    ///
    /// # Errors
    /// The reaper does not run, or a path has a tab or a line break.
    pub fn stops(&self, script: &Path, folder: &Path) -> io::Result<()> {
        self.tell(&["stop".as_ref(), script, folder])
    }

    /// Ends the reaper, and leaves everything unchanged.
    ///
    /// # Errors
    /// The reaper does not run.
    pub fn keep(self) -> io::Result<()> {
        self.tell(&["keep".as_ref()])
    }

    fn tell(&self, words: &[&Path]) -> io::Result<()> {
        let mut line = Vec::new();
        for word in words {
            let word = word.as_os_str().as_encoded_bytes();
            if word.iter().any(|byte| b"\t\n".contains(byte)) {
                return Err(io::Error::other("a path with a tab or a line break"));
            }
            line.extend_from_slice(word);
            line.push(b'\t');
        }
        line.pop();
        line.push(b'\n');
        let mut input = self.process.stdin.as_ref();
        let input = input
            .as_mut()
            .ok_or_else(|| io::Error::other("the reaper has ended"))?;
        input.write_all(&line)
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        // The input ends, so the process does its work and ends.
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests;
