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

/// The default range. Neither distributions nor systemd give these to anyone, and one agent runs at most so many jobs.
const AUTO: UserRange = UserRange {
    first: 60_800,
    last: 61_055,
};
/// The folder of the job that is tried out at the start.
const TRIAL: &str = "trial";
/// Locks of the users that are taken, shared by all agents of the machine.
const LOCKS: &str = "/run/fairlead-testbox";
/// Folders that all users may write and jobs share: what a job left there would be the next one's that gets its user.
const SHARED: [&str; 2] = ["/tmp", "/var/tmp"];
/// How often the processes of a user are killed until none is left. Each time takes two seconds at most.
const KILLS_MAX: u32 = 30;

/// User ids from `first` to `last`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserRange {
    first: u32,
    last: u32,
}

impl UserRange {
    /// How many jobs can run at once.
    pub(crate) fn len(self) -> u32 {
        (self.last - self.first).saturating_add(1)
    }
}

impl fmt::Display for UserRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

/// Under which users jobs run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum JobUsers {
    /// All under the agent's own.
    #[default]
    Agent,
    /// Each under one of the range that no distribution uses, where the agent can do that; else as [`JobUsers::Agent`].
    Auto,
    /// Each under one of this range; an agent that cannot do that does not start.
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

    /// Reads `auto`, `none` or `FIRST-LAST`.
    fn from_str(text: &str) -> Result<Self, BadConfig> {
        match text {
            "auto" => return Ok(Self::Auto),
            "none" => return Ok(Self::Agent),
            _ => {}
        }
        let ends = text.split_once('-').and_then(|(first, last)| {
            let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
            // The last number means nobody to the kernel.
            (first > 0 && first <= last && last < u32::MAX).then_some(UserRange { first, last })
        });
        ends.map(Self::Range).ok_or_else(|| {
            BadConfig(format!(
                "job user '{text}' is not a range of user ids (hint: auto, none, or FIRST-LAST as in 60800-61055)"
            ))
        })
    }
}

/// The users that an agent's jobs may have.
#[derive(Debug)]
pub(crate) struct Users {
    range: UserRange,
    locks: PathBuf,
    /// How far the range was given out: a user rests as long as possible before another job has it.
    next: Mutex<u32>,
}

/// A user that one job has.
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

    /// Whether a job can be run under one of them: an error says what is missing. Blocks.
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

    /// Takes a user that nobody has. Blocks.
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
    /// Kills all its processes, and removes what it left where all may write. Blocks.
    pub(crate) fn clear(&self) -> io::Result<()> {
        kill_all(self.uid)?;
        for folder in SHARED {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                if entry.metadata().is_ok_and(|about| about.uid() == self.uid) {
                    // What cannot be removed is no reason to hold up the job's end.
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

/// `None`: somebody has it.
fn lock(locks: &Path, uid: u32) -> io::Result<Option<Lock>> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(locks)?;
    Lock::take(&locks.join(uid.to_string()))
}

fn kill_all(uid: u32) -> io::Result<()> {
    for _ in 0..KILLS_MAX {
        // By root, whom no process of the user can stop.
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

/// Kills all processes of a user at one moment, for those that multiply faster than they are found. One of them may stop
/// the killer, which has their user: then it is killed itself.
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

/// The living processes of a user.
fn processes_of(uid: u32) -> io::Result<Vec<Pid>> {
    let mut found = processes()?;
    found.retain(|pid| lives_as(*pid, uid));
    Ok(found)
}

/// Whether it lives, by any of its ids under this user. The dead that wait to be reaped do not.
fn lives_as(pid: Pid, uid: u32) -> bool {
    let status = format!("/proc/{}/status", pid.as_raw_nonzero());
    is_of(&fs::read_to_string(status).unwrap_or_default(), uid)
}

/// Whether `/proc/PID/status` is that of a living process of `uid`, by any of its ids.
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
        // Nobody has these.
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
