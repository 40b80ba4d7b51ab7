//! Kills processes by handles, so that a number that was given to another process meanwhile is safe. It never waits for
//! long: who is killed may have been stopped, but needs nobody's consent to die.

use std::{
    fs, io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Time for which the end of a killed process is awaited, milliseconds.
const END_MAX_MS: u16 = 1_000;

/// Returns all processes that this one can see.
pub(crate) fn processes() -> io::Result<Vec<Pid>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let pid = name.to_str().and_then(|name| name.parse().ok());
        found.extend(pid.and_then(Pid::from_raw));
    }
    Ok(found)
}

/// Kills those of the found processes for which `is_one` still holds. Returns their handles.
pub(crate) fn kill_those(found: Vec<Pid>, is_one: impl Fn(Pid) -> bool) -> Vec<OwnedFd> {
    let kill = |pid: Pid| {
        let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        (is_one(pid) && pidfd_send_signal(&handle, Signal::KILL).is_ok()).then_some(handle)
    };
    found.into_iter().filter_map(kill).collect()
}

/// Waits until the processes have ended. It gives up after the first one that does not end.
pub(crate) fn await_end(killed: &[OwnedFd]) {
    let _ = killed.iter().all(|handle| has_ended(handle.as_fd()));
}

/// Returns true if a process ends within a second.
pub(crate) fn has_ended(handle: BorrowedFd<'_>) -> bool {
    let mut ends = [PollFd::new(handle, PollFlags::POLLIN)];
    // A signal ends the wait early, and the caller checks again.
    poll(&mut ends, PollTimeout::from(END_MAX_MS)).is_ok_and(|ended| ended > 0)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_stopped_process_ends_and_one_that_is_no_longer_meant_lives() {
        let sleep = || {
            let mut command = Command::new("sleep");
            command.arg("1000").stdin(Stdio::null()).spawn().unwrap()
        };
        let (mut meant, mut other) = (sleep(), sleep());
        let [pid, spared] = [&meant, &other].map(Pid::from_child);
        rustix::process::kill_process(pid, Signal::STOP).unwrap();
        assert!(processes().unwrap().contains(&pid));
        let killed = kill_those(vec![pid, spared], |found| found == pid);
        assert_eq!(killed.len(), 1);
        assert!(has_ended(killed[0].as_fd()));
        assert_eq!(other.try_wait().unwrap(), None);
        other.kill().unwrap();
        meant.wait().unwrap();
        other.wait().unwrap();
    }
}
