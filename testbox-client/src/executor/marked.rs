//! Finds and kills a job's processes outside its process group.
//!
//! Every process of a job inherits a mark in its environment, a uuid of the run. So this finds daemons in sessions of
//! their own, and processes that outlived the agent. A process escapes if it wipes its environment *and* leaves its
//! group. Only a control group could prevent that.

use std::{
    fs,
    io::{self, Read},
    path::Path,
};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// The variable that carries the mark.
pub(crate) const MARK: &str = "FAIRLEAD_RUN";
/// Most that is read of an environment, bytes: the kernel starts no program with a larger one, and a process can say of any
/// part of its memory that it is its environment.
const ENVIRON_BYTES_MAX: u64 = 6 << 20;
/// How often the processes are looked through: each round catches what was started during the last.
const ROUNDS_MAX: u32 = 20;

/// Kills all processes that carry `run`. Returns how many were found. Blocks: a few ms.
pub(crate) fn kill_marked(run: &str) -> io::Result<usize> {
    let mark = format!("{MARK}={run}");
    let mut killed = 0;
    for _ in 0..ROUNDS_MAX {
        let found = marked(mark.as_bytes())?;
        if found.is_empty() {
            break;
        }
        killed += found
            .into_iter()
            .filter(|pid| kill_if_marked(*pid, mark.as_bytes()))
            .count();
    }
    Ok(killed)
}

fn marked(mark: &[u8]) -> io::Result<Vec<Pid>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let pid = name.to_str().and_then(|name| name.parse().ok());
        if let Some(pid) = pid.and_then(Pid::from_raw)
            && has_mark(pid, mark)
        {
            found.push(pid);
        }
    }
    Ok(found)
}

/// A process that has ended has no environment, so the dead are never found.
fn has_mark(pid: Pid, mark: &[u8]) -> bool {
    let file = Path::new("/proc")
        .join(pid.as_raw_nonzero().to_string())
        .join("environ");
    let Ok(file) = fs::File::open(file) else {
        return false;
    };
    let mut environ = Vec::new();
    let read = file.take(ENVIRON_BYTES_MAX).read_to_end(&mut environ);
    read.is_ok() && environ.split(|byte| *byte == 0).any(|value| value == mark)
}

/// Looks again behind a handle, so that a number that was given to another process meanwhile is safe.
fn kill_if_marked(pid: Pid, mark: &[u8]) -> bool {
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else {
        return false;
    };
    has_mark(pid, mark) && pidfd_send_signal(handle, Signal::KILL).is_ok()
}
