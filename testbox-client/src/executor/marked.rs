//! Finds and kills a job's processes outside its process group.
//!
//! Every process of a job inherits a mark in its environment, a uuid of the run. So this finds daemons in sessions of
//! their own, and processes that outlived the agent. A process escapes if it wipes its environment *and* leaves its
//! group. Its control group finds it, where the agent can make one.

use std::{
    fs,
    io::{self, Read},
};

use rustix::process::Pid;

use crate::isolation::kill::{await_end, kill_those, processes};

/// Environment variable with the mark of a run.
pub(crate) const MARK: &str = "FAIRLEAD_RUN";
/// Maximum length of an environment that is read, bytes. The kernel starts no program with a larger one. The limit is
/// needed because a process can declare any part of its memory as its environment.
const ENVIRON_BYTES_MAX: u64 = 6 << 20;
/// Maximum number of passes over all processes. Each pass catches processes that were started during the last.
const ROUNDS_MAX: u32 = 20;

/// Kills all processes with the mark `run`. Returns the number found. Blocks for a few ms.
pub(crate) fn kill_marked(run: &str) -> io::Result<usize> {
    let mark = format!("{MARK}={run}");
    let is_marked = |pid: Pid| has_mark(pid, mark.as_bytes());
    let mut killed = 0;
    for _ in 0..ROUNDS_MAX {
        let mut found = processes()?;
        found.retain(|pid| is_marked(*pid));
        if found.is_empty() {
            break;
        }
        let handles = kill_those(found, is_marked);
        await_end(&handles);
        killed += handles.len();
    }
    Ok(killed)
}

/// Returns true if a process has the mark. Ended processes have no environment, so they never match.
fn has_mark(pid: Pid, mark: &[u8]) -> bool {
    let file = format!("/proc/{}/environ", pid.as_raw_nonzero());
    let Ok(file) = fs::File::open(file) else {
        return false;
    };
    let mut environ = Vec::new();
    let read = file.take(ENVIRON_BYTES_MAX).read_to_end(&mut environ);
    read.is_ok() && environ.split(|byte| *byte == 0).any(|value| value == mark)
}
