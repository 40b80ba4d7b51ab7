//! Users of jobs: a reserved range of user ids, one for each running job.
//!
//! A lock that all agents of the machine share reserves a user, only while no process of that user lives. When the user
//! is returned, all its processes are killed, and its files in world-writable folders are removed.

use std::{
    fmt,
    fs::{self, DirBuilder},
    io,
    os::{
        fd::AsFd,
        unix::fs::{DirBuilderExt, MetadataExt},
    },
    path::{Path, PathBuf},
    str::FromStr,
};

use parking_lot::Mutex;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::{
    children,
    kill::{await_end, has_ended, kill_those, processes},
    launcher,
};
use crate::{BadConfig, lock::Lock, remove_tree::remove_tree};

/// Default range. Neither distributions nor systemd assign these ids. Its size is the maximum number of jobs of an
/// agent.
const AUTO: UserRange = UserRange {
    first: 60_800,
    last: 61_055,
};
/// Folder of the trial job at the start.
const TRIAL: &str = "trial";
/// Folder with locks of the users in use, shared by all agents of the machine.
const LOCKS: &str = "/run/fairlead-testbox";
/// World-writable folders that jobs share. Files left there would belong to the next job with the same user.
const SHARED: [&str; 2] = ["/tmp", "/var/tmp"];
/// Maximum number of rounds that kill the processes of a user. A round takes at most two seconds.
const KILLS_MAX: u32 = 30;

/// User ids from `first` to `last`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserRange {
    first: u32,
    last: u32,
}

impl UserRange {
    /// Returns the number of jobs that can run at once.
    pub(crate) fn len(self) -> u32 {
        (self.last - self.first).saturating_add(1)
    }
}

impl fmt::Display for UserRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

/// Users that jobs run as.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum JobUsers {
    /// The agent's own user, for all jobs.
    #[default]
    Agent,
    /// One user for each job from a range that no distribution uses, if the agent can do that. Otherwise as
    /// [`JobUsers::Agent`].
    Auto,
    /// One user for each job from this range. An agent that cannot do that does not start.
    Range(UserRange),
}

impl JobUsers {
    pub(crate) fn range(self) -> Option<UserRange> {
        match self {
            Self::Agent => None,
            Self::Auto => Some(AUTO),
            Self::Range(range) => Some(range),
        }
    }
}

impl FromStr for JobUsers {
    type Err = BadConfig;

    /// Parses `auto`, `none` or `FIRST-LAST`.
    fn from_str(text: &str) -> Result<Self, BadConfig> {
        match text {
            "auto" => return Ok(Self::Auto),
            "none" => return Ok(Self::Agent),
            _ => {}
        }
        let ends = text.split_once('-').and_then(|(first, last)| {
            let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
            // The kernel uses the last number for "no user".
            (first > 0 && first <= last && last < u32::MAX).then_some(UserRange { first, last })
        });
        ends.map(Self::Range).ok_or_else(|| {
            BadConfig(format!(
                "job user '{text}' is not a range of user ids (hint: auto, none, or FIRST-LAST as in 60800-61055)"
            ))
        })
    }
}

/// Users for the jobs of an agent.
#[derive(Debug)]
pub(crate) struct Users {
    range: UserRange,
    locks: PathBuf,
    /// Position of the next user in the range. A user rests as long as possible before another job gets it.
    next: Mutex<u32>,
}

/// User of one job.
#[derive(Debug)]
pub(crate) struct JobUser {
    pub(crate) uid: u32,
    _lock: Lock,
}

impl Users {
    pub(crate) fn new(range: UserRange) -> Self {
        Self {
            range,
            locks: PathBuf::from(LOCKS),
            next: Mutex::new(0),
        }
    }

    /// Checks that a job can run as one of the users. The error names the missing condition. Blocks.
    pub(crate) fn try_out(&self, work_dir: &Path) -> io::Result<()> {
        if !rustix::process::geteuid().is_root() {
            return Err(io::Error::other("the agent is not root"));
        }
        let user = self.take()?;
        let folder = work_dir.join(TRIAL);
        remove_tree(&folder)?;
        DirBuilder::new().mode(0o700).create(&folder)?;
        rustix::fs::chown(
            &folder,
            Some(rustix::process::Uid::from_raw(user.uid)),
            None,
        )?;
        let outcome = launcher::try_out(user.uid, &folder);
        remove_tree(&folder)?;
        outcome
    }

    /// Takes a free user. Blocks.
    pub(crate) fn take(&self) -> io::Result<JobUser> {
        for _ in 0..self.range.len() {
            let uid = {
                let mut next = self.next.lock();
                let uid = self.range.first + *next % self.range.len();
                *next = next.wrapping_add(1) % self.range.len();
                uid
            };
            if let Some(lock) = lock(&self.locks, uid)?
                && processes_of(uid)?.is_empty()
            {
                return Ok(JobUser { uid, _lock: lock });
            }
        }
        Err(io::Error::other(format!(
            "none of the users {} is free",
            self.range
        )))
    }
}

impl JobUser {
    /// Kills all its processes, and removes its files from world-writable folders. Blocks.
    pub(crate) fn clear(&self) -> io::Result<()> {
        kill_all(self.uid)?;
        for folder in SHARED {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                if entry.metadata().is_ok_and(|about| about.uid() == self.uid) {
                    // A file that cannot be removed must not delay the job's end.
                    let _ = remove_tree(&entry.path());
                }
            }
        }
        Ok(())
    }
}

/// Clears the user of a job that an earlier agent left, unless another agent's job has it by now. Blocks.
pub(crate) fn clear_left(uid: u32) -> io::Result<()> {
    match lock(Path::new(LOCKS), uid)? {
        Some(lock) => JobUser { uid, _lock: lock }.clear(),
        None => Ok(()),
    }
}

/// Locks a user. `None`: it is in use.
fn lock(locks: &Path, uid: u32) -> io::Result<Option<Lock>> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(locks)?;
    Lock::take(&locks.join(uid.to_string()))
}

fn kill_all(uid: u32) -> io::Result<()> {
    for _ in 0..KILLS_MAX {
        // Root sends the kills, and no process of the user can stop root.
        let killed = kill_those(processes_of(uid)?, |pid| lives_as(pid, uid));
        if killed.is_empty() {
            return Ok(());
        }
        await_end(&killed);
        if !processes_of(uid)?.is_empty() {
            kill_at_once(uid)?;
        }
    }
    Err(io::Error::other(format!(
        "processes of user {uid} survive SIGKILL"
    )))
}

/// Kills all processes of a user at one moment, for processes that multiply faster than they are found. They may stop
/// the killer, which runs as their user. In that case it is killed as well.
fn kill_at_once(uid: u32) -> io::Result<()> {
    let mut command = launcher::kill_command(uid);
    let (mut killer, own) = children::start(|| command.spawn(), |child| Some(child.id()))?;
    let handle = pidfd_open(Pid::from_child(&killer), PidfdFlags::empty())?;
    if !has_ended(handle.as_fd()) {
        killer.kill()?;
    }
    killer.wait()?;
    drop(own);
    Ok(())
}

/// Returns the living processes of a user.
fn processes_of(uid: u32) -> io::Result<Vec<Pid>> {
    let mut found = processes()?;
    found.retain(|pid| lives_as(*pid, uid));
    Ok(found)
}

/// Returns true if the process lives and has this user as any of its ids. Zombies do not count.
fn lives_as(pid: Pid, uid: u32) -> bool {
    let status = format!("/proc/{}/status", pid.as_raw_nonzero());
    is_of(&fs::read_to_string(status).unwrap_or_default(), uid)
}

/// Returns true if `/proc/PID/status` is that of a living process with `uid` as any of its ids.
fn is_of(status: &str, uid: u32) -> bool {
    let line = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
    let dead = line("State:").is_some_and(|state| state.trim_start().starts_with(['Z', 'X']));
    let mut ids = line("Uid:").unwrap_or_default().split_whitespace();
    !dead && ids.any(|id| id.parse() == Ok(uid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_two_numbers_and_root_is_in_none() {
        assert_eq!("none".parse(), Ok(JobUsers::Agent));
        assert_eq!("auto".parse(), Ok(JobUsers::Auto));
        let range = UserRange { first: 7, last: 9 };
        assert_eq!("7-9".parse(), Ok(JobUsers::Range(range)));
        assert_eq!(range.len(), 3);
        for bad in ["", "7", "9-7", "0-7", "7-4294967295", "a-b", "-7", "7-"] {
            let error = bad.parse::<JobUsers>().unwrap_err();
            assert!(error.to_string().contains("hint"), "{bad}: {error}");
        }
    }

    #[test]
    fn a_user_is_one_job_s_at_a_time() {
        let locks = tempfile::tempdir().unwrap();
        // No process has these user ids.
        let first = 1_999_999_990;
        let users = Users {
            locks: locks.path().join("locks"),
            ..Users::new(UserRange {
                first,
                last: first + 1,
            })
        };
        let one = users.take().unwrap();
        let two = users.take().unwrap();
        assert_eq!((one.uid, two.uid), (first, first + 1));
        assert!(users.take().unwrap_err().to_string().contains("free"));
        drop(one);
        assert_eq!(users.take().unwrap().uid, first);
    }

    #[test]
    fn the_living_are_told_from_the_dead() {
        let alive = "Name:\tsh\nState:\tS (sleeping)\nUid:\t7\t7\t7\t7\nGid:\t0\t0\t0\t0\n";
        assert!(is_of(alive, 7) && !is_of(alive, 0));
        assert!(!is_of("State:\tZ (zombie)\nUid:\t7\t7\t7\t7\n", 7));
        assert!(!is_of("", 7));
    }
}
