//! One process of this machine: independent of the launcher, and named by its id and its start time.

use std::{
    fs, io, os::fd::OwnedFd, os::unix::process::CommandExt, process::Command, time::Duration,
};

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal, waitpid,
};
use serde::{Deserialize, Serialize};

/// Kernel ticks of a second in `/proc`, on every Linux.
const TICKS_S: u64 = 100;

/// A process that was started, whether or not it still runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its id, which the system may have given to another process since.
    pub pid: i32,
    /// When it was born: the id of the machine's boot, and clock ticks since then. No two processes have
    /// the same id and birth.
    pub born: String,
}

/// A line of `/proc/PID/stat`, as far as it is needed.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    state: char,
    /// What all its threads together have used so far.
    cpu_ticks: u64,
    start_ticks: u64,
}

impl Process {
    /// Starts `command` in a process group of its own: a Ctrl-C at the launcher does not reach it. If it must end with
    /// the launcher, the command has the variable of a reaper.
    ///
    /// # Errors
    /// The system's.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let child = command.process_group(0).spawn()?;
        let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
        let stat = stat(pid).ok_or_else(|| io::Error::other("the process ended at once"))?;
        Ok(Self {
            pid,
            born: birth(&stat)?,
        })
    }

    /// A process that something else started; `None` when it does not run.
    pub fn find(pid: i32) -> Option<Self> {
        let stat = stat(pid)?;
        let born = birth(&stat).ok()?;
        let found = Self { pid, born };
        found.is_running().then_some(found)
    }

    /// Whether it still runs. One that has ended and was not asked after by its parent does not.
    pub fn is_running(&self) -> bool {
        self.state()
            .is_some_and(|state| !matches!(state, 'Z' | 'X'))
    }

    /// Whether all of it has ended: its first thread may be seen to end while others still hold its port.
    pub(crate) fn is_gone(&self) -> bool {
        let threads = fs::read_dir(format!("/proc/{}/task", self.pid));
        !self.is_running() && threads.map_or(0, Iterator::count) <= 1
    }

    /// Whether it is stopped by a signal.
    pub fn is_paused(&self) -> bool {
        self.state() == Some('T')
    }

    /// Processor time that it has used so far, all its threads together; none when it does not run.
    pub fn cpu(&self) -> Duration {
        let ticks = self.stat().map_or(0, |stat| stat.cpu_ticks);
        Duration::from_millis(ticks.saturating_mul(1_000 / TICKS_S))
    }

    /// Memory that it has in RAM now, KiB; 0 when it does not run.
    pub fn resident_kib(&self) -> u32 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
        kib.filter(|_| self.is_running()).unwrap_or(0)
    }

    fn state(&self) -> Option<char> {
        self.stat().map(|stat| stat.state)
    }

    /// What the system says of this very process.
    fn stat(&self) -> Option<Stat> {
        let stat = stat(self.pid)?;
        (birth(&stat).ok()? == self.born).then_some(stat)
    }

    /// Sends a signal. Returns false when it does not run any more.
    ///
    /// # Errors
    /// The system's, for example when the process is another user's.
    pub fn signal(&self, signal: Signal) -> io::Result<bool> {
        let Some(handle) = self.handle()? else {
            return Ok(false);
        };
        match pidfd_send_signal(handle, signal) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::SRCH) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// A handle that means this very process: the id is looked at after it was opened.
    fn handle(&self) -> io::Result<Option<OwnedFd>> {
        let Some(pid) = Pid::from_raw(self.pid) else {
            return Ok(None);
        };
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(handle) => Ok(self.is_running().then_some(handle)),
            Err(rustix::io::Errno::SRCH) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Forgets it, if it was our own child and has ended.
    pub fn reap(&self) {
        if let Some(pid) = Pid::from_raw(self.pid) {
            // Nobody's child, or not ended: nothing to forget.
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}

fn birth(stat: &Stat) -> io::Result<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(format!("{}:{}", boot.trim(), stat.start_ticks))
}

fn stat(pid: i32) -> Option<Stat> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The name in brackets may hold anything, brackets and spaces too: fields are counted behind it.
fn parse_stat(text: &str) -> Option<Stat> {
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?.chars().next()?;
    let user: u64 = fields.nth(10)?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    let start_ticks = fields.nth(6)?.parse().ok()?;
    Some(Stat {
        state,
        cpu_ticks: user.saturating_add(system),
        start_ticks,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endless() -> Command {
        let mut command = Command::new("tail");
        command.args(["-f", "/dev/null"]);
        command
    }

    fn wait_for(what: &str, probe: impl Fn() -> bool) {
        let deadline = crate::clock::now() + Duration::from_secs(20);
        while !probe() {
            assert!(crate::clock::now() < deadline, "{what}");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_line_of_stat_is_read_whatever_the_name() {
        let line = "7 (a) b) S 1 7 7 0 -1 4194560 1 0 0 0 30 12 0 0 20 0 1 0 4711 0 0";
        let stat = Stat {
            state: 'S',
            cpu_ticks: 42,
            start_ticks: 4711,
        };
        assert_eq!(parse_stat(line), Some(stat));
        assert_eq!(parse_stat("7 (a) S 1"), None);
    }

    #[test]
    fn a_process_is_paused_resumed_and_killed() {
        let process = Process::start(&mut endless()).unwrap();
        assert!(process.is_running() && !process.is_paused());
        assert_eq!(Process::find(process.pid), Some(process.clone()));
        assert!(process.signal(Signal::STOP).unwrap());
        wait_for("it stops", || process.is_paused());
        assert!(process.is_running(), "a paused process is not gone");
        assert!(process.signal(Signal::CONT).unwrap());
        wait_for("it goes on", || !process.is_paused());
        assert!(process.signal(Signal::KILL).unwrap());
        wait_for("it ends", || !process.is_running());
        process.reap();
        assert!(!process.signal(Signal::TERM).unwrap());
    }

    #[test]
    fn a_process_with_a_recycled_id_is_never_signalled() {
        let process = Process::start(&mut endless()).unwrap();
        let earlier = Process {
            born: format!("{}0", process.born),
            ..process.clone()
        };
        assert!(!earlier.is_running());
        assert!(!earlier.signal(Signal::KILL).unwrap());
        assert!(process.is_running());
        process.signal(Signal::KILL).unwrap();
        wait_for("it ends", || !process.is_running());
        process.reap();
    }
}
